//! Which process this is, and whether another one still lives.
//!
//! A process id is given again after its process has ended, so that a process is
//! known by the id and the time at which it started (`proc_pid_stat(5)`).

use std::io;

/// A process, in one word that no other process ever has: the id in the low
/// bits (Linux allows no more than 2^22), above it the start in clock ticks
/// since boot (which lasts for centuries).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Identity(u64);

const PID_BITS: u32 = 22;
/// Bits that no identity uses.
const UNUSED: u64 = 0b11 << 62;

/// What the kernel says of a process.
struct Stat {
    ended: bool,
    start_ticks: u64,
}

impl Identity {
    /// This process; an error where `/proc` cannot be read.
    pub(crate) fn own() -> io::Result<Self> {
        Self::of(std::process::id())
    }

    /// The process that has an id now.
    pub(crate) fn of(pid: u32) -> io::Result<Self> {
        let start_ticks = stat(pid)?.start_ticks;
        Ok(Self((start_ticks << PID_BITS | u64::from(pid)) & !UNUSED))
    }

    /// The process that a word of shared memory names, whatever lies there.
    pub(crate) fn from_word(word: u64) -> Self {
        Self(word & !UNUSED)
    }

    /// The word, whose highest two bits are free for others.
    pub(crate) fn word(self) -> u64 {
        self.0
    }

    pub(crate) fn pid(self) -> u32 {
        (self.0 & ((1 << PID_BITS) - 1)) as u32
    }

    /// Whether the process still lives. One that was killed and that nobody has
    /// waited for does not. In doubt it does.
    pub(crate) fn lives(self) -> bool {
        let pid = self.pid();
        if pid == 0 {
            return false;
        }
        match stat(pid) {
            Ok(stat) => !stat.ended && stat.start_ticks == self.0 >> PID_BITS,
            Err(_) => {
                // SAFETY: signal 0 only asks whether the process is there.
                let there = unsafe { libc::kill(pid as libc::pid_t, 0) } == 0;
                there || io::Error::last_os_error().raw_os_error() != Some(libc::ESRCH)
            }
        }
    }
}

fn stat(pid: u32) -> io::Result<Stat> {
    let text = std::fs::read_to_string(format!("/proc/{pid}/stat"))?;
    parse(&text).ok_or_else(|| io::Error::from(io::ErrorKind::InvalidData))
}

/// The fields behind the name, which may hold blanks and brackets itself.
fn parse(text: &str) -> Option<Stat> {
    let mut fields = text.rsplit_once(')')?.1.split_ascii_whitespace();
    let state = fields.next()?;
    // The 20th and the 22nd field of the line; the state is the third.
    let threads: u64 = fields.nth(16)?.parse().ok()?;
    let start_ticks = fields.nth(1)?.parse().ok()?;
    Some(Stat {
        // A first thread that has ended while others run looks like a zombie.
        ended: matches!(state, "Z" | "X" | "x") && threads <= 1,
        start_ticks,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_process_lives_and_its_like_do_not() {
        let own = Identity::own().unwrap();
        assert_eq!(own.pid(), std::process::id());
        assert!(own.lives() && Identity::from_word(own.word()).lives());
        let other_start = Identity::from_word(own.word() + (1 << PID_BITS));
        assert!(!other_start.lives(), "the id was given again");
        assert!(!Identity::from_word(0).lives());
        assert!(!Identity::from_word(u64::MAX).lives());
    }

    #[test]
    fn a_process_that_nobody_has_waited_for_has_ended() {
        let mut child = std::process::Command::new("cat")
            .stdin(std::process::Stdio::piped())
            .spawn()
            .unwrap();
        let identity = Identity::of(child.id()).unwrap();
        assert!(identity.lives());
        child.kill().unwrap();
        let mut info = std::mem::MaybeUninit::<libc::siginfo_t>::zeroed();
        // SAFETY: the process is our child, and is left to be waited for.
        let waited = unsafe {
            let options = libc::WEXITED | libc::WNOWAIT;
            libc::waitid(libc::P_PID, child.id(), info.as_mut_ptr(), options)
        };
        assert_eq!(waited, 0);
        assert!(!identity.lives());
        child.wait().unwrap();
        assert!(!identity.lives());
    }

    #[test]
    fn a_name_may_hold_anything() {
        let text = "7 (a) Z 9) S 1 7 7 0 -1 4 0 0 0 0 0 0 0 0 20 0 3 0 4711 1 1";
        let stat = parse(text).unwrap();
        assert_eq!((stat.ended, stat.start_ticks), (false, 4711));
        assert!(parse("7 (cat").is_none());
    }
}
