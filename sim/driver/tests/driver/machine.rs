//! Devices that several processes share: real processes, some of which are
//! killed.

use std::fs::OpenOptions;
use std::io::{BufRead, BufReader, Write};
use std::os::fd::AsRawFd;
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};

use crate::library::*;

/// Set for the processes that a test starts: what they shall do.
pub(crate) const ROLE: &str = "GPUMEM_SIM_TEST_ROLE";

/// A process that shares the machine, and does one thing a line.
pub(crate) struct Other {
    pub(crate) child: Child,
    to: ChildStdin,
    from: BufReader<ChildStdout>,
}

impl Other {
    pub(crate) fn start(test: &str, role: &str) -> Self {
        Self::start_under(test, role, &[])
    }

    /// Starts it under further variables.
    pub(crate) fn start_under(test: &str, role: &str, environment: &[(&str, &str)]) -> Self {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args([test, "--exact", "--nocapture"])
            .env(ROLE, role)
            .envs(environment.iter().copied())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let to = child.stdin.take().unwrap();
        let from = BufReader::new(child.stdout.take().unwrap());
        Self { child, to, from }
    }

    /// Has it do something, and gives its answer.
    pub(crate) fn ask(&mut self, wish: &str) -> String {
        writeln!(self.to, "{wish}").unwrap();
        self.answer()
    }

    pub(crate) fn answer(&mut self) -> String {
        let mut line = String::new();
        loop {
            line.clear();
            assert_ne!(self.from.read_line(&mut line).unwrap(), 0, "it has ended");
            // Amid what the harness prints.
            if let Some((_, answer)) = line.trim_end().split_once("answer ") {
                return answer.to_owned();
            }
        }
    }

    pub(crate) fn kill(mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }
}

/// The other process: `alloc N` and `free` answer the result, `used` the bytes.
pub(crate) fn serve(driver: &Driver) {
    driver.start();
    let mut held = Vec::new();
    for line in std::io::stdin().lines().map(Result::unwrap) {
        let answer = match line.split_once(' ') {
            Some(("alloc", mib)) => {
                let mut out = 0;
                let result = driver.cuMemAlloc_v2(&mut out, mib.parse::<usize>().unwrap() * MIB);
                held.push(out);
                result as usize
            }
            _ if line == "free" => driver.cuMemFree_v2(held.pop().unwrap()) as usize,
            _ => driver.used(),
        };
        println!("answer {answer}");
    }
}

/// A number in a file that processes share.
fn holders(path: &str) -> &'static AtomicU32 {
    let mut options = OpenOptions::new();
    let file = options.read(true).write(true).open(path).unwrap();
    let access = libc::PROT_READ | libc::PROT_WRITE;
    // SAFETY: a new mapping of a file that is long enough, never unmapped, of a
    // number that is changed atomically alone.
    unsafe {
        let address = libc::mmap(
            std::ptr::null_mut(),
            4,
            access,
            libc::MAP_SHARED,
            file.as_raw_fd(),
            0,
        );
        assert_ne!(address, libc::MAP_FAILED);
        &*address.cast::<AtomicU32>()
    }
}

/// Runs a test's body on a machine of its own.
pub(crate) fn on_machine(test: &str, environment: &[(&str, &str)], body: impl FnOnce(&Driver)) {
    let file = scratch(&test.replace("::", "-"));
    let mut all = environment.to_vec();
    all.push(("GPUMEM_SIM_MACHINE", file.to_str().unwrap()));
    isolated(test, &all, body);
    // Only the harness made the name that the processes used.
    let _ = std::fs::remove_file(file);
}

#[test]
fn the_limit_is_for_all_processes() {
    let test = "machine::the_limit_is_for_all_processes";
    let environment = [
        ("GPUMEM_SIM_MEMORY", "100MiB"),
        ("GPUMEM_SIM_CONTEXT", "4MiB"),
    ];
    on_machine(test, &environment, |driver| {
        if std::env::var_os(ROLE).is_some() {
            return serve(driver);
        }
        driver.start();
        let memory = driver.alloc(60 * MIB);
        let mut other = Other::start(test, "serve");
        assert_eq!(other.ask("used"), (68 * MIB).to_string());
        assert_eq!(other.ask("alloc 34"), OUT_OF_MEMORY.to_string());
        assert_eq!(other.ask("alloc 32"), "0");
        assert_eq!(driver.used(), 100 * MIB);
        let mut out = 0;
        assert_eq!(driver.cuMemAlloc_v2(&mut out, 1), OUT_OF_MEMORY);
        let listed = [
            (std::process::id(), 64 * MIB as u64),
            (other.child.id(), 36 * MIB as u64),
        ];
        assert_eq!(driver.processes(), listed);
        // The truth is of this process.
        let truth = driver.truth();
        assert_eq!(truth["devices"][0]["charged_bytes"], 64 * MIB);
        assert_eq!(driver.cuMemFree_v2(memory), SUCCESS);
        assert_eq!(other.ask("alloc 60"), "0");
        assert_eq!(other.ask("free"), "0");
        assert_eq!(driver.used(), 40 * MIB);
        other.kill();
        assert_eq!(driver.used(), 4 * MIB);
        assert_eq!(driver.processes(), [(std::process::id(), 4 * MIB as u64)]);
    });
}

#[test]
fn a_killed_process_gives_all_back() {
    let test = "machine::a_killed_process_gives_all_back";
    on_machine(test, &[("GPUMEM_SIM_MEMORY", "100MiB")], |driver| {
        if let Some(role) = std::env::var_os(ROLE) {
            if role == "serve" {
                return serve(driver);
            }
            // Takes and gives back until it is killed, at any instruction.
            driver.start();
            println!("answer ready");
            loop {
                let memory = driver.alloc(20 * MIB);
                assert_eq!(driver.cuMemFree_v2(memory), SUCCESS);
            }
        }
        driver.start();
        for _ in 0..20 {
            let mut busy = Other::start(test, "busy");
            assert_eq!(busy.answer(), "ready");
            // Alone and beside it.
            let memory = driver.alloc(80 * MIB);
            assert_eq!(driver.cuMemFree_v2(memory), SUCCESS);
            busy.kill();
            let memory = driver.alloc(100 * MIB);
            assert_eq!(driver.cuMemFree_v2(memory), SUCCESS);
        }
        // Not waited for, it has ended all the same.
        let mut other = Other::start(test, "serve");
        assert_eq!(other.ask("alloc 100"), "0");
        other.child.kill().unwrap();
        let mut info = std::mem::MaybeUninit::<libc::siginfo_t>::zeroed();
        let options = libc::WEXITED | libc::WNOWAIT;
        // SAFETY: our own child, which is left to be waited for.
        let ended =
            unsafe { libc::waitid(libc::P_PID, other.child.id(), info.as_mut_ptr(), options) };
        assert_eq!(ended, 0);
        driver.alloc(100 * MIB);
        other.child.wait().unwrap();
    });
}

#[test]
fn processes_at_once_never_have_more_than_there_is() {
    let test = "machine::processes_at_once_never_have_more_than_there_is";
    on_machine(test, &[("GPUMEM_SIM_MEMORY", "8MiB")], |driver| {
        if let Ok(role) = std::env::var(ROLE) {
            driver.start();
            let holders = holders(&role);
            let (mut had, mut refused) = (0, 0);
            for _ in 0..20_000 {
                let mut memory = 0;
                match driver.cuMemAlloc_v2(&mut memory, 8 * MIB) {
                    SUCCESS => {
                        had += 1;
                        // Counted while it certainly has the memory.
                        let now = holders.fetch_add(1, Ordering::SeqCst) + 1;
                        assert_eq!(now, 1, "they have all of the memory");
                        holders.fetch_sub(1, Ordering::SeqCst);
                        assert_eq!(driver.cuMemFree_v2(memory), SUCCESS);
                    }
                    _ => refused += 1,
                }
            }
            println!("answer {had} {refused}");
            return;
        }
        driver.start();
        let counter = scratch("holders");
        std::fs::write(&counter, [0; 4]).unwrap();
        let role = counter.to_str().unwrap();
        let mut all: Vec<_> = (0..4).map(|_| Other::start(test, role)).collect();
        for other in &mut all {
            let answer = other.answer();
            let had: u64 = answer.split(' ').next().unwrap().parse().unwrap();
            assert!(had > 0, "{answer}");
            assert!(other.child.wait().unwrap().success(), "{answer}");
        }
        assert_eq!(driver.used(), 0);
        std::fs::remove_file(counter).unwrap();
    });
}

#[test]
fn a_forked_child_has_nothing_of_its_parents() {
    let test = "machine::a_forked_child_has_nothing_of_its_parents";
    on_machine(test, &[("GPUMEM_SIM_MEMORY", "100MiB")], |driver| {
        // Before the driver is started a child may use it, and has its own.
        assert_eq!(driver.processes(), []);
        let mut pipe = [0; 2];
        // SAFETY: room for two descriptors.
        assert_eq!(unsafe { libc::pipe(pipe.as_mut_ptr()) }, 0);
        // SAFETY: this process has one thread that holds locks: this one, which
        // holds none.
        let child = unsafe { libc::fork() };
        if child == 0 {
            driver.start();
            driver.alloc(30 * MIB);
            // SAFETY: a byte of our own, to a descriptor of our own; then the end
            // without the harness's handlers, when the other side is closed.
            unsafe {
                libc::write(pipe[1], [1_u8].as_ptr().cast(), 1);
                libc::pause();
                libc::_exit(0);
            }
        }
        let mut byte = 0_u8;
        // SAFETY: room for a byte.
        assert_eq!(unsafe { libc::read(pipe[0], (&raw mut byte).cast(), 1) }, 1);
        driver.start();
        driver.alloc(10 * MIB);
        let listed = [
            (std::process::id(), 10 * MIB as u64),
            (child as u32, 30 * MIB as u64),
        ];
        assert_eq!(driver.processes(), listed);
        // SAFETY: our own child.
        unsafe {
            libc::kill(child, libc::SIGKILL);
            libc::waitpid(child, std::ptr::null_mut(), 0);
        }
        assert_eq!(driver.used(), 10 * MIB);
        // After it a child has no driver, and takes nothing with it when it ends.
        // SAFETY: as above.
        let child = unsafe { libc::fork() };
        if child == 0 {
            let mut out = 0;
            let result = driver.cuMemAlloc_v2(&mut out, MIB);
            // SAFETY: the end without handlers.
            unsafe { libc::_exit(i32::from(result != NOT_INITIALIZED)) };
        }
        let mut status = 1;
        // SAFETY: our own child, and room for its status.
        unsafe { libc::waitpid(child, &mut status, 0) };
        assert_eq!(status, 0);
        assert_eq!(driver.processes(), [(std::process::id(), 10 * MIB as u64)]);
    });
}

#[test]
fn what_is_no_machine_is_said_and_left_alone() {
    let test = "machine::what_is_no_machine_is_said_and_left_alone";
    let file = scratch("no-machine");
    if std::env::var_os("GPUMEM_SIM_TEST_CHILD").is_some() {
        return isolated(test, &[], |driver| {
            driver.start();
            driver.alloc(8192 * MIB);
        });
    }
    let run = |machine: &Path| {
        let output = Command::new(std::env::current_exe().unwrap())
            .args([test, "--exact", "--nocapture"])
            .envs([("GPUMEM_SIM_TEST_CHILD", "1")])
            .env("GPUMEM_SIM_MACHINE", machine)
            .output()
            .unwrap();
        assert!(output.status.success(), "{output:?}");
        let errors = String::from_utf8_lossy(&output.stderr).into_owned();
        errors.matches("shares its devices with no other").count()
    };
    for contents in [&b"short"[..], &[0xff; 532_544], &[7; 1 << 20]] {
        std::fs::write(&file, contents).unwrap();
        assert_eq!(run(&file), 1);
        assert_eq!(std::fs::read(&file).unwrap(), contents);
    }
    std::fs::remove_file(&file).unwrap();
    assert_eq!(run(&file.join("in")), 1);
    assert_eq!(run(Path::new("/")), 1);
    // An empty one, and one that is not there, become machines.
    assert_eq!(run(&file), 0);
    std::fs::write(&file, "").unwrap();
    assert_eq!(run(&file), 0);
    assert_eq!(run(&file), 0);
    std::fs::remove_file(&file).unwrap();
}

#[test]
fn shared_memory_counts_at_its_exporter() {
    let test = "machine::shared_memory_counts_at_its_exporter";
    on_machine(test, &[], |driver| {
        if let Ok(role) = std::env::var(ROLE) {
            driver.start();
            let mut handle = IpcHandle([0; 64]);
            for (index, byte) in handle.0.iter_mut().enumerate() {
                *byte = u8::from_str_radix(&role[index * 2..index * 2 + 2], 16).unwrap();
            }
            get(|out| driver.cuIpcOpenMemHandle_v2(out, handle, 1));
            println!("answer {} {:?}", driver.used(), driver.processes());
            return;
        }
        driver.start();
        let memory = driver.alloc(6 * MIB);
        let mut handle = IpcHandle([0; 64]);
        assert_eq!(driver.cuIpcGetMemHandle(&mut handle, memory), SUCCESS);
        let text: String = handle.0.iter().map(|byte| format!("{byte:02x}")).collect();
        let mut other = Other::start(test, &text);
        let listed = [(std::process::id(), 6 * MIB as u64)];
        assert_eq!(other.answer(), format!("{} {listed:?}", 6 * MIB));
        assert!(other.child.wait().unwrap().success());
    });
}
