//! `gpumem collect`: one collector, many jobs that come and go, and an end of each that nobody planned.

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStderr, ChildStdin, ChildStdout, Command, ExitStatus, Stdio};

use gpumem_collector::ingest::session::{Source, open};
use gpumem_collector::model::{Process, Session, State};
use gpumem_tests::place::finish;
use gpumem_tests::{Finished, Place, ledger, python};
use serde_json::Value;

const MIB: u64 = 1 << 20;

/// How long an event is waited for that must come at once; no test waits for it unless something is wrong.
const PATIENCE_MS: i32 = 60_000;

/// A place where jobs and readers look for a collector in a runtime directory of their own.
struct Host {
    place: Place,
}

impl Host {
    fn new() -> Self {
        let place = Place::new();
        fs::create_dir(place.path("runtime")).expect("a new folder");
        Self { place }
    }

    fn socket(&self) -> PathBuf {
        self.place.path("runtime/gpumem/collector.sock")
    }

    fn gpumem(&self, arguments: &[&str]) -> Command {
        let mut command = self.place.gpumem(arguments);
        command.env("XDG_RUNTIME_DIR", self.place.path("runtime"));
        command
    }

    #[track_caller]
    fn json(&self, arguments: &[&str]) -> Value {
        finish(self.gpumem(arguments).arg("--json")).well().json()
    }

    /// What `gpumem ps` says of what is meant where nothing is named: pid, state, live bytes.
    #[track_caller]
    fn ps(&self) -> Vec<(u64, String, u64)> {
        let report = self.json(&["ps"]);
        let mut rows: Vec<_> = report["processes"]
            .as_array()
            .expect("processes")
            .iter()
            .map(|row| {
                let state = row["state"].as_str().expect("a state").to_owned();
                let live = row["live_bytes"].as_u64().expect("bytes");
                (row["pid"].as_u64().expect("a pid"), state, live)
            })
            .collect();
        rows.sort();
        rows
    }

    fn job(&self) -> Option<Job> {
        let python = python::any()?;
        let mut command = self.place.preloaded(python);
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("python/told.py");
        command
            .arg(script)
            .env_remove("GPUMEM_SOCKET")
            .env("XDG_RUNTIME_DIR", self.place.path("runtime"));
        Some(Job::start(command))
    }

    fn collect(&self, arguments: &[&str]) -> Collector {
        let mut command = self.gpumem(&["collect"]);
        Collector::start(command.args(arguments))
    }
}

/// A program that does what it is told.
struct Job {
    child: Child,
    input: Option<ChildStdin>,
    output: BufReader<ChildStdout>,
    pid: u32,
}

impl Job {
    #[track_caller]
    fn start(mut command: Command) -> Self {
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("python runs");
        let output = BufReader::new(child.stdout.take().expect("its output"));
        let mut job = Self {
            input: child.stdin.take(),
            child,
            output,
            pid: 0,
        };
        job.pid = job.answer().parse().expect("it says its pid");
        job
    }

    #[track_caller]
    fn tell(&mut self, line: &str) {
        let input = self.input.as_mut().expect("it was not ended");
        writeln!(input, "{line}").expect("it reads");
        assert_eq!(self.answer(), "done");
    }

    fn answer(&mut self) -> String {
        let mut line = String::new();
        self.output.read_line(&mut line).expect("text");
        line.trim_end().to_owned()
    }

    fn end(mut self) -> u32 {
        self.input = None;
        let status = self.child.wait().expect("it ends");
        assert!(status.success(), "{status}");
        self.pid
    }

    fn kill(mut self) -> u32 {
        self.child.kill().expect("it runs");
        let status = self.child.wait().expect("it ends");
        assert_eq!(status.signal(), Some(libc::SIGKILL));
        self.pid
    }
}

impl Drop for Job {
    /// A test that failed leaves nothing that runs.
    fn drop(&mut self) {
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

/// A running `gpumem collect`.
struct Collector {
    child: Child,
    said: BufReader<ChildStderr>,
    socket: String,
}

impl Collector {
    /// Starts one and waits until it listens.
    #[track_caller]
    fn start(command: &mut Command) -> Self {
        let mut child = command.stderr(Stdio::piped()).spawn().expect("it runs");
        let mut said = BufReader::new(child.stderr.take().expect("its words"));
        let mut line = String::new();
        said.read_line(&mut line).expect("text");
        let socket = line.trim_end().strip_prefix("gpumem: listening at ");
        let socket = socket.unwrap_or_else(|| panic!("{line}")).to_owned();
        Self {
            child,
            said,
            socket,
        }
    }

    /// Reads what it says up to a line that has this in it.
    #[track_caller]
    fn hear(&mut self, wanted: &str) -> String {
        let mut all = String::new();
        loop {
            let mut line = String::new();
            let count = self.said.read_line(&mut line).expect("text");
            assert!(count > 0, "it never said {wanted}: {all}");
            all.push_str(&line);
            if line.contains(wanted) {
                return line;
            }
        }
    }

    fn signal(&self, signal: i32) {
        let pid = i32::try_from(self.child.id()).expect("a pid");
        // SAFETY: a signal to a child of ours that was not waited for, so its id is not another's.
        assert_eq!(unsafe { libc::kill(pid, signal) }, 0);
    }

    /// Ends it, and gives its status and what it said until then.
    fn end(self, signal: i32) -> (ExitStatus, String) {
        self.signal(signal);
        self.ended()
    }

    fn ended(mut self) -> (ExitStatus, String) {
        let mut rest = String::new();
        self.said.read_to_string(&mut rest).expect("text");
        (self.child.wait().expect("it ends"), rest)
    }

    #[track_caller]
    fn end_well(self) -> String {
        let (status, said) = self.end(libc::SIGTERM);
        assert_eq!(status.code(), Some(0), "{said}");
        said
    }
}

impl Drop for Collector {
    /// A test that failed leaves nothing that runs.
    fn drop(&mut self) {
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

/// The captures of a folder, by name.
fn captures(folder: &Path) -> Vec<PathBuf> {
    let mut paths: Vec<PathBuf> = fs::read_dir(folder)
        .expect("a folder")
        .map(|entry| entry.expect("an entry").path())
        .filter(|path| path.extension().is_some_and(|ending| ending == "gpumem"))
        .collect();
    paths.sort();
    paths
}

/// Waits until a capture that is being written says what is wanted: looks again whenever something was written to it.
#[track_caller]
fn await_capture(path: &Path, wanted: impl Fn(&Process) -> bool) {
    // SAFETY: a new descriptor that nobody else has.
    let watch = unsafe { OwnedFd::from_raw_fd(libc::inotify_init1(libc::IN_CLOEXEC)) };
    let name = std::ffi::CString::new(path.to_str().expect("a plain path")).expect("no zero");
    // SAFETY: the name ends with a zero and outlives the call.
    let added =
        unsafe { libc::inotify_add_watch(watch.as_raw_fd(), name.as_ptr(), libc::IN_MODIFY) };
    assert!(added >= 0, "{}", path.display());
    let mut watch = fs::File::from(watch);
    loop {
        let session = open(&Source::File(path.into())).expect("a session");
        if session.processes.first().is_some_and(&wanted) {
            return;
        }
        let mut ready = libc::pollfd {
            fd: watch.as_raw_fd(),
            events: libc::POLLIN,
            revents: 0,
        };
        // SAFETY: one descriptor, and a count of one.
        let count = unsafe { libc::poll(&raw mut ready, 1, PATIENCE_MS) };
        assert_eq!(count, 1, "nothing more is written to {}", path.display());
        let mut events = [0; 4096];
        assert!(watch.read(&mut events).expect("events") > 0);
    }
}

fn live_bytes(process: &Process) -> u64 {
    ledger::allocations(process).iter().sum()
}

/// The capture of a process in the usual folder that a collector wrote.
#[track_caller]
fn collected(host: &Host, pid: u32) -> PathBuf {
    let ending = format!("-{pid}-collected.gpumem");
    let found = captures(&host.place.spool());
    let found = found
        .into_iter()
        .find(|path| path.to_string_lossy().ends_with(&ending));
    found.expect("its capture")
}

#[track_caller]
fn one(session: &Session, pid: u32) -> &Process {
    let mut found = session
        .processes
        .iter()
        .filter(|process| process.definition().pid == pid);
    let process = found.next().expect("its record");
    assert!(found.next().is_none(), "process {pid} is there twice");
    process
}

#[track_caller]
fn assert_is_the_truth(host: &Host, process: &Process) {
    assert_eq!(process.lost().total(), 0);
    ledger::assert_equal(
        &ledger::of_driver(&host.place.truth(process.definition().pid), &[]),
        &ledger::of_model(process),
    );
}

#[test]
fn two_jobs_one_after_the_other() {
    let host = Host::new();
    let mut collector = host.collect(&[]);
    assert_eq!(collector.socket, host.socket().display().to_string());
    let mut pids = Vec::new();
    for count in [2, 3] {
        let Some(mut job) = host.job() else { return };
        job.tell(&format!("take {count} {MIB}"));
        job.tell("give");
        let pid = job.end();
        let said = collector.hear(&format!("{pid} ended"));
        assert!(said.contains(" MiB at the end, peak "), "{said}");
        pids.push(pid);
        // What ran last is what is meant, be there a collector or not.
        let live = (count - 1) * MIB;
        assert_eq!(host.ps(), [(pid.into(), "ended".into(), live)]);
    }
    let said = collector.end_well();
    assert!(
        said.ends_with("gpumem: ended; 2 processes recorded\n"),
        "{said}"
    );
    assert!(!host.socket().exists());
    assert_eq!(captures(&host.place.spool()).len(), 2);
    let session = host.place.spooled();
    for pid in pids {
        let process = one(&session, pid);
        assert_eq!(process.state(), State::Ended);
        assert_is_the_truth(&host, process);
    }
}

#[test]
fn two_jobs_at_once_and_one_is_killed() {
    let host = Host::new();
    let mut collector = host.collect(&[]);
    let (Some(mut first), Some(mut second)) = (host.job(), host.job()) else {
        return;
    };
    for (job, count) in [(&mut first, 2), (&mut second, 5)] {
        job.tell(&format!("take {count} {MIB}"));
        collector.hear(&format!("{} began: ", job.pid));
        let path = collected(&host, job.pid);
        await_capture(&path, |process| live_bytes(process) == count * MIB);
    }
    let running = |job: &Job, count: u64| (u64::from(job.pid), "running".into(), count * MIB);
    let mut both = [running(&first, 2), running(&second, 5)];
    both.sort();
    assert_eq!(host.ps(), both);
    let leaks = finish(&mut host.gpumem(&["leaks"])).well().out;
    let heading = leaks.lines().next().expect("a line");
    assert!(
        heading.contains("2 processes") && heading.ends_with("running"),
        "{heading}"
    );
    assert!(!leaks.contains("note:"), "{leaks}");
    let pid = first.kill();
    let killed_pid = u64::from(pid);
    collector.hear(&format!("{pid} went without a goodbye"));
    assert_eq!(host.ps(), [running(&second, 5)]);
    let killed = host.json(&["ps", &pid.to_string()]);
    assert_eq!(killed["processes"][0]["state"], "killed");
    assert_eq!(killed["processes"][0]["live_bytes"], 2 * MIB);
    second.tell("give");
    let pid = second.end();
    collector.hear(&format!("{pid} ended"));
    // Nobody speaks any more: the last session is meant, and the two of one launcher lived together in it.
    let mut both = [
        (killed_pid, "killed".into(), 2 * MIB),
        (pid.into(), "ended".into(), 4 * MIB),
    ];
    both.sort();
    assert_eq!(host.ps(), both);
    collector.end_well();
    assert_is_the_truth(&host, one(&host.place.spooled(), pid));
}

#[test]
fn the_collector_is_killed_and_another_takes_its_place() {
    let host = Host::new();
    let mut collector = host.collect(&[]);
    let Some(mut job) = host.job() else { return };
    job.tell(&format!("take 2 {MIB}"));
    collector.hear(&format!("{} began: ", job.pid));
    let path = collected(&host, job.pid);
    await_capture(&path, |process| live_bytes(process) == 2 * MIB);
    let (status, _) = collector.end(libc::SIGKILL);
    assert_eq!(status.signal(), Some(libc::SIGKILL));
    assert!(host.socket().exists(), "nobody removed the socket");
    let mut collector = host.collect(&[]);
    assert_eq!(collector.socket, host.socket().display().to_string());
    // The job runs on, by itself.
    job.tell(&format!("take 3 {MIB}"));
    job.tell("give");
    let old = job.end();
    assert_eq!(captures(&host.place.spool()).len(), 2);
    let Some(mut job) = host.job() else { return };
    job.tell(&format!("take 1 {MIB}"));
    let new = job.end();
    collector.hear(&format!("{new} ended"));
    assert_eq!(host.ps(), [(new.into(), "ended".into(), MIB)]);
    collector.end_well();
    let session = host.place.spooled();
    assert_is_the_truth(&host, one(&session, old));
    assert_is_the_truth(&host, one(&session, new));
    let both = host.json(&["ps", &old.to_string()]);
    assert_eq!(both["processes"].as_array().map(Vec::len), Some(1));
    assert_eq!(both["processes"][0]["live_bytes"], 4 * MIB);
}

#[test]
fn the_collector_is_ended_while_a_job_runs() {
    for signal in [libc::SIGTERM, libc::SIGINT] {
        let host = Host::new();
        let mut collector = host.collect(&[]);
        let Some(mut job) = host.job() else { return };
        collector.hear(&format!("{} began: ", job.pid));
        // Much that is on its way when the signal comes.
        collector.signal(libc::SIGSTOP);
        job.tell("churn 2000 512");
        job.tell("take 300 512");
        collector.signal(signal);
        collector.signal(libc::SIGCONT);
        let (status, said) = collector.ended();
        assert_eq!(status.code(), Some(0), "{said}");
        assert!(
            said.ends_with("gpumem: ended; 1 process recorded\n"),
            "{said}"
        );
        job.tell("churn 20000 512");
        job.tell("take 300 512");
        job.tell("give");
        let pid = job.end();
        assert_eq!(captures(&host.place.spool()).len(), 2);
        let session = host.place.spooled();
        let process = one(&session, pid);
        assert_eq!(process.state(), State::Ended);
        assert_is_the_truth(&host, process);
    }
}

#[test]
fn a_socket_has_one_collector() {
    let host = Host::new();
    let collector = host.collect(&[]);
    let refused = finish(&mut host.gpumem(&["collect"]));
    assert_eq!(refused.code(), 1, "{}", refused.err);
    let holder = format!("process {} listens at ", collector.child.id());
    assert!(refused.err.contains(&holder), "{}", refused.err);
    assert_eq!(refused.err.lines().count(), 1, "{}", refused.err);
    // The one that is there is not disturbed.
    let Some(mut job) = host.job() else { return };
    job.tell(&format!("take 1 {MIB}"));
    let pid = job.end();
    let said = collector.end_well();
    assert!(said.contains(&format!("{pid} ended")), "{said}");
}

#[track_caller]
fn refused(finished: &Finished, why: &str) {
    assert_eq!(finished.code(), 1, "{}", finished.err);
    assert!(finished.err.contains(why), "{}", finished.err);
    assert_eq!(finished.err.lines().count(), 1, "{}", finished.err);
}

#[test]
fn a_path_that_can_be_no_socket() {
    let host = Host::new();
    let long = host.place.path(&"x".repeat(120));
    let collect = |socket: &Path| finish(host.gpumem(&["collect", "--socket"]).arg(socket));
    refused(&collect(&long), "too long for a socket");
    let open_folder = host.place.path("open");
    fs::create_dir(&open_folder).expect("a new folder");
    fs::set_permissions(&open_folder, fs::Permissions::from_mode(0o755)).expect("a mode");
    refused(&collect(&open_folder.join("s")), "other users may enter it");
    let file = host.place.path("spool/file");
    fs::write(&file, "mine").expect("a new file");
    refused(&collect(&file), "is there already");
    assert_eq!(fs::read(&file).expect("the file"), b"mine");
    // A job that is told such a path runs as it would without a collector.
    let Some(python) = python::any() else { return };
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("python/one.py");
    let mut command = host.place.preloaded(python);
    let finished = finish(command.arg(script).env("GPUMEM_SOCKET", &long)).well();
    let pid = finished.out.trim().parse().expect("its pid");
    assert_is_the_truth(&host, one(&host.place.spooled(), pid));
}

#[test]
fn another_user_is_turned_away_and_it_is_said_once() {
    // SAFETY: asks for a number.
    if unsafe { libc::geteuid() } != 0 || !Path::new("/usr/bin/setpriv").exists() {
        println!("skipped: only root can be another user, by setpriv");
        return;
    }
    let Some(python) = python::any() else { return };
    let host = Host::new();
    let mut collector = host.collect(&[]);
    // The folder's mode keeps others out already; here it fails to.
    let folder = host.socket().parent().expect("a folder").to_owned();
    for path in [&host.place.path(""), &host.place.path("runtime"), &folder] {
        fs::set_permissions(path, fs::Permissions::from_mode(0o755)).expect("a mode");
    }
    fs::set_permissions(host.socket(), fs::Permissions::from_mode(0o666)).expect("a mode");
    let knock = "import socket, sys
knock = socket.socket(socket.AF_UNIX)
knock.connect(sys.argv[1])
assert knock.recv(1) == b''";
    for _ in 0..2 {
        let mut command = Command::new("/usr/bin/setpriv");
        command.args(["--reuid=65534", "--regid=65534", "--clear-groups"]);
        command.arg(&python).args(["-c", knock]).arg(host.socket());
        finish(&mut command).well();
    }
    collector.hear("turned away");
    let said = collector.end_well();
    assert!(!said.contains("turned away"), "{said}");
}

#[test]
fn jobs_share_a_file_or_have_one_each() {
    let host = Host::new();
    let shared = host.place.path("all.gpumem");
    let collector = host.collect(&["-o", shared.to_str().expect("a path")]);
    let mut pids = Vec::new();
    for _ in 0..2 {
        let Some(mut job) = host.job() else { return };
        job.tell(&format!("take 1 {MIB}"));
        pids.push(job.end());
    }
    collector.end_well();
    let session = open(&Source::File(shared)).expect("a session");
    assert_eq!(session.processes.len(), 2);
    for pid in pids {
        assert_is_the_truth(&host, one(&session, pid));
    }
    assert!(captures(&host.place.spool()).is_empty());
    let pattern = host.place.path("%h-%p-%r-%j.gpumem");
    let mut collector = host.collect(&["-o", pattern.to_str().expect("a path")]);
    let Some(mut job) = host.job() else { return };
    job.tell(&format!("take 1 {MIB}"));
    let pid = job.end();
    collector.hear(&format!("{pid} ended"));
    // It lies elsewhere than recordings do, and is found while its collector runs.
    assert_eq!(host.ps(), [(pid.into(), "ended".into(), MIB)]);
    let by_pid = host.json(&["ps", &pid.to_string()]);
    assert_eq!(by_pid["processes"][0]["live_bytes"], MIB);
    collector.end_well();
    let ending = format!("-{pid}-0-0.gpumem");
    let found = captures(&host.place.path(""));
    assert!(
        found
            .iter()
            .any(|path| path.to_string_lossy().ends_with(&ending)),
        "{found:?}"
    );
}

#[test]
fn the_largest_blocks_are_those_of_the_driver() {
    let host = Host::new();
    let collector = host.collect(&[]);
    let Some(mut job) = host.job() else { return };
    job.tell(&format!("take 1 {}", 9 * MIB));
    for size_bytes in [3 * MIB, 7 * MIB, MIB] {
        job.tell(&format!("take 4 {size_bytes}"));
    }
    job.tell("give");
    let pid = job.end();
    collector.end_well();
    let truth = host.place.truth(pid);
    let mut expected: Vec<(u64, u64)> = truth["live"]
        .as_array()
        .expect("a list")
        .iter()
        .filter(|object| object["kind"] == "device")
        .map(|object| {
            let number = |key: &str| object[key].as_u64().expect("a number");
            (number("size_bytes"), number("address"))
        })
        .collect();
    expected.sort_unstable();
    assert_eq!(expected.len(), 12);
    let report = host.json(&["blocks", "--top", "20"]);
    let [row] = &report["processes"].as_array().expect("processes")[..] else {
        panic!("{report}");
    };
    let mut found: Vec<(u64, u64)> = row["blocks"]
        .as_array()
        .expect("blocks")
        .iter()
        .map(|block| {
            let number = |key: &str| block[key].as_u64().expect("a number");
            (number("size"), number("address"))
        })
        .collect();
    assert!(found.is_sorted_by_key(|(size_bytes, _)| std::cmp::Reverse(*size_bytes)));
    found.sort_unstable();
    assert_eq!(found, expected);
    let total: u64 = expected.iter().map(|(size_bytes, _)| size_bytes).sum();
    assert_eq!(row["live_bytes"], total);
    let text = finish(&mut host.gpumem(&["blocks", "--top", "2"]))
        .well()
        .out;
    assert!(text.contains("4 x  7.00 MiB"), "{text}");
    assert!(text.contains("4 x  3.00 MiB"), "{text}");
    assert!(text.contains("told.py:17 take"), "{text}");
    assert!(text.contains("at exit 44.0 MiB in 12 blocks"), "{text}");
    assert!(text.contains("(1 line smaller: --top)"), "{text}");
}
