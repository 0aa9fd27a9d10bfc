//! Who this process is, read from the kernel once.

use std::fs;

use gpumem_wire::define::ProcessDefinition;
use gpumem_wire::limits;

use crate::record::clock;

/// Variables that tell what the process is to its job, or how its frameworks manage memory.
const VARIABLES: &[&str] = &[
    "RANK",
    "LOCAL_RANK",
    "WORLD_SIZE",
    "TORCHELASTIC_RUN_ID",
    "SLURM_JOB_ID",
    "SLURM_STEP_ID",
    "SLURM_PROCID",
    "OMPI_COMM_WORLD_RANK",
    "PMI_RANK",
    "CUDA_VISIBLE_DEVICES",
    "CUDA_MODULE_LOADING",
    "PYTORCH_ALLOC_CONF",
    "PYTORCH_CUDA_ALLOC_CONF",
    "PYTORCH_NO_CUDA_MEMORY_CACHING",
    "XLA_PYTHON_CLIENT_PREALLOCATE",
    "XLA_PYTHON_CLIENT_MEM_FRACTION",
    "XLA_PYTHON_CLIENT_ALLOCATOR",
    "GPUMEM_SESSION",
    "GPUMEM_SIM_DEVICE",
];

/// Words in a flag's or variable's name that make its value a secret.
const SECRETS: [&str; 5] = ["token", "key", "secret", "password", "passwd"];

/// This process.
pub(crate) fn process() -> ProcessDefinition {
    let stat = fs::read_to_string("/proc/self/stat").unwrap_or_default();
    // The command in parentheses may hold anything; the fields after the last parenthesis are numbers, from field 3 on.
    let fields: Vec<&str> = stat
        .rsplit(')')
        .next()
        .unwrap_or_default()
        .split_ascii_whitespace()
        .collect();
    let field = |number: usize| {
        fields
            .get(number - 3)
            .and_then(|field| field.parse().ok())
            .unwrap_or(0u64)
    };
    let command = fs::read("/proc/self/cmdline").unwrap_or_default();
    let arguments = command
        .split(|&byte| byte == 0)
        .filter(|argument| !argument.is_empty())
        .map(text);
    let link = |path: &str| {
        fs::read_link(path)
            .map(|path| path.to_string_lossy().into_owned())
            .unwrap_or_default()
    };
    let anchor = clock::anchor();
    ProcessDefinition {
        host: fs::read_to_string("/proc/sys/kernel/hostname")
            .unwrap_or_default()
            .trim()
            .to_owned(),
        boot_id: fs::read_to_string("/proc/sys/kernel/random/boot_id")
            .unwrap_or_default()
            .trim()
            .to_owned(),
        pid_namespace: link("/proc/self/ns/pid")
            .bytes()
            .filter(u8::is_ascii_digit)
            .fold(0, |number: u64, digit| {
                number
                    .wrapping_mul(10)
                    .wrapping_add(u64::from(digit - b'0'))
            }),
        pid: std::process::id(),
        parent: field(4) as u32,
        group: field(5) as u32,
        start_ticks: field(22),
        nonce: nonce(anchor.ticks),
        // SAFETY: a system call without arguments.
        uid: unsafe { libc::getuid() },
        executable: link("/proc/self/exe"),
        command: masked(bounded(arguments)),
        directory: link("/proc/self/cwd"),
        environment: VARIABLES
            .iter()
            .filter_map(|name| Some(((*name).to_owned(), cut(std::env::var(name).ok()?))))
            .collect(),
        started_ns: anchor.realtime_ns,
        shim_version: env!("CARGO_PKG_VERSION").to_owned(),
    }
}

/// A command line may be megabytes long; a definition may not.
const COMMAND_BYTES: usize = 64 << 10;

/// The first arguments, as many as fit.
fn bounded(arguments: impl Iterator<Item = String>) -> impl Iterator<Item = String> {
    arguments
        .take(limits::COMMAND_ARGUMENTS)
        .scan(COMMAND_BYTES, |room, argument| {
            *room = room.checked_sub(argument.len())?;
            Some(argument)
        })
}

fn text(bytes: &[u8]) -> String {
    cut(String::from_utf8_lossy(bytes).into_owned())
}

fn cut(mut text: String) -> String {
    let end = (0..=limits::STRING_BYTES.min(text.len()))
        .rev()
        .find(|&at| text.is_char_boundary(at))
        .unwrap_or(0);
    text.truncate(end);
    text
}

/// Command lines are kept and shown, so what looks like a secret is not recorded at all.
fn masked(arguments: impl Iterator<Item = String>) -> Vec<String> {
    let is_secret = |name: &str| {
        let name = name.to_ascii_lowercase();
        SECRETS.iter().any(|secret| name.contains(secret))
    };
    let mut hide_next = false;
    arguments
        .map(|argument| {
            if core::mem::take(&mut hide_next) && !argument.starts_with("--") {
                return "***".to_owned();
            }
            match argument.split_once('=') {
                Some((name, _)) if is_secret(name) => format!("{name}=***"),
                Some(_) => argument,
                None => {
                    hide_next = argument.starts_with('-') && is_secret(&argument);
                    argument
                }
            }
        })
        .collect()
}

fn nonce(otherwise: u64) -> u64 {
    let mut bytes = [0u8; 8];
    // SAFETY: getrandom writes at most the 8 bytes that it is given.
    let got = unsafe {
        libc::syscall(
            libc::SYS_getrandom,
            bytes.as_mut_ptr(),
            bytes.len(),
            libc::GRND_NONBLOCK,
        )
    };
    if got == 8 {
        u64::from_ne_bytes(bytes)
    } else {
        otherwise
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_on_the_command_line_are_masked() {
        let given = [
            "train.py",
            "--hf-token=abc",
            "--api-key",
            "xyz",
            "--lr=0.1",
            "PASSWORD=p",
            "--token",
            "--next",
        ];
        let shown = masked(given.into_iter().map(str::to_owned));
        assert_eq!(
            shown,
            [
                "train.py",
                "--hf-token=***",
                "--api-key",
                "***",
                "--lr=0.1",
                "PASSWORD=***",
                "--token",
                "--next"
            ]
        );
    }

    #[test]
    fn a_huge_command_line_is_cut() {
        let kept: Vec<String> = bounded((0..250).map(|_| "x".repeat(1200))).collect();
        assert_eq!(kept.len(), COMMAND_BYTES / 1200);
    }

    #[test]
    fn this_process_is_described() {
        let process = process();
        assert_eq!(process.pid, std::process::id());
        assert!(process.start_ticks > 0 && process.pid_namespace > 0 && process.group > 0);
        assert!(!process.boot_id.is_empty() && !process.command.is_empty());
    }
}
