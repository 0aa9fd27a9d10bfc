//! What is not a good capture, nor a good connection: one clear sentence and the right status, and nothing else suffers.

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::process::Stdio;

use gpumem_tests::place::finish;
use gpumem_tests::{Finished, Place, artefacts, ledger};
use gpumem_wire::chunk::{CAPTURE_MAGIC, HEADER_BYTES, MAGIC};
use gpumem_wire::{ChunkHeader, ChunkKind, Seq};

/// The status of a source that cannot be read.
const UNREADABLE: i32 = 3;
/// The status of wrong arguments.
const USAGE: i32 = 2;

fn leaks(place: &Place, source: &Path) -> Finished {
    finish(place.gpumem(&["leaks"]).arg(source))
}

/// A capture of the demo's job.
fn capture(place: &Place) -> Vec<u8> {
    let mut command = place.recorded(artefacts::demo_job());
    finish(command.args(["--steps", "20", "--pause", "0"])).well();
    fs::read(place.capture()).expect("the capture")
}

/// The offsets of a capture's chunks, the end included.
fn chunks(capture: &[u8]) -> Vec<usize> {
    let mut offsets = vec![CAPTURE_MAGIC.len()];
    while let Some(rest) = capture
        .get(offsets[offsets.len() - 1]..)
        .filter(|rest| !rest.is_empty())
    {
        let header = ChunkHeader::parse(rest).expect("a whole capture");
        offsets.push(offsets[offsets.len() - 1] + HEADER_BYTES + header.stored_bytes as usize);
    }
    offsets
}

#[test]
fn a_source_that_is_no_capture() {
    let place = Place::new();
    let file = |name: &str, bytes: &[u8]| -> PathBuf {
        let path = place.path(name);
        fs::write(&path, bytes).expect("a new file");
        path
    };
    let mut later = CAPTURE_MAGIC;
    later[7] += 1;
    let _socket = UnixListener::bind(place.path("socket.gpumem")).expect("a new socket");
    let empty_folder = place.path("folder");
    fs::create_dir(&empty_folder).expect("a new folder");
    for (source, said) in [
        (file("empty.gpumem", b""), "is empty"),
        (file("stub.gpumem", &CAPTURE_MAGIC[..5]), "is empty"),
        (
            file("elf.gpumem", b"\x7fELF\x02\x01\x01\0\0\0"),
            "not a gpumem capture",
        ),
        (file("short.gpumem", b"hi"), "not a gpumem capture"),
        (file("later.gpumem", &later), "later gpumem"),
        (
            place.path("missing.gpumem"),
            "nothing of that name is there",
        ),
        (place.path("socket.gpumem"), "socket.gpumem"),
        // It opens, and cannot be read.
        (PathBuf::from("/proc/self/mem"), "/proc/self/mem"),
        (empty_folder, "no session found"),
    ] {
        let name = source.display();
        let finished = leaks(&place, &source);
        assert_eq!(finished.code(), UNREADABLE, "{name}: {}", finished.err);
        assert_eq!(finished.out, "", "{name}");
        assert!(finished.err.contains(said), "{name}: {}", finished.err);
        assert!(finished.err.starts_with("gpumem: "), "{}", finished.err);
        assert_eq!(finished.err.lines().count(), 1, "{}", finished.err);
    }
}

#[test]
fn a_capture_that_was_cut() {
    let place = Place::new();
    let whole = capture(&place);
    let offsets = chunks(&whole);
    assert!(offsets.len() > 4, "{offsets:?}");
    let cut = place.path("cut.gpumem");
    let middle = offsets[offsets.len() / 2];
    for at in [
        offsets[0] + 1,
        offsets[0] + HEADER_BYTES - 1,
        offsets[0] + HEADER_BYTES,
        offsets[1] + HEADER_BYTES + 1,
        middle - 1,
        middle + 1,
        whole.len() - 1,
    ] {
        fs::write(&cut, &whole[..at]).expect("a file");
        let finished = leaks(&place, &cut).well();
        assert!(
            finished.out.contains("ends in the middle of a record"),
            "cut at {at} of {}: {}{}",
            whole.len(),
            finished.out,
            finished.err
        );
    }
    // Most of it is enough to name the leak.
    let finished = leaks(&place, &cut);
    assert!(
        finished.out.contains("cache_request_result"),
        "{}",
        finished.out
    );
    // A cut where a chunk ends is no damage: the process is one that was killed.
    fs::write(&cut, &whole[..middle]).expect("a file");
    let finished = leaks(&place, &cut).well();
    assert!(
        !finished.out.contains("in the middle of a record"),
        "{}",
        finished.out
    );
    assert!(finished.out.contains("killed"), "{}", finished.out);
}

#[test]
fn a_capture_with_a_damaged_chunk() {
    let place = Place::new();
    let mut bytes = capture(&place);
    let offsets = chunks(&bytes);
    let events = offsets.windows(2).find(|pair| {
        ChunkHeader::parse(&bytes[pair[0]..])
            .is_ok_and(|header| header.kind == ChunkKind::Events && header.first > Seq(0))
    });
    let damaged = events.expect("a chunk of events")[0];
    bytes[damaged + HEADER_BYTES + 3] ^= 0x40;
    let path = place.path("damaged.gpumem");
    fs::write(&path, &bytes).expect("a new file");
    let finished = leaks(&place, &path).well();
    let said = finished
        .out
        .split_whitespace()
        .collect::<Vec<_>>()
        .join(" ");
    assert!(
        said.contains(&format!("byte {damaged} is damaged")),
        "{}",
        finished.out
    );
    assert!(said.contains("lost"), "{}", finished.out);
}

#[test]
fn one_bad_capture_among_good_ones() {
    let place = Place::new();
    capture(&place);
    fs::rename(place.capture(), place.spool().join("good.gpumem")).expect("same disk");
    fs::write(place.spool().join("bad.gpumem"), "what is this").expect("a new file");
    let finished = leaks(&place, &place.spool()).well();
    assert!(
        finished.out.contains("cache_request_result"),
        "{}",
        finished.out
    );
    assert!(finished.out.contains("bad.gpumem"), "{}", finished.out);
}

#[test]
fn wrong_arguments() {
    let place = Place::new();
    for arguments in [
        &["leaks", "--no-such-flag"][..],
        &["leaks", "--top", "many"],
        &["no-such-verb"],
        &["run"],
        &["run", "-o"],
        &[],
    ] {
        let finished = finish(&mut place.gpumem(arguments));
        assert_eq!(finished.code(), USAGE, "{arguments:?}: {}", finished.err);
        assert_eq!(finished.out, "", "{arguments:?}");
        assert!(
            finished.err.contains("help"),
            "{arguments:?}: {}",
            finished.err
        );
    }
}

/// A header that promises `stored_bytes`.
fn header(stored_bytes: u32) -> [u8; HEADER_BYTES] {
    ChunkHeader {
        kind: ChunkKind::Events,
        codec: 0,
        stored_bytes,
        raw_bytes: stored_bytes,
        checksum: 0,
        process: 0,
        first: Seq(1),
        last: Seq(u64::MAX),
    }
    .to_bytes()
}

#[test]
fn bad_connections_beside_a_real_job() {
    let place = Place::new();
    // The job says where the collector is and waits for a word; then it becomes the program that makes memory.
    let script = "echo $GPUMEM_SOCKET; read word; exec \"$0\" \"$@\"";
    let mut child = place
        .recorded("/bin/sh")
        .args([
            "-c",
            script,
            env!("CARGO_BIN_EXE_gpumem-random-ops"),
            "9",
            "20000",
        ])
        .env("GPUMEM_SIM_DEVICES", "2")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("gpumem runs");
    let mut said = BufReader::new(child.stdout.take().expect("its output"));
    let mut socket = String::new();
    said.read_line(&mut socket).expect("the socket's path");
    let connect = |bytes: &[u8]| {
        let mut stream = UnixStream::connect(socket.trim_end()).expect("the collector listens");
        // It may hang up before it has read all.
        let _ = stream.write_all(bytes);
        stream
    };
    let real = {
        let other = Place::new();
        capture(&other)
    };
    // What begins like a process that never goes on: its chunk of definitions, then half a header.
    let offsets = chunks(&real);
    let mut half = real[offsets[0]..offsets[1]].to_vec();
    half.extend_from_slice(&MAGIC);
    let kept_open = [
        connect(b""),
        connect(&MAGIC),
        connect(&header(1000)),
        connect(&half),
        connect(&[b'x'; 100_000]),
        connect(&header(u32::MAX)),
    ];
    // These hang up at once.
    for bytes in [&b"GET / HTTP/1.1\r\n\r\n"[..], &header(10), &real, b"\0"] {
        drop(connect(bytes));
    }
    child
        .stdin
        .take()
        .expect("its input")
        .write_all(b"go\n")
        .expect("it waits");
    let mut rest = String::new();
    said.read_to_string(&mut rest).expect("text");
    let output = child.wait_with_output().expect("it ends");
    let err = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{err}");
    drop(kept_open);

    let job: serde_json::Value = serde_json::from_str(&rest).expect("the job's account");
    let pid = job["pid"].as_u64().expect("a pid") as u32;
    let pools: Vec<u64> = serde_json::from_value(job["pools"].clone()).expect("pools");
    let session = place.recording();
    assert!(!session.truncated, "{:?}", session.notes);
    let process = session.process(pid).expect("the job's record");
    assert!(process.end().is_some_and(|end| end.orderly));
    assert_eq!(process.lost().total(), 0);
    ledger::assert_equal(
        &ledger::of_driver(&place.truth(pid), &pools),
        &ledger::of_model(process),
    );
}
