//! Spool files as shims leave them, and what is made of them.

use std::time::Duration;

use gpumem_wire::codec::Codec;
use gpumem_wire::{ChunkKind, chunk::CAPTURE_MAGIC, columns};

use super::*;
use crate::ingest::liveness::tests::myself;
use crate::model::testing::{MIB, Trace, alloc};

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
