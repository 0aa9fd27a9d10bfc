//! Which of PyTorch's operators a call comes from, by the native stack.
//!
//! The operator is the innermost frame of a function that PyTorch exports from
//! `at::_ops` or `at::native`, but for those that bring a number for whoever
//! called them (`item` and what it is made of): so a number that `unique` reads
//! through them is told from one that the program reads. Functions that are not
//! exported are not known, so that it may be a caller of the one that really
//! asked. A stack is looked up once: each one that is seen again costs its
//! unwinding only.

use std::collections::HashMap;
use std::ffi::{CStr, c_void};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::{Arc, LazyLock, Mutex, PoisonError};

/// Deepest frame that is looked at.
const FRAMES: usize = 128;
/// Stacks that are remembered.
const STACKS: usize = 4096;
/// How the names of operators begin, mangled (Itanium C++ ABI).
const PREFIXES: [&[u8]; 2] = [b"_ZN2at4_ops", b"_ZN2at6native"];
/// Operators that bring a number to the host, and no more.
const CARRIERS: [&str; 10] = [
    "_local_scalar_dense",
    "_local_scalar_dense_cuda",
    "_to_copy",
    "clone",
    "copy",
    "copy_",
    "item",
    "to",
    "to_dtype",
    "to_dtype_layout",
];

/// Operators that read one truth of the device's, to stop where it is false:
/// `normal` with a tensor of widths, of which none may be negative
/// (aten/src/ATen/native/DistributionTemplates.h).
const CHECKS: [&str; 2] = ["normal", "normal_out"];

unsafe extern "C" {
    /// libgcc's unwinder (Itanium C++ ABI, level 1), which std links.
    fn _Unwind_Backtrace(
        visit: extern "C" fn(*mut c_void, *mut c_void) -> i32,
        argument: *mut c_void,
    ) -> i32;
    fn _Unwind_GetIP(context: *mut c_void) -> usize;
}

/// Return addresses, the innermost first.
struct Stack {
    addresses: [usize; FRAMES],
    depth: usize,
}

impl Stack {
    fn of_this_call() -> Self {
        let mut stack = Self {
            addresses: [0; FRAMES],
            depth: 0,
        };
        // SAFETY: `visit` gets back the stack that it is given here, which lives
        // until the unwinder returns.
        unsafe { _Unwind_Backtrace(visit, (&raw mut stack).cast()) };
        stack
    }

    fn frames(&self) -> &[usize] {
        &self.addresses[..self.depth]
    }
}

extern "C" fn visit(context: *mut c_void, stack: *mut c_void) -> i32 {
    /// `_URC_NO_REASON`: go on.
    const GO_ON: i32 = 0;
    /// `_URC_END_OF_STACK`.
    const ENOUGH: i32 = 5;
    // SAFETY: the argument of `_Unwind_Backtrace` above, which nothing else uses
    // meanwhile, and the unwinder's own context.
    let (stack, address) = unsafe { (&mut *stack.cast::<Stack>(), _Unwind_GetIP(context)) };
    let Some(place) = stack.addresses.get_mut(stack.depth) else {
        return ENOUGH;
    };
    *place = address;
    stack.depth += 1;
    GO_ON
}

/// The operator of the call that is running, such as `at::native::nonzero_out_cuda`
/// or `at::_ops::item::call`; `None` where there is none. Nobody may hold a lock
/// of this library: the loader's is taken.
pub(crate) fn of_this_call() -> Option<Arc<str>> {
    static KNOWN: LazyLock<Mutex<HashMap<u64, Option<Arc<str>>>>> = LazyLock::new(Mutex::default);
    let stack = Stack::of_this_call();
    let mut hasher = DefaultHasher::new();
    stack.frames().hash(&mut hasher);
    let key = hasher.finish();
    let known = || KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(operator) = known().get(&key) {
        return operator.clone();
    }
    let operator = choose(
        stack
            .frames()
            .iter()
            .filter_map(|address| operator(*address)),
    );
    let mut known = known();
    if known.len() >= STACKS {
        known.clear();
    }
    known.insert(key, operator.clone());
    operator
}

/// Of the operators on a stack, the innermost first, the one that asked: the
/// first that is no carrier, or else the first.
fn choose(mut operators: impl Iterator<Item = Arc<str>>) -> Option<Arc<str>> {
    let first = operators.next()?;
    if !is_carrier(&first) {
        return Some(first);
    }
    operators
        .find(|operator| !is_carrier(operator))
        .or(Some(first))
}

fn is_carrier(operator: &str) -> bool {
    CARRIERS.contains(&name(operator))
}

/// Whether a byte that the operator reads must be true for it to go on.
pub(crate) fn asks_for_yes(operator: &str) -> bool {
    CHECKS.contains(&name(operator))
}

/// `item` of `at::_ops::item::call`.
fn name(operator: &str) -> &str {
    operator.split("::").nth(2).unwrap_or_default()
}

/// The operator that a return address lies in.
fn operator(address: usize) -> Option<Arc<str>> {
    // The call is before the address that it returns to, which may be another
    // function's.
    let address = address.checked_sub(1)?;
    let mut info = std::mem::MaybeUninit::<libc::Dl_info>::zeroed();
    // SAFETY: dladdr takes any address and fills the structure when it answers
    // other than 0; zeros are a value of it.
    let info = unsafe {
        if libc::dladdr(address as *const c_void, info.as_mut_ptr()) == 0 {
            return None;
        }
        info.assume_init()
    };
    if info.dli_sname.is_null() {
        return None;
    }
    // SAFETY: a zero-ended name in the string table of a loaded library. It stays
    // while the library is loaded, and its function is running.
    let mangled = unsafe { CStr::from_ptr(info.dli_sname) }.to_bytes();
    let wanted = PREFIXES.iter().any(|prefix| mangled.starts_with(prefix));
    wanted.then(|| readable(mangled)).flatten().map(Arc::from)
}

/// The qualified name of a mangled function, without parameters and without what
/// its templates were made for.
fn readable(mangled: &[u8]) -> Option<String> {
    let mut rest = mangled.strip_prefix(b"_ZN")?;
    let mut parts = Vec::new();
    loop {
        let digits = rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
        if digits == 0 {
            break;
        }
        let (length, after) = rest.split_at(digits);
        let length: usize = std::str::from_utf8(length).ok()?.parse().ok()?;
        let part = std::str::from_utf8(after.get(..length)?).ok()?;
        parts.push(if part.starts_with("_GLOBAL__N") {
            "(anonymous)"
        } else {
            part
        });
        rest = &after[length..];
    }
    (!parts.is_empty()).then(|| parts.join("::"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_readable() {
        let name = |mangled: &str| readable(mangled.as_bytes());
        assert_eq!(
            name("_ZN2at6native16nonzero_out_cudaERKNS_6TensorERS1_").as_deref(),
            Some("at::native::nonzero_out_cuda")
        );
        assert_eq!(
            name("_ZN2at4_ops4item4callERKNS_6TensorE").as_deref(),
            Some("at::_ops::item::call")
        );
        assert_eq!(
            name("_ZN2at6native12_GLOBAL__N_13topIfEEvv").as_deref(),
            Some("at::native::(anonymous)::top")
        );
        assert_eq!(name("_ZN99short"), None);
        assert_eq!(name("main"), None);
        assert_eq!(name("_ZNKSt6vectorIiSaIiEE4sizeEv"), None);
    }

    #[test]
    fn who_asked_is_not_who_carried() {
        let chosen = |stack: &[&str]| choose(stack.iter().map(|name| Arc::from(*name)));
        let item = [
            "at::native::_local_scalar_dense_cuda",
            "at::_ops::item::call",
        ];
        assert_eq!(chosen(&item).as_deref(), Some(item[0]));
        let unique = [item[0], item[1], "at::native::_unique2_cuda"];
        assert_eq!(chosen(&unique).as_deref(), Some(unique[2]));
        let nonzero = [
            "at::native::nonzero_cuda_out_impl",
            "at::native::nonzero_cuda",
        ];
        assert_eq!(chosen(&nonzero).as_deref(), Some(nonzero[0]));
        assert_eq!(chosen(&[]), None);
    }

    #[test]
    fn a_check_is_known_by_its_operator() {
        assert!(asks_for_yes("at::native::normal"));
        assert!(!asks_for_yes("at::native::normal_"));
        assert!(!asks_for_yes("normal"));
    }

    #[test]
    fn a_stack_begins_here_and_ends() {
        let stack = Stack::of_this_call();
        assert!((3..FRAMES).contains(&stack.depth));
        // No operator of PyTorch's runs here.
        assert_eq!(of_this_call(), None);
        assert_eq!(of_this_call(), None);
    }
}
