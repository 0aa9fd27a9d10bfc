//! The threads that listen: one accepts, one a peer reads and decodes.

use std::io;
use std::os::unix::net::{UnixListener, UnixStream};
use std::thread;

use crossbeam_channel::Sender;
use gpumem_wire::chunk::HEADER_BYTES;
use gpumem_wire::{Chunk, ChunkHeader};
use rustix::event::{PollFd, PollFlags, Timespec, poll};

use crate::ingest::capture::read_up_to;
use crate::ingest::decode::Decoded;
use crate::ingest::server::Message;

/// How long to wait before accepting is tried again when something is short.
const RETRY: Timespec = Timespec {
    tv_sec: 0,
    tv_nsec: 100_000_000,
};

/// Accepts until the other end of `stopped` is closed, and then what is waiting already.
pub(super) fn accept_all(listener: &UnixListener, stopped: &UnixStream, hub: &Sender<Message>) {
    let mut number = 0;
    let mut said = false;
    loop {
        let mut ready = [
            PollFd::new(listener, PollFlags::IN),
            PollFd::new(stopped, PollFlags::IN),
        ];
        match poll(&mut ready, None) {
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(_) => return,
        }
        let stop = !ready[1].revents().is_empty();
        let mut stuck = false;
        loop {
            let stream = match listener.accept() {
                Ok((stream, _)) => stream,
                Err(error) => match error.kind() {
                    io::ErrorKind::WouldBlock => break,
                    io::ErrorKind::Interrupted | io::ErrorKind::ConnectionAborted => continue,
                    _ => {
                        // File descriptors or memory are short. Those who knock wait in the socket's queue meanwhile.
                        stuck = true;
                        let why = error.to_string();
                        if !core::mem::replace(&mut said, true)
                            && hub.send(Message::Stuck { why }).is_err()
                        {
                            return;
                        }
                        break;
                    }
                },
            };
            said = false;
            number += 1;
            if !take_in(number, stream, hub) {
                return;
            }
        }
        if stop {
            return;
        }
        if stuck {
            // The listener stays ready, so that only the other end can be waited for.
            let mut stopped = [PollFd::new(stopped, PollFlags::IN)];
            let _ = poll(&mut stopped, Some(&RETRY));
        }
    }
}

/// Lets one peer speak, on a thread of its own. `false`: nobody listens any more.
fn take_in(number: u64, stream: UnixStream, hub: &Sender<Message>) -> bool {
    let message = match welcome(&stream).and_then(|()| stream.try_clone()) {
        Ok(own) => {
            let opened = hub.send(Message::Opened {
                connection: number,
                stream: own,
            });
            if opened.is_err() {
                return false;
            }
            let to_hub = hub.clone();
            let reader = thread::Builder::new()
                .name("gpumem-read".into())
                .stack_size(256 << 10);
            match reader.spawn(move || read_stream(number, stream, &to_hub)) {
                Ok(_) => return true,
                Err(error) => Message::Closed {
                    connection: number,
                    why: Some(format!("no thread could be started for it: {error}")),
                },
            }
        }
        Err(error) => Message::Refused {
            why: error.to_string(),
        },
    };
    hub.send(message).is_ok()
}

/// Only processes of ours and root's may speak.
fn welcome(stream: &UnixStream) -> io::Result<()> {
    let peer = rustix::net::sockopt::socket_peercred(stream)?;
    if peer.uid == rustix::process::geteuid() || peer.uid.is_root() {
        return stream.set_nonblocking(false);
    }
    let (pid, user) = (peer.pid.as_raw_nonzero(), peer.uid.as_raw());
    Err(io::Error::other(format!(
        "process {pid} of user {user} is not allowed to speak here"
    )))
}

fn read_stream(connection: u64, mut stream: UnixStream, hub: &Sender<Message>) {
    let why = loop {
        match read_chunk(&mut stream) {
            Ok(Some((chunk, decoded))) => {
                let message = Message::Chunk {
                    connection,
                    chunk,
                    decoded,
                };
                if hub.send(message).is_err() {
                    return;
                }
            }
            Ok(None) => break None,
            Err(why) => break Some(why),
        }
    };
    // The hub is gone only when nobody wants to know any more.
    drop(hub.send(Message::Closed { connection, why }));
}

/// One chunk of a stream; `None` at its end, also in the middle of a chunk: then the process was killed while it wrote.
fn read_chunk(stream: &mut UnixStream) -> Result<Option<(Chunk, Decoded)>, String> {
    let mut bytes = [0; HEADER_BYTES];
    let have = read_up_to(stream, &mut bytes).map_err(|error| error.to_string())?;
    if have < HEADER_BYTES {
        return Ok(None);
    }
    let header = ChunkHeader::parse(&bytes).map_err(|error| error.to_string())?;
    let mut stored = vec![0; header.stored_bytes as usize];
    let have = read_up_to(stream, &mut stored).map_err(|error| error.to_string())?;
    if have < stored.len() {
        return Ok(None);
    }
    let chunk = Chunk::from_stored(&header, &stored).map_err(|error| error.to_string())?;
    let decoded = Decoded::of(&chunk).map_err(|error| error.to_string())?;
    Ok(Some((chunk, decoded)))
}
