//! PyTorch: its allocator's report of every block, and the marks of its training loop.
//!
//! `c10::reportMemoryUsageToProfiler` is called for each block that the CUDA caching allocator hands out or takes back, with
//! the allocator's own totals in its arguments, whether a profiler is on or not. The calls go through the PLT, so an export
//! of the same name receives them. The allocator's mutex is held meanwhile: nothing here waits or takes the GIL.
//!
//! `at::RecordFunction` with the user scope is constructed for each optimizer step, `zero_grad` and DataLoader step, and
//! `Engine::execute` is one backward pass. Both can throw, so they are `C-unwind`, and an end mark is set by a drop guard.

use core::ffi::{CStr, c_void};
use core::mem::transmute;
use core::ptr::NonNull;

use gpumem_wire::{ApiId, DeviceOrdinal, Flags, Kind, StackId};

use super::flags_of_a_free;
use crate::guard::Watch;
use crate::real::FoundOnce;
use crate::record::{self, Draft};
use crate::{config, elf, process, stack};

const BLOCK: ApiId = ApiId(1000);
const OUT_OF_MEMORY: ApiId = ApiId(1001);
const USER_SCOPE: ApiId = ApiId(1002);
const BACKWARD: ApiId = ApiId(1003);

/// Numbers and names of the entry points of this file.
pub(super) const APIS: [(ApiId, &str); 4] = [
    (BLOCK, "c10::reportMemoryUsageToProfiler"),
    (OUT_OF_MEMORY, "c10::reportOutOfMemoryToProfiler"),
    (USER_SCOPE, "at::RecordFunction"),
    (BACKWARD, "torch::autograd::Engine::execute"),
];

/// `c10::DeviceType::CUDA`, on ROCm too.
const DEVICE_TYPE_CUDA: u8 = 1;
/// `at::RecordScope::USER_SCOPE`.
const SCOPE_USER: u8 = 7;

/// A function of torch's that our export stands in front of. `dlsym(RTLD_NEXT)` does not find it: torch's libraries are
/// opened into a scope of their own.
struct Behind {
    symbol: &'static CStr,
    address: FoundOnce,
}

impl Behind {
    const fn new(symbol: &'static CStr) -> Self {
        Self {
            symbol,
            address: FoundOnce::new(),
        }
    }

    /// The address; null where torch has no such function.
    #[inline(always)]
    fn address(&self) -> *mut c_void {
        self.address.get(|| self.find())
    }

    #[cold]
    fn find(&self) -> Option<NonNull<c_void>> {
        let own = (&raw const self.address) as usize;
        elf::find_object(|object| {
            if object.contains(own) {
                None
            } else {
                object.symbol(self.symbol)
            }
        })
    }
}

fn draft(kind: Kind, api: ApiId, device: DeviceOrdinal, stack: StackId, words: [u64; 4]) -> Draft {
    Draft {
        kind,
        api,
        device,
        stack,
        flags: Flags::default(),
        words,
    }
}

fn stack_of(want: stack::Want) -> StackId {
    match config::mode() {
        config::Mode::Full => stack::capture(want),
        config::Mode::Ledger | config::Mode::Off => StackId::NONE,
    }
}

/// A `c10::Device` is two bytes: the type, and the index, which is signed.
fn cuda_ordinal(device: u16) -> Option<DeviceOrdinal> {
    let [kind, index] = device.to_le_bytes();
    (kind == DEVICE_TYPE_CUDA).then(|| DeviceOrdinal(i16::from(index as i8)))
}

fn block(address: *mut c_void, size: i64, allocated: u64, reserved: u64, device: u16) {
    let Some(device) = cuda_ordinal(device) else {
        return;
    };
    let Some(watch) = Watch::enter() else { return };
    watch.own(|| {
        // A block that is taken back does not wake a process: a forked child drops its parent's tensors.
        let is_birth = size > 0;
        if !(process::awake() || is_birth && process::wake()) {
            return;
        }
        process::notice_finalising(&watch);
        let (kind, stack) = if is_birth {
            (Kind::BlockAlloc, stack_of(stack::Want::Full))
        } else {
            (Kind::BlockFree, StackId::NONE)
        };
        let words = [address as u64, size.unsigned_abs(), allocated, reserved];
        let mut draft = draft(kind, BLOCK, device, stack, words);
        if !is_birth {
            draft.flags = flags_of_a_free();
        }
        record::event(&watch, draft);
    });
}

fn out_of_memory(size: i64, allocated: u64, reserved: u64, device: u16) {
    let Some(device) = cuda_ordinal(device) else {
        return;
    };
    let Some(watch) = Watch::enter() else { return };
    watch.own(|| {
        if process::awake() {
            let words = [size.unsigned_abs(), allocated, reserved, 0];
            let stack = stack_of(stack::Want::Full);
            record::event(
                &watch,
                draft(Kind::BlockOom, OUT_OF_MEMORY, device, stack, words),
            );
        }
    });
}

macro_rules! name_of {
    ($name:ident) => {
        // An identifier holds no zero byte.
        match CStr::from_bytes_with_nul(concat!(stringify!($name), "\0").as_bytes()) {
            Ok(name) => name,
            Err(_) => c"",
        }
    };
}

macro_rules! reporters {
    ($($usage:ident, $oom:ident;)*) => {$(
        /// The export of `c10::reportMemoryUsageToProfiler(void *, int64_t, total, total, Device)`.
        ///
        /// # Safety
        /// As torch's.
        #[cfg_attr(not(test), unsafe(no_mangle))]
        pub(crate) unsafe extern "C-unwind" fn $usage(
            address: *mut c_void,
            size: i64,
            allocated: u64,
            reserved: u64,
            device: u16,
        ) {
            type Real = unsafe extern "C-unwind" fn(*mut c_void, i64, u64, u64, u16);
            static BEHIND: Behind = Behind::new(name_of!($usage));
            let real = BEHIND.address();
            if !real.is_null() {
                // SAFETY: torch's function of this very name, with its own arguments.
                unsafe { transmute::<*mut c_void, Real>(real)(address, size, allocated, reserved, device) };
            }
            block(address, size, allocated, reserved, device);
        }

        /// The export of `c10::reportOutOfMemoryToProfiler(int64_t, total, total, Device)`.
        ///
        /// # Safety
        /// As torch's.
        #[cfg_attr(not(test), unsafe(no_mangle))]
        pub(crate) unsafe extern "C-unwind" fn $oom(size: i64, allocated: u64, reserved: u64, device: u16) {
            type Real = unsafe extern "C-unwind" fn(i64, u64, u64, u16);
            static BEHIND: Behind = Behind::new(name_of!($oom));
            let real = BEHIND.address();
            if !real.is_null() {
                // SAFETY: torch's function of this very name, with its own arguments.
                unsafe { transmute::<*mut c_void, Real>(real)(size, allocated, reserved, device) };
            }
            out_of_memory(size, allocated, reserved, device);
        }
    )*};
}

reporters! {
    // Totals are size_t since torch 2.0, int64_t in 1.13.
    _ZN3c1027reportMemoryUsageToProfilerEPvlmmNS_6DeviceE, _ZN3c1027reportOutOfMemoryToProfilerElmmNS_6DeviceE;
    _ZN3c1027reportMemoryUsageToProfilerEPvlllNS_6DeviceE, _ZN3c1027reportOutOfMemoryToProfilerElllNS_6DeviceE;
}

fn mark(
    kind: Kind,
    api: ApiId,
    flags: Flags,
    stack: Option<stack::Want>,
    words: [u64; 4],
) -> Option<u64> {
    if !process::awake() {
        return None;
    }
    let watch = Watch::enter()?;
    let seq = watch.own(|| {
        let stack = stack.map_or(StackId::NONE, stack_of);
        let draft = Draft {
            flags,
            ..draft(kind, api, DeviceOrdinal::UNKNOWN, stack, words)
        };
        record::event(&watch, draft)
    });
    seq.flatten().map(|seq| seq.0)
}

/// The export of `at::RecordFunction::RecordFunction(RecordScope)`.
///
/// # Safety
/// As torch's.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub(crate) unsafe extern "C-unwind" fn _ZN2at14RecordFunctionC1ENS_11RecordScopeE(
    this: *mut c_void,
    scope: usize,
) {
    type Real = unsafe extern "C-unwind" fn(*mut c_void, usize);
    static BEHIND: Behind = Behind::new(name_of!(_ZN2at14RecordFunctionC1ENS_11RecordScopeE));
    if scope as u8 == SCOPE_USER {
        mark(
            Kind::UserScope,
            USER_SCOPE,
            Flags::default(),
            Some(stack::Want::PythonOnly),
            [0; 4],
        );
    }
    let real = BEHIND.address();
    if !real.is_null() {
        // SAFETY: torch's constructor of this very name, with its own arguments.
        unsafe { transmute::<*mut c_void, Real>(real)(this, scope) };
    }
}

/// Marks the end of a backward pass, also when an exception leaves it.
struct BackwardEnd(Option<u64>);

impl Drop for BackwardEnd {
    fn drop(&mut self) {
        if let Some(begin) = self.0 {
            mark(
                Kind::BackwardEnd,
                BACKWARD,
                Flags::default(),
                None,
                [begin, 0, 0, 0],
            );
        }
    }
}

/// The export of `torch::autograd::Engine::execute(roots, inputs, keep_graph, create_graph, accumulate_grad, outputs)`, whose
/// result is returned through the first argument. The flags are passed on as the whole registers that they came in.
///
/// # Safety
/// As torch's.
#[allow(clippy::too_many_arguments)]
#[cfg_attr(not(test), unsafe(no_mangle))]
pub(crate) unsafe extern "C-unwind" fn _ZN5torch8autograd6Engine7executeERKSt6vectorINS0_4EdgeESaIS3_EERKS2_IN2at6TensorESaIS9_EEbbbS7_(
    result: *mut c_void,
    this: *mut c_void,
    roots: *const c_void,
    inputs: *const c_void,
    keep_graph: usize,
    create_graph: usize,
    accumulate_grad: usize,
    outputs: *const c_void,
) -> *mut c_void {
    type Real = unsafe extern "C-unwind" fn(
        *mut c_void,
        *mut c_void,
        *const c_void,
        *const c_void,
        usize,
        usize,
        usize,
        *const c_void,
    ) -> *mut c_void;
    static BEHIND: Behind = Behind::new(name_of!(
        _ZN5torch8autograd6Engine7executeERKSt6vectorINS0_4EdgeESaIS3_EERKS2_IN2at6TensorESaIS9_EEbbbS7_
    ));
    let real = BEHIND.address();
    if real.is_null() {
        return result;
    }
    let mut flags = Flags::default();
    if keep_graph as u8 != 0 {
        flags = flags.with(Flags::KEEP_GRAPH);
    }
    if create_graph as u8 != 0 {
        flags = flags.with(Flags::CREATE_GRAPH);
    }
    let _end = BackwardEnd(mark(
        Kind::BackwardBegin,
        BACKWARD,
        flags,
        Some(stack::Want::PythonOnly),
        [0; 4],
    ));
    // SAFETY: torch's function of this very name, with its own arguments.
    unsafe {
        transmute::<*mut c_void, Real>(real)(
            result,
            this,
            roots,
            inputs,
            keep_graph,
            create_graph,
            accumulate_grad,
            outputs,
        )
    }
}
