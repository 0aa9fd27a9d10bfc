//! Device memory that several processes share.
//!
//! All device memory of a process is pieces of one file; a handle names the
//! process, the file's descriptor there and the piece, and the other process
//! opens it through `/proc`, which the kernel allows to the same user.

use std::collections::BTreeMap;

use crate::abi::{Out, Outcome, Plain, Status};
use crate::backing;
use crate::entry::entry;
use crate::machine::Machine;
use crate::memory::{Allocation, Kind};

/// The bytes that a program carries to another process: `CUipcMemHandle` and
/// `CUipcEventHandle`.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct IpcHandle {
    kind: [u8; 16],
    process: u32,
    descriptor: i32,
    offset: u64,
    size_bytes: u64,
    /// The machine's number of it.
    device: i32,
    reserved: [u8; 20],
}

// SAFETY: integers alone, without padding.
unsafe impl Plain for IpcHandle {}

const _: () = assert!(size_of::<IpcHandle>() == 64, "a handle has 64 bytes");

const MEMORY: [u8; 16] = *b"simulated memory";
const EVENT: [u8; 16] = *b"simulated event\0";

impl IpcHandle {
    /// The handle of any event.
    pub(crate) fn of_event() -> Self {
        Self {
            kind: EVENT,
            process: std::process::id(),
            descriptor: -1,
            offset: 0,
            size_bytes: 0,
            device: 0,
            reserved: [0; 20],
        }
    }

    pub(crate) fn is_event(&self) -> bool {
        self.kind == EVENT
    }
}

/// Memory of other processes that is open here: by process and place in its
/// file, the address and how often it was opened.
#[derive(Default)]
pub(crate) struct Imports {
    open: BTreeMap<(u32, u64), (u64, u64)>,
}

impl Machine {
    fn export(&self, address: u64) -> Outcome<IpcHandle> {
        let (_, allocation) = self
            .memory
            .containing(address)
            .ok_or(Status::INVALID_VALUE)?;
        let (Kind::Device { offset }, Some(device)) = (allocation.kind, allocation.device) else {
            return Err(Status::INVALID_VALUE);
        };
        Ok(IpcHandle {
            kind: MEMORY,
            process: std::process::id(),
            descriptor: self.memory.descriptor().ok_or(Status::INVALID_VALUE)?,
            offset,
            size_bytes: allocation.size_bytes,
            // At most `config::MAX_DEVICES`.
            device: device.index() as i32,
            reserved: [0; 20],
        })
    }

    /// Opening again answers the same address; the process that exported the
    /// memory cannot open it. Its device need not be visible here.
    fn import(&mut self, handle: &IpcHandle) -> Outcome<u64> {
        let context = self.contexts.current()?.handle;
        if handle.kind != MEMORY {
            return Err(Status::INVALID_VALUE);
        }
        if handle.process == std::process::id() {
            return Err(Status::INVALID_CONTEXT);
        }
        let device = self.ledger.device(handle.device);
        let device = device.ok_or(Status::INVALID_DEVICE)?;
        let key = (handle.process, handle.offset);
        if let Some((address, times)) = self.imports.open.get_mut(&key) {
            *times += 1;
            return Ok(*address);
        }
        let path = format!("/proc/{}/fd/{}", handle.process, handle.descriptor);
        let address = backing::map_file(&path, handle.size_bytes, handle.offset)
            .ok_or(Status::INVALID_VALUE)?;
        self.memory.insert(
            address,
            Allocation {
                kind: Kind::Imported,
                size_bytes: handle.size_bytes,
                charged_bytes: 0,
                device: Some(device),
                context: Some(context),
            },
        );
        self.imports.open.insert(key, (address, 1));
        Ok(address)
    }

    fn close_import(&mut self, address: u64) -> Outcome {
        let mut open = self.imports.open.iter_mut();
        let (key, (_, times)) = open
            .find(|(_, (opened, _))| *opened == address)
            .ok_or(Status::INVALID_VALUE)?;
        *times -= 1;
        if *times == 0 {
            let key = *key;
            self.imports.open.remove(&key);
            self.drop_allocation(address);
        }
        Ok(())
    }

    /// Forgets what is open at an address whose context has ended.
    pub(crate) fn forget_import(&mut self, address: u64) {
        self.imports
            .open
            .retain(|_, (opened, _)| *opened != address);
    }
}

entry! {
    /// Names the allocation that an address lies in to other processes.
    fn cuIpcGetMemHandle(machine; out: Out<IpcHandle>, address: u64) {
        out.required()?;
        machine.contexts.current()?;
        out.set(machine.export(address)?)
    }

    /// Opens what another process named: the start of the allocation.
    fn cuIpcOpenMemHandle_v2(machine; out: Out<u64>, handle: IpcHandle, _flags: u32) {
        out.required()?;
        out.set(machine.import(&handle)?)
    }

    /// Closes it, as often as it was opened.
    fn cuIpcCloseMemHandle(machine; address: u64) {
        machine.contexts.current()?;
        machine.close_import(address)
    }
}
