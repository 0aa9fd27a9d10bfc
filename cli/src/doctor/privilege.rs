//! Programs that run with more rights than their user has: of these the dynamic loader takes no `LD_PRELOAD` (ld.so(8),
//! secure-execution mode).

use std::fs::Metadata;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use rustix::fs::{StatVfsMountFlags, getxattr, statvfs};
use rustix::process::{getegid, getuid};

const SETUID: u32 = 0o4000;
const SETGID: u32 = 0o2000;
/// Without it, the bit on a file means mandatory locking.
const GROUP_EXECUTES: u32 = 0o010;

/// Where a program's additional rights come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Privilege {
    /// It runs as its file's owner.
    Setuid {
        /// The owner's number.
        owner: u32,
    },
    /// It runs with its file's group.
    Setgid {
        /// The group's number.
        group: u32,
    },
    /// Its file has capabilities (capabilities(7)).
    Capabilities,
}

/// Who runs a program.
#[derive(Clone, Copy)]
pub(super) struct User {
    uid: u32,
    gid: u32,
}

impl User {
    /// The one who runs this.
    pub(super) fn current() -> Self {
        Self {
            uid: getuid().as_raw(),
            gid: getegid().as_raw(),
        }
    }
}

/// What a program would gain, if anything.
pub(super) fn of(path: &Path, found: &Metadata, user: User) -> Option<Privilege> {
    let bits = of_bits(found.mode(), found.uid(), found.gid(), user);
    // Root gains nothing by a file's capabilities.
    let capable =
        || user.uid != 0 && getxattr(path, "security.capability", &mut [0_u8; 64][..]).is_ok();
    let privilege = bits.or_else(|| capable().then_some(Privilege::Capabilities))?;
    // Where a mount says nosuid, none of these count.
    let ignored = statvfs(path).is_ok_and(|at| at.f_flag.contains(StatVfsMountFlags::NOSUID));
    (!ignored).then_some(privilege)
}

fn of_bits(mode: u32, owner: u32, group: u32, user: User) -> Option<Privilege> {
    if mode & SETUID != 0 && owner != user.uid {
        return Some(Privilege::Setuid { owner });
    }
    let has_group = mode & SETGID != 0 && mode & GROUP_EXECUTES != 0;
    (has_group && group != user.gid).then_some(Privilege::Setgid { group })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bit_counts_where_it_gives_what_the_user_has_not() {
        let user = User { uid: 7, gid: 9 };
        let of = |mode, owner, group| of_bits(mode, owner, group, user);
        assert_eq!(of(0o4755, 0, 9), Some(Privilege::Setuid { owner: 0 }));
        assert_eq!(of(0o4755, 7, 9), None);
        assert_eq!(of(0o2755, 0, 5), Some(Privilege::Setgid { group: 5 }));
        assert_eq!(of(0o2755, 0, 9), None);
        assert_eq!(of(0o2745, 0, 5), None);
        assert_eq!(of(0o755, 0, 5), None);
    }
}
