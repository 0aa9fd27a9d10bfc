//! A collector that runs out of file descriptors waits, says so once, and goes on. One test in a process of its own: the limit is
//! the process's.

use std::fs::File;
use std::io::ErrorKind;
use std::os::unix::net::UnixStream;
use std::time::Duration;

use gpumem_collector::ingest::server::{FinishPolicy, Server, raise_descriptor_limit};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

#[test]
fn without_descriptors_it_waits_and_says_so_once() {
    let full = getrlimit(Resource::Nofile);
    let few = Rlimit {
        current: Some(64),
        ..full
    };
    setrlimit(Resource::Nofile, few).expect("a limit");
    let folder = tempfile::tempdir().expect("a folder");
    let socket = folder.path().join("run/gpumem.sock");
    let running = Server::bind(&socket)
        .and_then(|server| server.start(None))
        .expect("a server");
    let shared = running.shared_session();
    let notes = || shared.lock().expect("the session").notes.clone();
    // All descriptors are taken: by peers, and by ourselves. The last peer has nobody to take it in.
    let mut files = Vec::new();
    while let Ok(file) = File::open("/dev/null") {
        files.push(file);
    }
    drop(files.pop());
    let peer = UnixStream::connect(&socket).expect("a connection");
    while notes().is_empty() {
        std::thread::yield_now();
    }
    // Room again: it is taken in, and found to say nothing.
    drop(files);
    drop(peer);
    raise_descriptor_limit();
    let raised = getrlimit(Resource::Nofile).current.expect("a limit");
    assert_eq!(raised, full.maximum.unwrap_or(4096).min(4096));
    let error = File::open(folder.path().join("none")).expect_err("no file");
    assert_eq!(error.kind(), ErrorKind::NotFound);
    let finished = running.finish(FinishPolicy::Quiet(Duration::from_secs(20)));
    assert_eq!(finished.notes.len(), 1, "{:?}", finished.notes);
    assert!(
        finished.notes[0].starts_with("processes had to wait for the collector"),
        "{:?}",
        finished.notes
    );
}
