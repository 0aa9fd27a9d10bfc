//! NCCL: communicators whose ranks never meet. What other ranks would send is
//! not there, and what this one has stands for it: real copies, of the right
//! sizes. Programs that check what they received fail, such as the start-up
//! check of DistributedDataParallel.
//!
//! A communicator's own memory is a model, off by default (`buffers.rs`).

mod buffers;

use std::ffi::c_char;

use self::buffers::Buffers;
use crate::export::{Out, answers, stubs};
use crate::{driver, object};

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
    /// Given back when it ends.
    _buffers: Buffers,
}

/// Does something with a communicator.
fn with(communicator: usize, body: impl FnOnce(&Member) -> i32) -> i32 {
    object::read(communicator, body).unwrap_or(INVALID_ARGUMENT)
}

/// Makes a communicator.
fn create(out: Out<usize>, ranks: i32, rank: i32) -> i32 {
    if !(0..ranks).contains(&rank) {
        return INVALID_ARGUMENT;
    }
    let driver = driver::get();
    let Some(buffers) = Buffers::take(driver, ranks) else {
        return UNHANDLED_CUDA_ERROR;
    };
    out.set(object::create_with(Member {
        ranks,
        rank,
        device: driver.map_or(0, driver::Driver::device),
        _buffers: buffers,
    }));
    0
}

/// Ends a communicator. One that is ended already is no error: PyTorch ends some
/// in two ways.
fn end(communicator: usize) -> i32 {
    object::end(communicator)
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

/// Copies a part to the place of each rank.
fn gather(from: usize, to: usize, part: usize, communicator: usize, stream: usize) -> i32 {
    with(communicator, |member| {
        (0..usize::try_from(member.ranks).unwrap_or(0))
            .map(|rank| copy(to + rank * part, from, part, stream))
            .find(|status| *status != 0)
            .unwrap_or(0)
    })
}

answers! {
    versions [];
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
        parent: usize, _colour: i32, _key: i32, out: Out<usize>, _settings: usize
    ) -> i32 {
        let found = object::read(parent, |parent: &Member| (parent.ranks, parent.rank));
        match found {
            Some((ranks, rank)) => create(out, ranks, rank),
            None => INVALID_ARGUMENT,
        }
    }

    /// How many ranks there are.
    fn ncclCommCount(communicator: usize, out: Out<i32>) -> i32 {
        with(communicator, |member| {
            out.set(member.ranks);
            0
        })
    }

    /// Which rank this is.
    fn ncclCommUserRank(communicator: usize, out: Out<i32>) -> i32 {
        with(communicator, |member| {
            out.set(member.rank);
            0
        })
    }

    /// Which device this rank has.
    fn ncclCommCuDevice(communicator: usize, out: Out<i32>) -> i32 {
        with(communicator, |member| {
            out.set(member.device);
            0
        })
    }

    /// Ends a communicator.
    fn ncclCommDestroy(communicator: usize) -> i32 {
        end(communicator)
    }

    /// Ends a communicator at once.
    fn ncclCommAbort(communicator: usize) -> i32 {
        end(communicator)
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
        communicator: usize, stream: usize,
    ) -> i32 {
        let part = bytes(count, kind);
        with(communicator, |member| copy(to, from + member.rank as usize * part, part, stream))
    }

    /// The root has what every rank has, which is what this one has.
    fn ncclGather(
        from: usize, to: usize, count: usize, kind: i32, _root: i32, communicator: usize,
        stream: usize,
    ) -> i32 {
        gather(from, to, bytes(count, kind), communicator, stream)
    }

    /// Every rank has what this one has.
    fn ncclAllGather(
        from: usize, to: usize, count: usize, kind: i32, communicator: usize, stream: usize
    ) -> i32 {
        gather(from, to, bytes(count, kind), communicator, stream)
    }
}

stubs! {
    versions [];
    computes {
        ncclAlltoAll
        ncclBcast
        ncclCommDeregister
        ncclCommFinalize
        ncclGroupEnd
        ncclGroupStart
        ncclRecv
        ncclSend
    }
    refuses 5 {
        ncclCommGetUniqueId
        ncclCommGrow
        ncclCommInitAll
        ncclCommMemStats
        ncclCommResume
        ncclCommRevoke
        ncclCommShrink
        ncclCommSuspend
        ncclCommWindowDeregister
        ncclCommWindowRegister
        ncclDevCommCreate
        ncclDevCommDestroy
        ncclGetLsaMultimemDevicePointer
        ncclGetPeerDevicePointer
        ncclGroupSimulateEnd
        ncclPutSignal
        ncclRedOpCreatePreMulSum
        ncclRedOpDestroy
        ncclSignal
        ncclWaitSignal
        ncclWinGetUserPtr
    }
}
