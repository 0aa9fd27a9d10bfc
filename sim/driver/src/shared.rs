//! The ledger that several processes share: a mapped file with a slot for each.
//!
//! A process writes its own slot alone. What is taken of a device is the sum
//! over the slots whose processes live, so that nothing has to be given back for
//! one that dies, at whatever instruction: there is no lock that it could hold,
//! and the next one that needs the bytes frees its slot.
//!
//! To take bytes, a process first announces them in its slot, then adds up all
//! others, and settles if the limit allows. Of two that do so at once at least
//! one sees the other's announcement; who is kept back by announcements alone
//! withdraws his own and tries again.
//!
//! A forked child has not its parent's slot: it takes one of its own when it
//! starts the driver. A program that replaces itself (`exec`) stays the same
//! process: what it had counts until the new program takes memory of its own, or
//! ends. Nobody may shorten the file while processes have it.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::fd::AsRawFd;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};

use crate::config::MAX_DEVICES;
use crate::process::Identity;

/// Processes that can share a machine at a time.
const SLOTS: usize = 512;
/// The first word of the file; its last digit is the layout's version.
const MAGIC: u64 = u64::from_le_bytes(*b"gpusim\x00\x01");
/// In a slot's owner: its process is still making it.
const ATTACHING: u64 = 1 << 63;
/// How often a process that is kept back by announcements tries: far more often
/// than as many processes can be in the way, unless one stands still there.
const TRIES: u32 = 1000;

/// The file.
#[repr(C)]
struct Layout {
    magic: AtomicU64,
    reserved: [AtomicU64; 7],
    slots: [Slot; SLOTS],
}

/// What a process has.
#[repr(C)]
struct Slot {
    /// An [`Identity`], or 0.
    owner: AtomicU64,
    reserved: AtomicU64,
    devices: [Taken; MAX_DEVICES],
}

/// Bytes of one device.
#[repr(C)]
struct Taken {
    /// Taken.
    settled: AtomicU64,
    /// Announced, and not yet taken or withdrawn.
    pending: AtomicU64,
}

const FILE_BYTES: usize = size_of::<Layout>();

/// What keeps a charge from being made.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Refusal {
    /// Others and this process have taken too much.
    Full,
    /// There is no slot left for this process.
    NoSlot,
}

/// A process's view of the file.
pub(crate) struct Shared {
    layout: &'static Layout,
    own: Option<(Identity, usize)>,
}

impl Shared {
    /// Maps the file, which is made when it is not there.
    ///
    /// # Errors
    /// It cannot be opened or has no room, or something else lies in it.
    pub(crate) fn open(path: &Path) -> io::Result<Self> {
        let file = OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .open(path)?;
        let metadata = file.metadata()?;
        if metadata.is_file() && metadata.len() == 0 {
            // Several may do so at once, to the same length.
            file.set_len(FILE_BYTES as u64)?;
        }
        let metadata = file.metadata()?;
        if !metadata.is_file() || metadata.len() != FILE_BYTES as u64 {
            return Err(io::Error::other("it is no machine's file"));
        }
        allocate(&file)?;
        let layout = map(&file)?;
        // SeqCst here and below: the argument above is about one order of all
        // announcements, and nothing here is called often enough to be weighed.
        let found = layout.magic.compare_exchange(0, MAGIC, SeqCst, SeqCst);
        if found.is_err_and(|magic| magic != MAGIC) {
            return Err(io::Error::other("it is no machine's file"));
        }
        Ok(Self { layout, own: None })
    }

    /// Takes `bytes` of a device for this process, if all that is taken then is
    /// at most `limit_bytes`; answers how much that is. `has` says what this
    /// process has of each device before.
    pub(crate) fn charge(
        &mut self,
        device: usize,
        bytes: u64,
        limit_bytes: u64,
        has: impl Fn(usize) -> u64,
    ) -> Result<u64, Refusal> {
        let slot = self.slot(has)?;
        let own = &self.layout.slots[slot].devices[device];
        for _ in 0..TRIES {
            own.pending.store(bytes, SeqCst);
            let (settled, pending) = self.others(device, slot);
            let settled = settled
                .saturating_add(own.settled.load(SeqCst))
                .saturating_add(bytes);
            if settled.saturating_add(pending) <= limit_bytes {
                own.settled.fetch_add(bytes, SeqCst);
                own.pending.store(0, SeqCst);
                return Ok(settled);
            }
            own.pending.store(0, SeqCst);
            // The bytes of those that have ended are free now.
            let freed = self.free_slots_of_the_dead();
            if settled > limit_bytes && !freed {
                return Err(Refusal::Full);
            }
            std::thread::yield_now();
        }
        Err(Refusal::Full)
    }

    /// Gives back what this process has taken.
    pub(crate) fn discharge(&self, device: usize, bytes: u64) {
        if let Some(slot) = self.held() {
            self.layout.slots[slot].devices[device]
                .settled
                .fetch_sub(bytes, SeqCst);
        }
    }

    /// What other processes have taken of a device: id and bytes.
    pub(crate) fn other_processes(&self, device: usize) -> Vec<(u32, u64)> {
        self.free_slots_of_the_dead();
        let slots = self.layout.slots.iter().enumerate();
        slots
            .filter(|(index, _)| Some(*index) != self.held())
            .filter_map(|(_, slot)| {
                let owner = slot.attached()?;
                let bytes = slot.devices[device].settled.load(SeqCst);
                (bytes > 0).then_some((owner.pid(), bytes))
            })
            .collect()
    }

    /// What is taken and what is announced in all slots but one.
    fn others(&self, device: usize, own: usize) -> (u64, u64) {
        let (mut settled, mut pending) = (0_u64, 0_u64);
        for (index, slot) in self.layout.slots.iter().enumerate() {
            if index != own && slot.attached().is_some() {
                let taken = &slot.devices[device];
                // In this order: what is settled meanwhile is counted twice, not
                // left out.
                pending = pending.saturating_add(taken.pending.load(SeqCst));
                settled = settled.saturating_add(taken.settled.load(SeqCst));
            }
        }
        (settled, pending)
    }

    /// The slot of this process, while it has one; a forked child has none.
    fn held(&self) -> Option<usize> {
        let (identity, slot) = self.own?;
        let owner = self.layout.slots[slot].owner.load(SeqCst);
        (identity.pid() == std::process::id() && owner == identity.word()).then_some(slot)
    }

    /// The slot of this process, which is taken when it has none.
    fn slot(&mut self, has: impl Fn(usize) -> u64) -> Result<usize, Refusal> {
        if let Some(slot) = self.held() {
            return Ok(slot);
        }
        let identity = Identity::own().map_err(|_| Refusal::NoSlot)?;
        // What the program has left that ran in this process before.
        for slot in &self.layout.slots {
            let _ = slot
                .owner
                .compare_exchange(identity.word(), 0, SeqCst, SeqCst);
        }
        let taken = self.take_slot(identity).or_else(|| {
            self.free_slots_of_the_dead();
            self.take_slot(identity)
        });
        let index = taken.ok_or(Refusal::NoSlot)?;
        let slot = &self.layout.slots[index];
        for (device, taken) in slot.devices.iter().enumerate() {
            taken.pending.store(0, SeqCst);
            taken.settled.store(has(device), SeqCst);
        }
        slot.owner.store(identity.word(), SeqCst);
        self.own = Some((identity, index));
        Ok(index)
    }

    fn take_slot(&self, identity: Identity) -> Option<usize> {
        self.layout.slots.iter().position(|slot| {
            slot.owner
                .compare_exchange(0, identity.word() | ATTACHING, SeqCst, SeqCst)
                .is_ok()
        })
    }

    /// Frees the slots whose processes have ended; whether there were any.
    fn free_slots_of_the_dead(&self) -> bool {
        let mut freed = false;
        for slot in &self.layout.slots {
            let owner = slot.owner.load(SeqCst);
            if owner != 0 && !Identity::from_word(owner).lives() {
                // Whoever is first; a dead process never owns a slot again.
                let exchanged = slot.owner.compare_exchange(owner, 0, SeqCst, SeqCst);
                freed |= exchanged.is_ok();
            }
        }
        freed
    }
}

impl Slot {
    /// The owner, once the slot is its.
    fn attached(&self) -> Option<Identity> {
        let owner = self.owner.load(SeqCst);
        (owner != 0 && owner & ATTACHING == 0).then(|| Identity::from_word(owner))
    }
}

/// Gives the file its blocks, so that no later write to the mapping can fail for
/// a full disk. File systems without the call are taken at their word.
fn allocate(file: &File) -> io::Result<()> {
    // SAFETY: a call on a descriptor that we own.
    let result = unsafe { libc::fallocate(file.as_raw_fd(), 0, 0, FILE_BYTES as libc::off_t) };
    let error = io::Error::last_os_error();
    if result == 0 || error.raw_os_error() == Some(libc::EOPNOTSUPP) {
        Ok(())
    } else {
        Err(error)
    }
}

fn map(file: &File) -> io::Result<&'static Layout> {
    // SAFETY: a new mapping at an address of the kernel's choice.
    let address = unsafe {
        libc::mmap(
            std::ptr::null_mut(),
            FILE_BYTES,
            libc::PROT_READ | libc::PROT_WRITE,
            libc::MAP_SHARED,
            file.as_raw_fd(),
            0,
        )
    };
    if address == libc::MAP_FAILED {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the mapping has a layout's size and a page's alignment, is never
    // unmapped, and is made of atomics alone, for which any bytes are values
    // and which other processes may write.
    Ok(unsafe { &*address.cast::<Layout>() })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::PathBuf;

    fn file(name: &str) -> PathBuf {
        std::env::temp_dir().join(format!("gpumem-machine-{name}-{}", std::process::id()))
    }

    /// Another process that lives as long as this test.
    fn parent() -> Identity {
        Identity::of(std::os::unix::process::parent_id()).unwrap()
    }

    #[test]
    fn what_a_dead_process_has_is_free() {
        let path = file("dead");
        let mut shared = Shared::open(&path).unwrap();
        let dead = Identity::from_word(Identity::own().unwrap().word() + (1 << 30));
        let slot = &shared.layout.slots[3];
        slot.devices[1].settled.store(70, SeqCst);
        // It died while it announced more.
        slot.devices[1].pending.store(20, SeqCst);
        slot.owner.store(dead.word(), SeqCst);
        // This one died while it took its slot.
        shared.layout.slots[4]
            .owner
            .store(dead.word() | ATTACHING, SeqCst);
        assert_eq!(shared.charge(1, 20, 100, |_| 0), Ok(20));
        assert_eq!(shared.charge(1, 90, 100, |_| 0), Err(Refusal::Full));
        assert_eq!(shared.charge(1, 80, 100, |_| 0), Ok(100));
        assert_eq!(shared.other_processes(1), []);
        let owned = |slot: &&Slot| slot.owner.load(SeqCst) != 0;
        assert_eq!(shared.layout.slots.iter().filter(owned).count(), 1);
        std::fs::remove_file(path).unwrap();
    }

    #[test]
    fn what_a_living_process_has_is_taken() {
        let path = file("living");
        let mut shared = Shared::open(&path).unwrap();
        let slot = &shared.layout.slots[0];
        slot.devices[0].settled.store(70, SeqCst);
        slot.owner.store(parent().word(), SeqCst);
        assert_eq!(shared.charge(0, 31, 100, |_| 0), Err(Refusal::Full));
        assert_eq!(shared.charge(0, 30, 100, |_| 0), Ok(100));
        assert_eq!(shared.other_processes(0), [(parent().pid(), 70)]);
        slot.devices[0].settled.store(0, SeqCst);
        assert_eq!(shared.charge(0, 70, 100, |_| 0), Ok(100));
        shared.discharge(0, 100);
        assert_eq!(shared.charge(0, 100, 100, |_| 0), Ok(100));
        std::fs::remove_file(path).unwrap();
    }

    #[test]
    fn what_is_announced_is_not_given_to_another() {
        let path = file("announced");
        let mut shared = Shared::open(&path).unwrap();
        // A process that stands still amid a charge: the one that runs us.
        let slot = &shared.layout.slots[0];
        slot.devices[0].pending.store(70, SeqCst);
        slot.owner.store(parent().word(), SeqCst);
        assert_eq!(shared.charge(0, 31, 100, |_| 0), Err(Refusal::Full));
        assert_eq!(shared.charge(0, 30, 100, |_| 0), Ok(30));
        std::fs::remove_file(path).unwrap();
    }

    #[test]
    fn other_files_are_no_machines() {
        let path = file("other");
        std::fs::write(&path, "text").unwrap();
        assert!(Shared::open(&path).is_err());
        assert_eq!(std::fs::read(&path).unwrap(), b"text");
        std::fs::write(&path, vec![b'x'; FILE_BYTES]).unwrap();
        assert!(Shared::open(&path).is_err());
        std::fs::remove_file(&path).unwrap();
        assert!(Shared::open(&path.join("in")).is_err());
        assert!(Shared::open(Path::new("/")).is_err());
        assert!(Shared::open(Path::new("/dev/null")).is_err());
    }

    #[test]
    fn whatever_lies_in_the_slots_is_counted_without_harm() {
        let path = file("garbage");
        let mut bytes = vec![0xa5; FILE_BYTES];
        bytes[..8].copy_from_slice(&MAGIC.to_ne_bytes());
        std::fs::write(&path, bytes).unwrap();
        let mut shared = Shared::open(&path).unwrap();
        assert_eq!(shared.charge(63, 5, 10, |_| 0), Ok(5));
        assert_eq!(shared.other_processes(63), []);
        std::fs::remove_file(path).unwrap();
    }
}
