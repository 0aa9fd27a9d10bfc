//! Real sockets, good peers and bad ones.

use std::fs::DirBuilder;
use std::io::Write;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};

use gpumem_wire::codec::Codec;
use gpumem_wire::define::{EndDefinition, ProcessDefinition};
use gpumem_wire::{ChunkKind, Definition, columns};

use super::*;
use crate::ingest::capture::{CaptureReader, Item};
use crate::ingest::liveness::tests::myself;
use crate::ingest::session::{Source, open};
use crate::model::State;
use crate::model::testing::{MIB, Trace, alloc, block, torch_segment};

/// Long enough for a loaded machine; no test waits for it unless something is wrong.
const PATIENT: FinishPolicy = FinishPolicy::Quiet(Duration::from_secs(20));

struct Place {
    folder: tempfile::TempDir,
}

impl Place {
    fn new() -> Self {
        Self {
            folder: tempfile::tempdir().expect("a folder"),
        }
    }

    fn socket(&self) -> PathBuf {
        self.folder.path().join("run/gpumem.sock")
    }

    fn capture(&self) -> PathBuf {
        self.folder.path().join("a.gpumem")
    }

    fn start(&self) -> Running {
        let capture = CaptureWriter::create(&self.capture()).expect("a capture");
        Server::bind(&self.socket())
            .and_then(|server| server.start(Some(capture)))
            .expect("a server")
    }

    fn connect(&self) -> UnixStream {
        UnixStream::connect(self.socket()).expect("a connection")
    }
}

fn definitions(definitions: &[Definition]) -> Vec<u8> {
    let mut payload = Vec::new();
    for definition in definitions {
        definition.append_to(&mut payload).expect("a definition");
    }
    encoded(&Chunk::new(ChunkKind::Definitions, 0, payload))
}

fn encoded(chunk: &Chunk) -> Vec<u8> {
    let mut bytes = Vec::new();
    chunk.append_to(Codec::Lz4, &mut bytes).expect("a chunk");
    bytes
}

/// All of a process's life as its shim would send it, without the goodbye.
fn stream(trace: &Trace) -> Vec<u8> {
    let mut bytes = definitions(trace.definitions());
    let mut events = Chunk::new(
        ChunkKind::Events,
        0,
        columns::encode(Trace::anchor(), trace.events()),
    );
    events.first = trace.events()[0].seq;
    events.last = trace.events()[trace.events().len() - 1].seq;
    bytes.extend(encoded(&events));
    bytes
}

fn goodbye() -> Vec<u8> {
    definitions(&[Definition::End(EndDefinition {
        orderly: true,
        ..EndDefinition::default()
    })])
}

fn a_life() -> Trace {
    let mut trace = Trace::new();
    trace.play([
        torch_segment(0x1000_0000, 20 * MIB),
        block(0x1000_0000, MIB).at("train.py:31 step"),
        alloc(0x9000_0000, MIB).native("libfoo.so", "grow", "foo.c", 7),
    ]);
    trace
}

#[test]
fn a_good_stream_becomes_a_model_and_a_capture_of_the_same() {
    let place = Place::new();
    let running = place.start();
    let mut peer = place.connect();
    peer.write_all(&stream(&a_life())).expect("the stream");
    peer.write_all(&goodbye()).expect("the goodbye");
    drop(peer);
    let finished = running.finish(PATIENT);
    assert_eq!(finished.notes, Vec::<String>::new());
    assert!(!place.socket().exists());
    let read = open(&Source::File(finished.capture.expect("a capture"))).expect("a session");
    for session in [&finished.session, &read] {
        assert_eq!(session.processes.len(), 1);
        let process = &session.processes[0];
        assert_eq!(process.state(), State::Ended);
        assert_eq!(process.totals(), a_life().process().totals());
        assert_eq!(process.events(), 3);
        assert_eq!(process.definition().pid, 4711);
    }
}

#[test]
fn garbage_costs_its_connection_and_nothing_else() {
    let place = Place::new();
    let running = place.start();
    let unknown = definitions(&[Definition::Notice { text: "hi".into() }]);
    let mut damaged = stream(&a_life());
    *damaged.last_mut().expect("bytes") ^= 1;
    let mut huge = encoded(&Chunk::new(ChunkKind::Events, 0, vec![7; 100]));
    huge[8..12].copy_from_slice(&u32::MAX.to_le_bytes());
    let mut good = place.connect();
    let life = stream(&a_life());
    good.write_all(&life[..100]).expect("a part");
    let garbage = [
        b"GET / HTTP/1.1\r\nHost: localhost\r\nAccept: */*\r\n\r\n".to_vec(),
        unknown,
        damaged,
        huge,
    ];
    for bytes in &garbage {
        // The server may have hung up before all was written.
        drop(place.connect().write_all(bytes));
    }
    good.write_all(&life[100..]).expect("the rest");
    good.write_all(&goodbye()).expect("the goodbye");
    drop(good);
    let finished = running.finish(PATIENT);
    assert_eq!(finished.notes.len(), garbage.len(), "{:#?}", finished.notes);
    assert!(
        finished
            .notes
            .iter()
            .all(|note| note.contains("was closed: "))
    );
    let process = &finished.session.processes[0];
    assert_eq!(process.state(), State::Ended);
    assert_eq!(process.totals(), a_life().process().totals());
}

#[test]
fn a_stream_that_stops_anywhere_is_a_killed_process() {
    let life = stream(&a_life());
    for length in [life.len(), life.len() - 1, life.len() - 100] {
        let place = Place::new();
        let running = place.start();
        place
            .connect()
            .write_all(&life[..length])
            .expect("the stream");
        let finished = running.finish(PATIENT);
        assert_eq!(finished.session.processes[0].state(), State::Killed);
        assert_eq!(finished.notes, Vec::<String>::new());
    }
}

#[test]
fn a_process_that_outlives_the_program_is_not_waited_for() {
    let place = Place::new();
    let running = place.start();
    let mut trace = Trace::new();
    trace.push(alloc(0x1000, MIB));
    let mut bytes = definitions(&[Definition::Process(ProcessDefinition {
        nonce: 7,
        ..myself()
    })]);
    let events = columns::encode(Trace::anchor(), trace.events());
    bytes.extend(encoded(&Chunk::new(ChunkKind::Events, 0, events)));
    let mut peer = place.connect();
    peer.write_all(&bytes).expect("the stream");
    // The peer stays connected and its process, this one, lives.
    let finished = running.finish(FinishPolicy::Quiet(Duration::from_millis(300)));
    assert_eq!(finished.session.processes[0].state(), State::Running);
    assert_eq!(finished.notes.len(), 1, "{:?}", finished.notes);
    drop(peer);
}

#[test]
fn a_process_that_talks_for_ever_is_not_heard_out() {
    let place = Place::new();
    let running = place.start();
    let mut peer = place.connect();
    let mut introduction = myself();
    introduction.nonce = 9;
    peer.write_all(&definitions(&[Definition::Process(introduction)]))
        .expect("the stream");
    let talker = thread::spawn(move || {
        let chatter = definitions(&[Definition::Notice {
            text: "still here".into(),
        }]);
        while peer.write_all(&chatter).is_ok() {}
    });
    let finished = running.finish(FinishPolicy::Quiet(Duration::from_millis(50)));
    talker.join().expect("it was hung up on");
    assert_eq!(finished.session.processes[0].state(), State::Running);
}

#[test]
fn two_streams_of_one_process_are_one_process_and_two_processes_are_two() {
    let place = Place::new();
    let running = place.start();
    let other = {
        let mut definitions = a_life().definitions().to_vec();
        if let Definition::Process(process) = &mut definitions[0] {
            process.pid = 4712;
        }
        definitions
    };
    for bytes in [
        definitions(a_life().definitions()),
        definitions(a_life().definitions()),
        definitions(&other),
    ] {
        place.connect().write_all(&bytes).expect("the stream");
    }
    let finished = running.finish(PATIENT);
    assert_eq!(finished.session.processes.len(), 2);
    let path = finished.capture.expect("a capture");
    let read = open(&Source::File(path.clone())).expect("a session");
    let pids = |session: &Session| -> Vec<u32> {
        let processes = session.processes.iter();
        processes.map(|process| process.definition().pid).collect()
    };
    assert_eq!(pids(&read), pids(&finished.session));
    let mut reader = CaptureReader::open(&path).expect("a capture");
    let Ok(Some(Item::Chunk(first))) = reader.read_next() else {
        panic!("a capture without a chunk");
    };
    assert_eq!(first.process, 1);
}

#[test]
fn a_folder_that_others_may_enter_is_refused() {
    let place = Place::new();
    let open_folder = place.folder.path().join("open");
    fs::create_dir(&open_folder).expect("a folder");
    fs::set_permissions(&open_folder, Permissions::from_mode(0o755)).expect("a mode");
    let refused = |path: PathBuf| Server::bind(&path).expect_err("refused");
    assert!(matches!(
        refused(open_folder.join("s")),
        CollectorError::UnsafeFolder { .. }
    ));
    let real = place.folder.path().join("real");
    DirBuilder::new()
        .mode(0o700)
        .create(&real)
        .expect("a folder");
    let link = place.folder.path().join("link");
    std::os::unix::fs::symlink(&real, &link).expect("a link");
    assert!(matches!(
        refused(link.join("s")),
        CollectorError::UnsafeFolder { .. }
    ));
    let server = Server::bind(&real.join("s")).expect("a server");
    let mode = fs::metadata(real.join("s")).expect("the socket").mode();
    assert_eq!(mode & 0o777, 0o600);
    assert!(matches!(
        refused(real.join("s")),
        CollectorError::Exists { .. }
    ));
    drop(server);
}
