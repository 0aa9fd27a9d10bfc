//! NCCL: communicators whose ranks never meet. What other ranks would send is
//! not there, and what this one has stands for it: real copies, of the right
//! sizes. Programs that check what they received fail, such as the start-up
//! check of DistributedDataParallel.

use std::ffi::c_char;

use crate::driver;
use crate::export::{Out, answers, stubs};

/// `ncclUnhandledCudaError`.
const UNHANDLED_CUDA_ERROR: i32 = 1;
/// `ncclInvalidArgument`.
const INVALID_ARGUMENT: i32 = 4;

/// `ncclUniqueId`.
#[repr(C)]
#[derive(Clone, Copy)]
struct UniqueId([u8; 128]);

/// What a communicator is.
struct Member {
    ranks: i32,
    rank: i32,
    device: i32,
}

/// A communicator's handle.
#[repr(transparent)]
struct Communicator(*const Member);

impl Communicator {
    fn with(&self, body: impl FnOnce(&Member) -> i32) -> i32 {
        // SAFETY: NULL, or what `create` has made, which lives for ever.
        unsafe { self.0.as_ref() }.map_or(INVALID_ARGUMENT, body)
    }
}

/// Makes a communicator. It is never given back: programs create few, and a
/// late call must find it.
fn create(out: Out<usize>, ranks: i32, rank: i32) -> i32 {
    if !(0..ranks).contains(&rank) {
        return INVALID_ARGUMENT;
    }
    let device = driver::get().map_or(0, driver::Driver::device);
    let member = Box::leak(Box::new(Member {
        ranks,
        rank,
        device,
    }));
    out.set(std::ptr::from_ref(member) as usize);
    0
}

/// Bytes of so many elements of a `ncclDataType_t`.
fn bytes(count: usize, kind: i32) -> usize {
    let size = match kind {
        6 | 9 => 2,
        2 | 3 | 7 => 4,
        4 | 5 | 8 => 8,
        _ => 1,
    };
    count.saturating_mul(size)
}

fn copy(to: usize, from: usize, bytes: usize, stream: usize) -> i32 {
    let copied = driver::get().is_some_and(|driver| driver.copy(to, from, bytes, stream));
    if copied { 0 } else { UNHANDLED_CUDA_ERROR }
}

answers! {
    /// The version.
    fn ncclGetVersion(out: Out<i32>) -> i32 {
        out.set(22_803);
        0
    }

    /// What an error is called; it lives for ever.
    fn ncclGetErrorString(status: i32) -> *const c_char {
        let text = if status == 0 { c"success" } else { c"not supported by the simulated NCCL" };
        text.as_ptr()
    }

    /// What the last error of a communicator was: an empty text.
    fn ncclGetLastError(_communicator: usize) -> *const c_char {
        c"".as_ptr()
    }

    /// The identity that all ranks need: the same for all, since they never meet.
    fn ncclGetUniqueId(out: Out<UniqueId>) -> i32 {
        out.set(UniqueId([0; 128]));
        0
    }

    /// Makes a rank's communicator.
    fn ncclCommInitRank(out: Out<usize>, ranks: i32, _id: UniqueId, rank: i32) -> i32 {
        create(out, ranks, rank)
    }

    /// The same with settings.
    fn ncclCommInitRankConfig(
        out: Out<usize>, ranks: i32, _id: UniqueId, rank: i32, _settings: usize
    ) -> i32 {
        create(out, ranks, rank)
    }

    /// The same with several identities.
    fn ncclCommInitRankScalable(
        out: Out<usize>, ranks: i32, rank: i32, _id_count: i32, _ids: usize, _settings: usize
    ) -> i32 {
        create(out, ranks, rank)
    }

    /// A part of a communicator: it keeps ranks and rank.
    fn ncclCommSplit(
        parent: Communicator, _colour: i32, _key: i32, out: Out<usize>, _settings: usize
    ) -> i32 {
        parent.with(|parent| create(out, parent.ranks, parent.rank))
    }

    /// How many ranks there are.
    fn ncclCommCount(communicator: Communicator, out: Out<i32>) -> i32 {
        communicator.with(|member| {
            out.set(member.ranks);
            0
        })
    }

    /// Which rank this is.
    fn ncclCommUserRank(communicator: Communicator, out: Out<i32>) -> i32 {
        communicator.with(|member| {
            out.set(member.rank);
            0
        })
    }

    /// Which device this rank has.
    fn ncclCommCuDevice(communicator: Communicator, out: Out<i32>) -> i32 {
        communicator.with(|member| {
            out.set(member.device);
            0
        })
    }

    /// What went wrong meanwhile: nothing.
    fn ncclCommGetAsyncError(_communicator: usize, out: Out<i32>) -> i32 {
        out.set(0);
        0
    }

    /// Readies a buffer: it is its own handle.
    fn ncclCommRegister(
        _communicator: usize, buffer: usize, _bytes: usize, out: Out<usize>
    ) -> i32 {
        out.set(buffer);
        0
    }

    /// Device memory.
    fn ncclMemAlloc(out: Out<usize>, bytes: usize) -> i32 {
        let address = driver::get().and_then(|driver| driver.allocate(bytes));
        address.map_or(UNHANDLED_CUDA_ERROR, |address| {
            out.set(address);
            0
        })
    }

    /// Gives it back.
    fn ncclMemFree(address: usize) -> i32 {
        let freed = driver::get().is_some_and(|driver| driver.free(address));
        if freed { 0 } else { UNHANDLED_CUDA_ERROR }
    }

    /// A reduction over this rank alone: a copy.
    fn ncclAllReduce(
        from: usize, to: usize, count: usize, kind: i32, _operation: i32,
        _communicator: usize, stream: usize,
    ) -> i32 {
        copy(to, from, bytes(count, kind), stream)
    }

    /// The same to one rank.
    fn ncclReduce(
        from: usize, to: usize, count: usize, kind: i32, _operation: i32, _root: i32,
        _communicator: usize, stream: usize,
    ) -> i32 {
        copy(to, from, bytes(count, kind), stream)
    }

    /// What the root has is what this rank has.
    fn ncclBroadcast(
        from: usize, to: usize, count: usize, kind: i32, _root: i32,
        _communicator: usize, stream: usize,
    ) -> i32 {
        copy(to, from, bytes(count, kind), stream)
    }

    /// This rank's part of a reduction.
    fn ncclReduceScatter(
        from: usize, to: usize, count: usize, kind: i32, _operation: i32,
        communicator: Communicator, stream: usize,
    ) -> i32 {
        let part = bytes(count, kind);
        communicator.with(|member| copy(to, from + member.rank as usize * part, part, stream))
    }

    /// Every rank has what this one has.
    fn ncclAllGather(
        from: usize, to: usize, count: usize, kind: i32, communicator: Communicator, stream: usize
    ) -> i32 {
        let part = bytes(count, kind);
        communicator.with(|member| {
            (0..member.ranks as usize)
                .map(|rank| copy(to + rank * part, from, part, stream))
                .find(|status| *status != 0)
                .unwrap_or(0)
        })
    }
}

stubs! {
    computes {
        ncclAlltoAll
        ncclBcast
        ncclCommAbort
        ncclCommDeregister
        ncclCommDestroy
        ncclCommFinalize
        ncclGroupEnd
        ncclGroupStart
        ncclRecv
        ncclSend
    }
    refuses 5 {
        ncclCommInitAll
        ncclCommShrink
        ncclCommWindowDeregister
        ncclCommWindowRegister
        ncclDevCommCreate
        ncclDevCommDestroy
        ncclGroupSimulateEnd
        ncclRedOpCreatePreMulSum
        ncclRedOpDestroy
    }
}
