//! Spool files as shims leave them, and what is made of them.

use std::time::Duration;

use gpumem_wire::codec::Codec;
use gpumem_wire::define::{CodeDefinition, EndDefinition, StackDefinition};
use gpumem_wire::{
    Chunk, ChunkKind, CodeId, Event, Frame, Kind, Seq, StackId, chunk::CAPTURE_MAGIC, columns,
};

use std::fs::File;
use std::time::SystemTime;

use gpumem_wire::define::ProcessDefinition;

use super::*;
use crate::ingest::liveness::tests::myself;
use crate::model::testing::{EPOCH_NS, MIB, Trace, alloc};

/// A spool file of one process; `change` makes it another than the standard one.
fn spool(path: &Path, age_s: u64, change: impl FnOnce(&mut ProcessDefinition)) {
    let mut trace = Trace::new();
    trace.push(alloc(0x1000, MIB).at("train.py:31 step"));
    let mut definitions = trace.definitions().to_vec();
    if let Definition::Process(process) = &mut definitions[0] {
        change(process);
    }
    let mut payload = Vec::new();
    for definition in &definitions {
        definition.append_to(&mut payload).expect("a definition");
    }
    let mut bytes = CAPTURE_MAGIC.to_vec();
    let events = columns::encode(Trace::anchor(), trace.events());
    for chunk in [
        Chunk::new(ChunkKind::Definitions, 0, payload),
        Chunk::new(ChunkKind::Events, 0, events),
    ] {
        chunk.append_to(Codec::Lz4, &mut bytes).expect("a chunk");
    }
    fs::write(path, bytes).expect("the file");
    let file = File::options().write(true).open(path).expect("the file");
    let when = SystemTime::now() - Duration::from_secs(age_s);
    file.set_modified(when).expect("a time");
}

fn rank(rank: &str) -> impl FnOnce(&mut ProcessDefinition) {
    let pid = 100 + rank.len() as u32;
    let variables = [
        ("SLURM_JOB_ID", "7"),
        ("SLURM_STEP_ID", "0"),
        ("RANK", rank),
    ];
    let variables = variables.map(|(key, value)| (key.to_owned(), value.to_owned()));
    move |process| {
        process.pid = pid;
        process.group = pid;
        process.environment = variables.to_vec();
    }
}

#[test]
fn the_newest_session_is_all_of_its_job_and_nothing_else() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = |name: &str| folder.path().join(name);
    spool(&file("old.gpumem"), 3600, |process| process.group = 1);
    spool(&file("rank0.gpumem"), 60, rank("0"));
    spool(&file("rank1.gpumem"), 90, rank("10"));
    spool(&file("not-a-capture.txt"), 0, |_| {});
    fs::write(file("empty.gpumem"), b"").expect("the file");
    let places = [folder.path().join("missing"), folder.path().to_owned()];
    let session = newest(&places).expect("a session");
    let mut files = session.files.clone();
    files.sort();
    assert_eq!(files, [file("rank0.gpumem"), file("rank1.gpumem")]);
    assert_eq!(session.processes.len(), 2);
    let everything = open(&Source::Directory(folder.path().into())).expect("a session");
    assert_eq!(everything.processes.len(), 3);
    assert_eq!(everything.notes.len(), 1, "{:?}", everything.notes);
}

#[test]
fn a_collector_s_capture_is_a_session_of_its_own() {
    let folder = tempfile::tempdir().expect("a folder");
    spool(&folder.path().join("a.gpumem"), 60, |_| {});
    let path = folder.path().join("b.gpumem");
    let mut writer = CaptureWriter::create(&path).expect("a capture");
    let trace = Trace::new();
    writer
        .definitions(1, trace.definitions())
        .expect("definitions");
    writer.finish();
    let session = newest(&[folder.path().to_owned()]).expect("a session");
    assert_eq!(session.files, [path]);
}

#[test]
fn without_a_session_the_places_are_named() {
    let folder = tempfile::tempdir().expect("a folder");
    let places = [folder.path().join("here"), folder.path().join("there")];
    let Err(error) = newest(&places) else {
        panic!("a session out of nothing");
    };
    let sentence = error.to_string();
    assert!(
        sentence.contains("here") && sentence.contains("there"),
        "{sentence}"
    );
}

#[test]
fn a_process_without_a_goodbye_runs_or_was_killed() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("a.gpumem");
    spool(&path, 0, |process| *process = myself());
    let state = |path: &PathBuf| {
        open(&Source::File(path.clone()))
            .expect("a session")
            .processes[0]
            .state()
    };
    assert_eq!(state(&path), State::Running);
    spool(&path, 0, |process| {
        *process = myself();
        process.start_ticks += 1;
    });
    assert_eq!(state(&path), State::Killed);
}

#[test]
fn a_truncated_spool_says_so_and_counts_as_far_as_it_goes() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("a.gpumem");
    spool(&path, 0, |_| {});
    let bytes = fs::read(&path).expect("the file");
    fs::write(&path, &bytes[..bytes.len() - 1]).expect("the file");
    let session = open(&Source::File(path)).expect("a session");
    assert!(session.truncated);
    assert_eq!(session.processes[0].definition().pid, 4711);
    assert_eq!(session.processes[0].events(), 0);
}

#[test]
fn damaged_events_are_counted_as_lost() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("a.gpumem");
    let mut writer = CaptureWriter::create(&path).expect("a capture");
    writer
        .definitions(1, Trace::new().definitions())
        .expect("definitions");
    let mut events = Chunk::new(ChunkKind::Events, 1, b"no columns".to_vec());
    (events.first, events.last) = (gpumem_wire::Seq(11), gpumem_wire::Seq(20));
    writer.chunk(&events).expect("a chunk");
    writer.finish();
    let session = open(&Source::File(path)).expect("a session");
    assert_eq!(session.processes[0].lost().total(), 10);
}

/// A spool file of a process of one shell: its pid, when it began and ended in seconds, and what else is special.
fn run_of_shell(
    folder: &Path,
    pid: u32,
    life_s: (u64, Option<u64>),
    change: impl FnOnce(&mut ProcessDefinition),
) -> PathBuf {
    let path = folder.join(format!("{pid}.gpumem"));
    let (began_s, ended_s) = life_s;
    spool(&path, 0, |process| {
        process.pid = pid;
        process.group = 50;
        process.parent = 50;
        process.start_ticks = u64::from(pid);
        process.started_ns = EPOCH_NS + began_s * 1_000_000_000;
        change(process);
    });
    if let Some(ended_s) = ended_s {
        let end: Definition = Definition::End(EndDefinition {
            time_ns: EPOCH_NS + ended_s * 1_000_000_000,
            orderly: true,
            lost_events: 0,
        });
        let mut payload = Vec::new();
        end.append_to(&mut payload).expect("a definition");
        let mut bytes = fs::read(&path).expect("the file");
        Chunk::new(ChunkKind::Definitions, 0, payload)
            .append_to(Codec::Lz4, &mut bytes)
            .expect("a chunk");
        fs::write(&path, bytes).expect("the file");
    }
    path
}

fn pids(session: &Session) -> Vec<u32> {
    let mut pids: Vec<u32> = session
        .processes
        .iter()
        .map(|process| process.definition().pid)
        .collect();
    pids.sort_unstable();
    pids
}

#[test]
fn looking_at_an_old_recording_does_not_make_it_the_newest() {
    let folder = tempfile::tempdir().expect("a folder");
    let old = run_of_shell(folder.path(), 1, (100, Some(200)), |_| {});
    run_of_shell(folder.path(), 2, (300, Some(400)), |_| {});
    let later = SystemTime::now() + Duration::from_secs(60);
    let file = File::options().append(true).open(old).expect("the file");
    file.set_modified(later).expect("a time");
    assert_eq!(
        pids(&newest(&[folder.path().into()]).expect("a session")),
        [2]
    );
}

#[test]
fn runs_one_after_another_in_a_shell_are_sessions_of_their_own() {
    let none = |_: &mut ProcessDefinition| {};
    let newest_of =
        |folder: &tempfile::TempDir| pids(&newest(&[folder.path().to_owned()]).expect("a session"));
    let folder = tempfile::tempdir().expect("a folder");
    run_of_shell(folder.path(), 1, (100, Some(200)), none);
    run_of_shell(folder.path(), 2, (300, Some(400)), none);
    run_of_shell(folder.path(), 3, (350, None), none);
    assert_eq!(newest_of(&folder), [2, 3]);
    // The last one ran another program in its place; 5 is a child of that.
    run_of_shell(folder.path(), 4, (500, Some(600)), none);
    let again = |process: &mut ProcessDefinition| (process.pid, process.start_ticks) = (4, 4);
    run_of_shell(folder.path(), 5, (601, Some(700)), again);
    assert_eq!(newest_of(&folder), [4, 4]);
    let child = |process: &mut ProcessDefinition| process.parent = 4;
    run_of_shell(folder.path(), 6, (701, Some(800)), child);
    assert_eq!(newest_of(&folder), [4, 4, 6]);
    // What ran all the while makes one session of all.
    run_of_shell(folder.path(), 7, (90, Some(900)), none);
    assert_eq!(newest_of(&folder), [1, 2, 3, 4, 4, 6, 7]);
}

#[test]
fn a_job_that_is_named_too_loosely_is_told_apart_by_time() {
    for (variables, together) in [
        (vec![("TORCHELASTIC_RUN_ID", "none")], false),
        (vec![("TORCHELASTIC_RUN_ID", "job-7")], true),
        (vec![("SLURM_JOB_ID", "7")], false),
        (vec![("SLURM_JOB_ID", "7"), ("SLURM_STEP_ID", "0")], true),
        (vec![("GPUMEM_SESSION", "mine")], true),
    ] {
        let folder = tempfile::tempdir().expect("a folder");
        for (pid, life) in [(1, (100, Some(200))), (2, (300, Some(400)))] {
            run_of_shell(folder.path(), pid, life, |process| {
                process.environment = variables
                    .iter()
                    .map(|&(name, value)| (name.to_owned(), value.to_owned()))
                    .collect();
            });
        }
        let session = newest(&[folder.path().into()]).expect("a session");
        assert_eq!(session.processes.len() == 2, together, "{variables:?}");
    }
}

/// A capture of one process with a Python frame whose line can be read here, so that there is something to add.
fn capture_with_a_line(path: &Path, process: ProcessDefinition, end: bool) -> CaptureWriter {
    let code = CodeDefinition {
        id: CodeId(1),
        function: "f".into(),
        file: file!().into(),
        first_line: 1,
    };
    let stack = StackDefinition {
        id: StackId(2),
        left_out: 0,
        frames: vec![Frame::Python {
            code: code.id,
            line: 3,
        }],
    };
    let directory = concat!(env!("CARGO_MANIFEST_DIR"), "/..").into();
    let host = rustix::system::uname().nodename().to_string_lossy().into();
    let process = ProcessDefinition {
        host,
        directory,
        started_ns: u64::MAX / 2,
        ..process
    };
    let mut definitions = vec![
        Definition::Process(process),
        Definition::Code(code),
        Definition::Stack(stack),
    ];
    if end {
        definitions.push(Definition::End(EndDefinition {
            orderly: true,
            ..EndDefinition::default()
        }));
    }
    let mut writer = CaptureWriter::create(path).expect("a capture");
    writer.definitions(1, &definitions).expect("definitions");
    let event = Event {
        seq: Seq(1),
        kind: Kind::DeviceAlloc as u16,
        stack: StackId(2),
        words: [0x1000, MIB, 9, MIB],
        ..Event::default()
    };
    let events = columns::encode(Trace::anchor(), &[event]);
    writer
        .chunk(&Chunk::new(ChunkKind::Events, 1, events))
        .expect("a chunk");
    writer
}

#[test]
fn names_are_added_only_to_what_nobody_writes_any_more() {
    let size = |path: &Path| fs::metadata(path).expect("the file").len();
    let look = |path: &Path| {
        let session = open(&Source::File(path.into())).expect("a session");
        session.processes[0].state()
    };
    let elsewhere = || ProcessDefinition {
        boot_id: "another".into(),
        ..ProcessDefinition::default()
    };
    let gone = || ProcessDefinition {
        start_ticks: 1,
        ..myself()
    };
    let folder = tempfile::tempdir().expect("a folder");
    for (name, process, end, written, state, added) in [
        ("said-goodbye", elsewhere(), true, false, State::Ended, true),
        ("gone", gone(), false, false, State::Killed, true),
        ("runs", myself(), false, false, State::Running, false),
        (
            "elsewhere",
            elsewhere(),
            false,
            false,
            State::Unknown,
            false,
        ),
        (
            "goodbye-but-written",
            elsewhere(),
            true,
            true,
            State::Ended,
            false,
        ),
        (
            "gone-but-written",
            gone(),
            false,
            true,
            State::Killed,
            false,
        ),
        (
            "elsewhere-and-written",
            elsewhere(),
            false,
            true,
            State::Running,
            false,
        ),
    ] {
        let path = folder.path().join(name);
        let writer = capture_with_a_line(&path, process, end);
        let writer = written.then_some(writer);
        let before = size(&path);
        assert_eq!(look(&path), state, "{name}");
        assert_eq!(size(&path) > before, added, "{name}");
        drop(writer);
    }
}

#[test]
fn a_file_of_many_processes_is_read_in_bounds() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("a.gpumem");
    let definition = |pid: u32, nonce: u64| {
        let process = ProcessDefinition {
            pid,
            nonce,
            ..ProcessDefinition::default()
        };
        let mut payload = Vec::new();
        let definition: Definition = Definition::Process(process);
        definition.append_to(&mut payload).expect("a definition");
        payload
    };
    let mut bytes = CAPTURE_MAGIC.to_vec();
    let mut add = |kind, number, payload| {
        Chunk::new(kind, number, payload)
            .append_to(Codec::Raw, &mut bytes)
            .expect("a chunk");
    };
    for number in 1..=20_000 {
        // Parts that say nothing make no process.
        add(ChunkKind::Snapshot, number, Vec::new());
    }
    // Each ran another program in its place.
    for number in 1..=5_000u32 {
        add(
            ChunkKind::Definitions,
            20_000 + number,
            definition(number / 2, number.into()),
        );
    }
    fs::write(&path, &bytes).expect("the file");
    let session = open(&Source::File(path.clone())).expect("a session");
    assert_eq!(session.processes.len(), 4096);
    assert_eq!(session.notes.len(), 1, "{:?}", session.notes);
    assert!(
        session.notes[0].contains("4096 processes"),
        "{:?}",
        session.notes
    );
    let ended = session
        .processes
        .iter()
        .filter(|process| process.state() == State::Ended);
    assert_eq!(ended.count(), 2047);
    // A second file of the same folder has no more room than the first.
    fs::copy(&path, folder.path().join("b.gpumem")).expect("a copy");
    let session = open(&Source::Directory(folder.path().into())).expect("a session");
    assert_eq!(session.processes.len(), 4096);
}

#[test]
fn the_last_recording_of_a_process_is_found_by_heads_alone() {
    let here = tempfile::tempdir().expect("a folder");
    let there = tempfile::tempdir().expect("a folder");
    let places = [here.path().to_owned(), there.path().to_owned()];
    run_of_shell(here.path(), 7, (100, Some(200)), |_| {});
    let newer = run_of_shell(there.path(), 7, (300, Some(400)), |_| {});
    run_of_shell(there.path(), 8, (500, Some(600)), |_| {});
    // One that a look would add names to.
    let other = here.path().join("other.gpumem");
    let gone = ProcessDefinition {
        pid: 9,
        ..ProcessDefinition::default()
    };
    drop(capture_with_a_line(&other, gone, true));
    let before = fs::metadata(&other).expect("the file").len();
    let found = |pid| of_process(pid, &places).expect("captures that can be read");
    let session = found(7).expect("a session");
    assert_eq!((&session.files, pids(&session)), (&vec![newer], vec![7]));
    assert!(found(10).is_none());
    assert_eq!(fs::metadata(&other).expect("the file").len(), before);
    // A collector's capture names its processes as they come.
    let mut writer = CaptureWriter::create(&here.path().join("all.gpumem")).expect("a capture");
    for (number, pid) in [(1, 20), (2, 21), (3, 7)] {
        let process = Definition::Process(ProcessDefinition {
            pid,
            started_ns: EPOCH_NS,
            ..ProcessDefinition::default()
        });
        writer.definitions(number, &[process]).expect("definitions");
        let events = Chunk::new(ChunkKind::Events, number, vec![0; 100_000]);
        writer.chunk(&events).expect("a chunk");
    }
    writer.finish();
    assert_eq!(pids(&found(21).expect("a session")), [21]);
    assert_eq!(found(7).expect("a session").files, session.files);
}
