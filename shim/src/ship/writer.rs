//! The writer: encodes batches into chunks and writes them to the collector or to the spool file. It may block; nobody
//! waits for it.

use core::ffi::c_void;
use core::fmt;
use core::ptr::null_mut;
use core::sync::atomic::{AtomicI32, AtomicU64, Ordering};
use std::io::{self, Write};
use std::panic::{AssertUnwindSafe, catch_unwind};

use crossbeam_channel::Receiver;
use gpumem_wire::codec::Codec;
use gpumem_wire::define::{
    Anchor, BorrowedDefinition, Definition, EndDefinition, ProcessDefinition,
};
use gpumem_wire::{Chunk, ChunkKind, Event, Seq, columns, limits, places};

use crate::fuse::{self, Reason};
use crate::intercept::table;
use crate::record::clock;
use crate::ship::socket::{self, Guarded};
use crate::ship::spool::Spool;
use crate::ship::{drainer, identity};
use crate::stack;

/// Payload bytes of a chunk of definitions, about.
const DEFINITIONS_BYTES: usize = 1 << 20;

/// Counts of events that were given up.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Lost {
    /// Events that create or tell.
    pub(crate) others: u64,
    /// Events that destroy.
    pub(crate) urgent: u64,
}

/// What the drainer hands over.
#[derive(Default)]
pub(crate) struct Batch {
    /// When it was drained.
    pub(crate) anchor: Anchor,
    /// Encoded definitions.
    pub(crate) definitions: Vec<u8>,
    /// Events, in order.
    pub(crate) events: Vec<Event>,
    /// Events lost so far.
    pub(crate) lost: Lost,
    /// A flush that ends here.
    pub(crate) flush: Option<u32>,
    /// Whether the process says goodbye.
    pub(crate) goodbye: bool,
}

/// The connection's descriptor, for a forked child to close; -1 while there is none. Relaxed: a fork copies what is there.
static CONNECTION: AtomicI32 = AtomicI32::new(-1);
/// Which file that descriptor stands for: the program may have given its number to another.
static CONNECTION_FILE: [AtomicU64; 2] = [AtomicU64::new(0), AtomicU64::new(0)];

/// One line on stderr, if there is one: the program may have closed it.
fn say(line: fmt::Arguments<'_>) {
    let _ = writeln!(io::stderr(), "{line}");
}

/// Starts the writer thread.
pub(crate) fn start(receiver: Receiver<Batch>) -> bool {
    let argument = Box::into_raw(Box::new(receiver));
    let started = super::start_thread(c"gpumem-write", main, argument.cast());
    if !started {
        // SAFETY: no thread took it.
        drop(unsafe { Box::from_raw(argument) });
    }
    started
}

/// Closes the parent's connection in a forked child. Async-signal-safe.
pub(crate) fn close_in_child() {
    let fd = CONNECTION.swap(-1, Ordering::Relaxed);
    let [device, inode] = [0, 1].map(|at: usize| {
        CONNECTION_FILE
            .get(at)
            .map_or(0, |word| word.load(Ordering::Relaxed))
    });
    if fd >= 0 && socket::identity(fd) == Some((device, inode)) {
        // SAFETY: the child's copy of our own descriptor.
        unsafe { libc::close(fd) };
    }
}

/// A forked child has no writer.
pub(crate) fn forget() {
    CONNECTION.store(-1, Ordering::Relaxed);
}

extern "C" fn main(argument: *mut c_void) -> *mut c_void {
    // SAFETY: `start` gives this thread a box of its own.
    let receiver = unsafe { Box::from_raw(argument.cast::<Receiver<Batch>>()) };
    if catch_unwind(AssertUnwindSafe(|| Writer::open().run(&receiver))).is_err() {
        fuse::blow(Reason::Panic);
    }
    null_mut()
}

enum Sink {
    Collector(Guarded),
    Spool(Spool),
    Nowhere,
}

struct Writer {
    process: ProcessDefinition,
    sink: Sink,
    lost_told: Lost,
    /// Events that did not fit the spool file.
    unwritten_events: u64,
}

impl Writer {
    fn open() -> Self {
        let process = identity::process();
        let mut writer = Self {
            process,
            sink: Sink::Nowhere,
            lost_told: Lost::default(),
            unwritten_events: 0,
        };
        let sockets = places::sockets(|name| std::env::var(name).ok(), writer.process.uid);
        if let Some(connection) = sockets.iter().find_map(|path| socket::connect(path).ok()) {
            let (device, inode) = connection.identity();
            for (word, value) in CONNECTION_FILE.iter().zip([device, inode]) {
                word.store(value, Ordering::Relaxed);
            }
            CONNECTION.store(connection.number(), Ordering::Relaxed);
            writer.sink = Sink::Collector(connection);
        } else {
            writer.open_spool();
        }
        writer.introduce(&[]);
        writer
    }

    fn open_spool(&mut self) {
        self.sink = match Spool::create(&self.process) {
            Ok(spool) => Sink::Spool(spool),
            Err(error) => {
                say(format_args!(
                    "gpumem: no collector listens and no spool file could be made ({error}); set GPUMEM_DIR to a folder of yours"
                ));
                Sink::Nowhere
            }
        };
    }

    /// Who we are and what the entry points are called, then what else a reader needs.
    fn introduce(&mut self, more: &[u8]) {
        let mut definitions = Vec::new();
        let _ = Definition::<String>::Process(self.process.clone()).append_to(&mut definitions);
        for (id, row) in table::apis() {
            let _ = BorrowedDefinition::Api {
                id: id.0,
                name: row,
            }
            .append_to(&mut definitions);
        }
        definitions.extend_from_slice(more);
        self.definitions(&definitions);
        // Ticks become time between two anchors, and a short program sends only one batch.
        let payload = columns::encode(clock::waking(), &[]);
        self.write(&Chunk::new(ChunkKind::Events, 0, payload), 0);
    }

    fn run(&mut self, receiver: &Receiver<Batch>) {
        while let Ok(batch) = receiver.recv() {
            if !batch.definitions.is_empty() {
                self.definitions(&batch.definitions);
            }
            for events in batch.events.chunks(limits::CHUNK_EVENTS) {
                self.events(batch.anchor, events);
            }
            let lost = Lost {
                others: batch.lost.others + self.unwritten_events,
                ..batch.lost
            };
            self.lost(batch.anchor, lost);
            if batch.goodbye {
                self.goodbye(lost.others + lost.urgent);
            }
            match batch.flush {
                Some(flush) => drainer::flushed(flush),
                None => drainer::progress(),
            }
        }
    }

    /// Writes definitions in chunks that end where a record ends.
    fn definitions(&mut self, mut bytes: &[u8]) {
        while !bytes.is_empty() {
            let mut end = 0;
            while end < DEFINITIONS_BYTES
                && let Some(length) = bytes.get(end..end + 4)
            {
                end += 4 + u32::from_le_bytes(length.try_into().unwrap_or_default()) as usize;
            }
            let (now, later) = bytes.split_at_checked(end.max(4)).unwrap_or((bytes, &[]));
            self.write(&Chunk::new(ChunkKind::Definitions, 0, now.to_vec()), 0);
            bytes = later;
        }
    }

    fn events(&mut self, anchor: Anchor, events: &[Event]) {
        let (Some(first), Some(last)) = (events.first(), events.last()) else {
            return;
        };
        let payload = columns::encode(anchor, events);
        let chunk = Chunk {
            kind: ChunkKind::Events,
            process: 0,
            first: first.seq,
            last: last.seq,
            payload,
        };
        self.write(&chunk, events.len() as u64);
    }

    /// Tells of events that the hooks had to give up.
    fn lost(&mut self, anchor: Anchor, lost: Lost) {
        if lost == self.lost_told {
            return;
        }
        let allocations = lost.others.saturating_sub(self.lost_told.others);
        let frees = lost.urgent.saturating_sub(self.lost_told.urgent);
        self.lost_told = lost;
        let gap = Event {
            seq: Seq(0),
            time: anchor.ticks,
            kind: gpumem_wire::Kind::Gap as u16,
            words: [allocations, frees, 0, 0],
            ..Event::default()
        };
        let payload = columns::encode(anchor, &[gap]);
        self.write(
            &Chunk {
                kind: ChunkKind::Events,
                process: 0,
                first: Seq(0),
                last: Seq(0),
                payload,
            },
            0,
        );
    }

    fn goodbye(&mut self, lost_events: u64) {
        let end = EndDefinition {
            time_ns: clock::anchor().realtime_ns,
            orderly: true,
            lost_events,
        };
        let mut definitions = Vec::new();
        let _ = Definition::<String>::End(end).append_to(&mut definitions);
        self.definitions(&definitions);
    }

    fn write(&mut self, chunk: &Chunk, events: u64) {
        let mut bytes = Vec::new();
        if chunk.append_to(Codec::Lz4, &mut bytes).is_err() {
            self.unwritten_events += events;
            return;
        }
        match self.write_bytes(&bytes, events) {
            Ok(()) => {}
            Err(_) if matches!(self.sink, Sink::Collector(_)) => {
                self.collector_is_gone(&bytes, events)
            }
            Err(error) => {
                say(format_args!(
                    "gpumem: the spool file could not be written ({error}); recording ends here"
                ));
                self.sink = Sink::Nowhere;
                self.unwritten_events += events;
            }
        }
    }

    fn write_bytes(&mut self, bytes: &[u8], events: u64) -> io::Result<()> {
        match &mut self.sink {
            Sink::Collector(connection) => connection.write_all(bytes),
            Sink::Spool(spool) if events == 0 || spool.has_room(bytes.len()) => spool.write(bytes),
            Sink::Spool(_) | Sink::Nowhere => {
                self.unwritten_events += events;
                Ok(())
            }
        }
    }

    /// Goes on in a spool file, with every definition so far. What the collector had is in its own capture.
    fn collector_is_gone(&mut self, unsent: &[u8], events: u64) {
        CONNECTION.store(-1, Ordering::Relaxed);
        self.open_spool();
        let mut definitions = Vec::new();
        stack::arena::Reader::default().read(&mut definitions, usize::MAX);
        let text =
            "the collector went away; what came before this moment is in its capture".to_owned();
        let _ = Definition::<String>::Notice { text }.append_to(&mut definitions);
        self.introduce(&definitions);
        if let Err(error) = self.write_bytes(unsent, events) {
            say(format_args!(
                "gpumem: the spool file could not be written ({error}); recording ends here"
            ));
            self.sink = Sink::Nowhere;
        }
    }
}
