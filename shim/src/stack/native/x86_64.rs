//! What depends on the machine: registers, the 8-byte rule, and one step outwards.
//!
//! A twin for another architecture has the same four items: [`Registers`], [`Rule`], [`Step`], [`step`].

use core::arch::asm;

use gimli::{CfaRule, Encoding, Operation, RegisterRule, UnwindExpression, X86_64};

use super::Bounds;
use super::rules::{EhFrame, Row};

/// Where a walk stands: the registers that lead from frame to frame.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Registers {
    /// The instruction pointer: a return address, except in the innermost frame and under a signal.
    pub(crate) ip: u64,
    /// The stack pointer.
    pub(crate) sp: u64,
    /// The frame pointer register, whatever its function uses it for.
    pub(crate) bp: u64,
}

impl Registers {
    /// The registers of the function that this is inlined into.
    #[inline(always)]
    pub(crate) fn here() -> Self {
        let (ip, sp, bp): (u64, u64, u64);
        // SAFETY: three registers are read; memory, flags and the stack are left alone. Nothing is pushed between the
        // address that `lea` yields and the read of the stack pointer, so the unwind rule of `ip` fits `sp`.
        unsafe {
            asm!(
                "lea {ip}, [rip]",
                "mov {sp}, rsp",
                "mov {bp}, rbp",
                ip = out(reg) ip,
                sp = out(reg) sp,
                bp = out(reg) bp,
                options(nomem, nostack, preserves_flags),
            );
        }
        Self { ip, sp, bp }
    }
}

/// How to leave a frame, in 8 bytes: the kind (bits 0 to 3), whether the caller's rbp was saved (bit 4), the offset of the
/// CFA from its base (bits 8 to 39, signed) and the offset of the saved rbp (bits 40 to 55, signed). The CFA, the "canonical
/// frame address", is the caller's stack pointer; the return address lies just below it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Rule(pub(crate) u64);

impl Rule {
    /// The outermost frame: its return address is undefined.
    pub(crate) const END: Self = Self(1);
    /// Nothing is known of this address, or its rule is of a form that no compiler was seen to emit for calls.
    pub(crate) const UNKNOWN: Self = Self(2);
    /// The kernel's signal frame: the interrupted registers lie in the `ucontext` at the stack pointer.
    const SIGNAL: Self = Self(3);
    const FROM_SP: u64 = 4;
    const FROM_BP: u64 = 5;
    /// GCC's dynamically realigned frames: the CFA is *stored* at an offset from rbp, and so is the caller's rbp.
    const DEREFERENCED: u64 = 6;
    const SAVES_BP: u64 = 1 << 4;

    fn new(kind: u64, cfa_offset: i64, saved_bp: Option<i64>) -> Option<Self> {
        let cfa_offset = i32::try_from(cfa_offset).ok()?;
        let bits = kind | u64::from(cfa_offset as u32) << 8;
        Some(match saved_bp {
            None => Self(bits),
            Some(offset) => {
                Self(bits | Self::SAVES_BP | u64::from(i16::try_from(offset).ok()? as u16) << 40)
            }
        })
    }

    fn kind(self) -> u64 {
        self.0 & 15
    }

    fn cfa_offset(self) -> u64 {
        i64::from((self.0 >> 8) as u32 as i32) as u64
    }

    fn bp_offset(self) -> u64 {
        i64::from((self.0 >> 40) as u16 as i16) as u64
    }

    /// Packs a row of unwind information. [`Rule::UNKNOWN`] where it does not fit.
    pub(crate) fn from_row(
        row: &Row,
        is_signal_frame: bool,
        eh_frame: &EhFrame,
        encoding: Encoding,
    ) -> Self {
        if is_signal_frame {
            return Self::SIGNAL;
        }
        let packed = match row.register(X86_64::RA) {
            Some(RegisterRule::Undefined) => return Self::END,
            Some(RegisterRule::Offset(-8)) => Self::pack(row, eh_frame, encoding),
            _ => None,
        };
        packed.unwrap_or(Self::UNKNOWN)
    }

    fn pack(row: &Row, eh_frame: &EhFrame, encoding: Encoding) -> Option<Self> {
        let saved_bp = row.register(X86_64::RBP);
        match row.cfa() {
            CfaRule::RegisterAndOffset { register, offset } => {
                let kind = match *register {
                    X86_64::RSP => Self::FROM_SP,
                    X86_64::RBP => Self::FROM_BP,
                    _ => return None,
                };
                match saved_bp {
                    None | Some(RegisterRule::SameValue | RegisterRule::Undefined) => {
                        Self::new(kind, *offset, None)
                    }
                    Some(RegisterRule::Offset(saved)) => Self::new(kind, *offset, Some(saved)),
                    _ => None,
                }
            }
            CfaRule::Expression(cfa) => {
                let Some(RegisterRule::Expression(saved)) = saved_bp else {
                    return None;
                };
                let cfa = offset_from_bp(cfa, true, eh_frame, encoding)?;
                let saved = offset_from_bp(&saved, false, eh_frame, encoding)?;
                Self::new(Self::DEREFERENCED, cfa, Some(saved))
            }
        }
    }
}

/// The offset in `DW_OP_breg6 offset`, which must be followed by `DW_OP_deref` exactly if `dereferenced`.
fn offset_from_bp(
    expression: &UnwindExpression<usize>,
    dereferenced: bool,
    eh_frame: &EhFrame,
    encoding: Encoding,
) -> Option<i64> {
    let mut operations = expression.get(eh_frame).ok()?.operations(encoding);
    let offset = match operations.next().ok()?? {
        Operation::RegisterOffset {
            register, offset, ..
        } if register == X86_64::RBP => offset,
        _ => return None,
    };
    if dereferenced && !matches!(operations.next().ok()??, Operation::Deref { size: 8, .. }) {
        return None;
    }
    operations.next().ok()?.is_none().then_some(offset)
}

/// One frame and the way out of it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Step {
    /// The registers in this frame.
    pub(crate) at: Registers,
    /// The registers in its caller.
    pub(crate) next: Registers,
    /// Where the return address was read; 0 if the step read more than a return address and a saved rbp, so that re-reading
    /// those two does not prove it.
    return_address_at: u64,
    /// Where the saved rbp was read; 0 if rbp goes through the frame unchanged.
    saved_bp_at: u64,
}

impl Step {
    /// Whether the frame contains this address of the stack.
    #[inline(always)]
    pub(crate) fn contains(&self, address: u64) -> bool {
        address >= self.at.sp && address < self.next.sp
    }

    /// Whether taking this step again, from the same registers, would lead to the same caller.
    ///
    /// # Safety
    /// The step was taken on this thread, and the stack pointer is at or below `self.at.sp` now: then the two words are
    /// still mapped, since they lie between there and the top of the stack.
    #[inline(always)]
    pub(crate) unsafe fn still_holds(&self) -> bool {
        // SAFETY: by the contract above.
        self.return_address_at != 0 && unsafe { self.words_hold() }
    }

    /// As [`Step::still_holds`], but a step that those two words do not prove is believed.
    ///
    /// # Safety
    /// As [`Step::still_holds`].
    #[inline(always)]
    pub(crate) unsafe fn may_still_hold(&self) -> bool {
        // SAFETY: by the contract above.
        self.return_address_at == 0 || unsafe { self.words_hold() }
    }

    #[inline(always)]
    unsafe fn words_hold(&self) -> bool {
        // SAFETY: both addresses were in bounds when the step was taken; the callers' contract says they still are.
        unsafe {
            word(self.return_address_at) == self.next.ip
                && (self.saved_bp_at == 0 || word(self.saved_bp_at) == self.next.bp)
        }
    }
}

/// # Safety
/// `address` is a mapped, aligned word of this thread's stack.
#[inline(always)]
unsafe fn word(address: u64) -> u64 {
    // SAFETY: by the contract above. Volatile: functions further out own these words, and the compiler must neither
    // assume them constant between two walks nor merge the reads.
    unsafe { (address as *const u64).read_volatile() }
}

/// Return addresses below this are not code: the kernel never maps the first page, and `clone` starts threads at 0.
const LOWEST_CODE: u64 = 4096;

/// Leaves the frame `at` by `rule`. `None`: the stack ends here, or what was found cannot be a caller.
///
/// # Safety
/// `at.sp` is at or above this thread's stack pointer, and `bounds` are this thread's.
#[inline(always)]
pub(crate) unsafe fn step(rule: Rule, at: Registers, bounds: Bounds) -> Option<Step> {
    let base = match rule.kind() {
        Rule::FROM_SP => at.sp,
        Rule::FROM_BP => at.bp,
        // SAFETY: the same contract.
        _ => return unsafe { rare_step(rule, at, bounds) },
    };
    let cfa = base.wrapping_add(rule.cfa_offset());
    // The stack grows down, so a caller's frame lies above: this makes the walk end, whatever the memory holds.
    if cfa <= at.sp || cfa > bounds.high || cfa & 7 != 0 {
        return None;
    }
    let return_address_at = cfa - 8;
    let mut next = Registers {
        // SAFETY: at.sp <= cfa - 8 < bounds.high, which is mapped (see `Bounds`).
        ip: unsafe { word(return_address_at) },
        sp: cfa,
        bp: at.bp,
    };
    let mut saved_bp_at = 0;
    if rule.0 & Rule::SAVES_BP != 0 {
        saved_bp_at = cfa.wrapping_add(rule.bp_offset());
        if saved_bp_at < at.sp || saved_bp_at >= cfa || saved_bp_at & 7 != 0 {
            return None;
        }
        // SAFETY: at.sp <= saved_bp_at < cfa <= bounds.high, and aligned.
        next.bp = unsafe { word(saved_bp_at) };
    }
    (next.ip >= LOWEST_CODE).then_some(Step {
        at,
        next,
        return_address_at,
        saved_bp_at,
    })
}

#[cold]
#[inline(never)]
unsafe fn rare_step(rule: Rule, at: Registers, bounds: Bounds) -> Option<Step> {
    let read = |address: u64| {
        // SAFETY: from the frame's own stack pointer up to the top, everything is mapped (see `Bounds`).
        (address >= at.sp && bounds.holds_word(address)).then(|| unsafe { word(address) })
    };
    let next = if rule.kind() == Rule::DEREFERENCED {
        let cfa = read(at.bp.wrapping_add(rule.cfa_offset()))?;
        Registers {
            ip: read(cfa.wrapping_sub(8))?,
            sp: cfa,
            bp: read(at.bp.wrapping_add(rule.bp_offset()))?,
        }
    } else if rule == Rule::SIGNAL {
        // `ucontext_t` on x86-64: general registers start at 40, in the order of <sys/ucontext.h>.
        let register = |index: i32| read(at.sp + 40 + 8 * index as u64);
        Registers {
            ip: register(libc::REG_RIP)?,
            sp: register(libc::REG_RSP)?,
            bp: register(libc::REG_RBP)?,
        }
    } else {
        return None;
    };
    (next.sp > at.sp && next.sp <= bounds.high && next.ip >= LOWEST_CODE).then_some(Step {
        at,
        next,
        return_address_at: 0,
        saved_bp_at: 0,
    })
}

impl Rule {
    /// Whether the caller's `ip` is where it was interrupted, and not where a call will return to.
    #[inline(always)]
    pub(crate) fn is_signal(self) -> bool {
        self == Self::SIGNAL
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn offsets_of_both_signs_survive_packing() {
        for cfa in [8, 16, -8, 0x7fff_fff8, -0x7fff_fff8] {
            for bp in [-16, -32760, 0] {
                let rule = Rule::new(Rule::FROM_SP, cfa, Some(bp)).unwrap();
                assert_eq!(
                    (rule.cfa_offset() as i64, rule.bp_offset() as i64),
                    (cfa, bp)
                );
                assert_eq!(rule.kind(), Rule::FROM_SP);
            }
        }
        assert_eq!(Rule::new(Rule::FROM_SP, 1 << 40, None), None);
        assert_eq!(Rule::new(Rule::FROM_SP, 8, Some(-40_000)), None);
    }

    #[test]
    fn a_step_leads_out_of_the_frame_and_never_out_of_the_bounds() {
        // [padding, saved rbp, return address, outside]
        let stack = [0u64, 0xb0, 0x40_0000, 0];
        let low = stack.as_ptr() as u64;
        let at = Registers {
            ip: 0x1234,
            sp: low,
            bp: 7,
        };
        let bounds = Bounds {
            low,
            high: low + 24,
        };
        let rule = Rule::new(Rule::FROM_SP, 24, Some(-16)).unwrap();
        // SAFETY: `stack` is on this thread's stack and alive.
        let found = unsafe { step(rule, at, bounds) }.unwrap();
        assert_eq!(
            found.next,
            Registers {
                ip: 0x40_0000,
                sp: low + 24,
                bp: 0xb0
            }
        );
        // SAFETY: as above.
        assert!(unsafe { found.still_holds() });
        let beyond = Rule::new(Rule::FROM_SP, 32, None).unwrap();
        let backwards = Rule::new(Rule::FROM_SP, -8, None).unwrap();
        for rule in [beyond, backwards, Rule::END, Rule::UNKNOWN] {
            // SAFETY: as above.
            assert!(unsafe { step(rule, at, bounds) }.is_none());
        }
    }
}
