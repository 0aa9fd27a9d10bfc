//! `gpumem collect`: the collector that lives on and records many programs as they come and go.

use std::collections::HashMap;
use std::fs::{self, DirBuilder};
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread;

use anyhow::{Context, Result, anyhow, bail};
use clap::Args;
use gpumem_collector::CollectorError;
use gpumem_collector::ingest::running::socket_places;
use gpumem_collector::ingest::server::keeper::{Kept, News, Opener};
use gpumem_collector::ingest::server::{Keeping, raise_descriptor_limit};
use gpumem_collector::ingest::session::spool_places;
use gpumem_collector::insight::who;
use gpumem_collector::model::Process;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::flag::register_conditional_default;
use signal_hook::iterator::Signals;

use crate::run::places::{NAME, create, expand, shim};
use crate::show::WIDTH;
use crate::show::size::{many, size, span_ns};
use crate::show::text::{clean, cut, wrap};
use crate::{Failure, show};

/// What ends a collector.
const ENDING: [i32; 3] = [SIGHUP, SIGINT, SIGTERM];
/// News that wait to be printed. Beyond them they are not printed: a terminal that stands still must not hold up the programs.
const WAITING_NEWS: usize = 1024;

/// Record many programs as they come and go
#[derive(Args)]
#[command(after_help = "\
Listens until Ctrl-C or SIGTERM. Programs that run with the preloaded recorder
find it by themselves and are recorded here, each in a capture of its own in the
usual folder: $GPUMEM_DIR, else $XDG_STATE_HOME/gpumem or ~/.local/state/gpumem,
else $TMPDIR. Meanwhile gpumem leaks, ps and blocks read the programs that run.

In FILE %h is the host, %p the process id, %r the rank and %j the job of each
recorded process; processes of the same FILE share it. A file that is there
already is not overwritten: the new one gets a number.

If the collector ends or is killed, the programs run on and record by themselves.

Examples:
  gpumem collect
  gpumem collect -o '/data/job-%j/rank-%r.gpumem'
  gpumem collect --socket /run/user/1000/gpumem/collector.sock")]
pub(crate) struct CollectArguments {
    /// Where to keep the recordings
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Where to listen; programs then need GPUMEM_SOCKET=PATH
    #[arg(long, value_name = "PATH")]
    socket: Option<PathBuf>,
    /// Do not say which processes come and go
    #[arg(short, long)]
    quiet: bool,
}

/// What the collector's threads tell the one that prints.
enum Heard {
    News(News),
    End,
}

/// Listens until it is told to end.
pub(crate) fn collect(arguments: &CollectArguments) -> Result<ExitCode, Failure> {
    let failed = Failure::FAILED;
    let (tell, heard) = sync_channel(WAITING_NEWS);
    // Before anybody can connect: what ends us from here on ends us well.
    end_on_signals(tell.clone())
        .context("signals cannot be waited for")
        .map_err(Failure::with(failed))?;
    raise_descriptor_limit();
    let keeping = listen(arguments, &tell).map_err(Failure::with(failed))?;
    if !arguments.quiet {
        show::say(&greeting(&keeping, arguments));
    }
    let processes = report(&heard, arguments.quiet);
    let well = keeping.finish();
    // What the processes said last.
    let mut last = processes;
    while let Ok(Heard::News(news)) = heard.try_recv() {
        last.take(&news, arguments.quiet);
    }
    if !well {
        return Err(Failure::with(failed)(anyhow!(
            "a part of the collector failed: recordings may be incomplete"
        )));
    }
    if !arguments.quiet {
        show::say(&format!(
            "gpumem: ended; {} recorded\n",
            many(last.count, "process")
        ));
    }
    Ok(ExitCode::SUCCESS)
}

/// The first of these signals is heard, a second one ends us at once.
fn end_on_signals(tell: SyncSender<Heard>) -> io::Result<()> {
    let ending = Arc::new(AtomicBool::new(false));
    for signal in ENDING {
        register_conditional_default(signal, Arc::clone(&ending))?;
    }
    let mut signals = Signals::new(ENDING)?;
    thread::Builder::new()
        .name("gpumem-signals".into())
        .spawn(move || {
            if signals.forever().next().is_some() {
                // The flag stands alone: no other memory is read by who sees it set.
                ending.store(true, Ordering::Relaxed);
                // Nobody waits only when we end already.
                let _ = tell.send(Heard::End);
            }
        })?;
    Ok(())
}

/// Listens where the user says, else at the first place where programs look and that can be ours.
fn listen(arguments: &CollectArguments, tell: &SyncSender<Heard>) -> Result<Keeping> {
    let start = |path: &Path| {
        let open = opener(arguments.output.as_deref())?;
        let tell = tell.clone();
        // News that find no room are left out.
        let listener = move |news| drop(tell.try_send(Heard::News(news)));
        Ok(Keeping::start(path, open, Box::new(listener))?)
    };
    if let Some(path) = &arguments.socket {
        return start(path);
    }
    let mut why = Vec::new();
    for path in socket_places() {
        match start(&path) {
            Ok(keeping) => return Ok(keeping),
            // Programs would find that one first.
            Err(error) if is_held(&error) => return Err(error),
            Err(error) => why.push(format!("{error:#}")),
        }
    }
    bail!(
        "no place to listen ({}). Give one with --socket PATH",
        why.join("; ")
    )
}

fn is_held(error: &anyhow::Error) -> bool {
    matches!(
        error.downcast_ref::<CollectorError>(),
        Some(CollectorError::Held { .. })
    )
}

/// How a process gets its capture. One a process in the usual folder, in the form that a process writes by itself: then the
/// processes of a job are one session for every reader, whoever wrote them, and what ended long ago is read by nobody.
fn opener(output: Option<&Path>) -> Result<Opener> {
    let Some(output) = output else {
        return Ok(Box::new(|process| {
            in_usual_folder(process).map_err(|error| format!("{error:#}"))
        }));
    };
    let output = match output.is_dir() {
        true => output.join(NAME),
        false => output.to_owned(),
    };
    let folder = output
        .parent()
        .filter(|path| !path.as_os_str().is_empty())
        .filter(|path| !path.to_string_lossy().contains('%'));
    if let Some(folder) = folder.filter(|folder| !folder.is_dir()) {
        bail!(
            "{} is no folder: recordings cannot be kept there. Make it, or give another FILE",
            folder.display()
        );
    }
    let pattern = output.to_string_lossy().into_owned();
    // A process id is of one process at a time: its capture is closed when it ends.
    let is_shared = !pattern.contains("%p");
    let mut shared: HashMap<PathBuf, Kept> = HashMap::new();
    Ok(Box::new(move |process| {
        let path = PathBuf::from(expand(&pattern, |letter| letter_of(process, letter)));
        if let Some(kept) = shared.get_mut(&path) {
            *kept = kept.next();
            return Ok(kept.clone());
        }
        let kept = named(&path)
            .map(Kept::shared)
            .map_err(|error| format!("{error:#}"))?;
        if is_shared {
            shared.insert(path, kept.clone());
        }
        Ok(kept)
    }))
}

fn named(path: &Path) -> Result<gpumem_collector::ingest::CaptureWriter> {
    if let Some(folder) = path.parent().filter(|path| !path.as_os_str().is_empty()) {
        private_folder(folder)?;
    }
    Ok(create(path)?.0)
}

fn in_usual_folder(process: &Process) -> Result<Kept> {
    let name = spool_name(process);
    let mut why = Vec::new();
    for folder in spool_places() {
        let made = own_folder(&folder).and_then(|()| create(&folder.join(&name)));
        match made {
            Ok((writer, _)) => return Ok(Kept::alone(writer)),
            Err(error) => why.push(format!("{}: {error:#}", folder.display())),
        }
    }
    bail!(
        "no place for its recording ({}). Give one with -o FILE, or set GPUMEM_DIR",
        why.join("; ")
    )
}

fn private_folder(folder: &Path) -> Result<()> {
    DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(folder)
        .with_context(|| format!("{} cannot be made", folder.display()))
}

/// Makes or checks a folder that only this user can have put files into: the same as the shim asks of it.
fn own_folder(folder: &Path) -> Result<()> {
    if !folder.is_absolute() {
        bail!("it is a relative path");
    }
    private_folder(folder)?;
    let found = fs::symlink_metadata(folder)?;
    let me = rustix::process::geteuid().as_raw();
    if !found.is_dir() || found.uid() != me || found.mode() & 0o022 != 0 {
        bail!("others can write to it");
    }
    Ok(())
}

/// A name like those of the captures that processes write by themselves, and before that in the order of names: a process that
/// goes on by itself when its collector ends writes the second part.
fn spool_name(process: &Process) -> String {
    let definition = process.definition();
    let rank = who::rank(process)
        .map(|rank| format!("-r{rank}"))
        .unwrap_or_default();
    let letters = |text: &str, most: usize| -> String {
        let allowed = text
            .chars()
            .filter(|letter| letter.is_ascii_alphanumeric() || matches!(letter, '-' | '_' | '.'));
        allowed.take(most).collect()
    };
    format!(
        "{}-{}-{}-{}-{}{rank}-collected.gpumem",
        definition.started_ns,
        letters(&definition.host, 64),
        letters(&definition.boot_id, 8),
        definition.pid_namespace,
        definition.pid
    )
}

/// What a letter of a pattern stands for, of a recorded process.
fn letter_of(process: &Process, letter: char) -> Option<String> {
    let definition = process.definition();
    let variable = |names: &[&str]| {
        let environment = &definition.environment;
        let found = names.iter().find_map(|name| {
            let (_, value) = environment.iter().find(|(key, _)| key == name)?;
            Some(value.clone())
        });
        found.unwrap_or_else(|| "0".into())
    };
    match letter {
        'h' => Some(definition.host.clone()),
        'p' => Some(definition.pid.to_string()),
        'r' => Some(who::rank(process).unwrap_or(0).to_string()),
        'j' => Some(variable(&["SLURM_JOB_ID", "TORCHELASTIC_RUN_ID"])),
        _ => None,
    }
}

fn greeting(keeping: &Keeping, arguments: &CollectArguments) -> String {
    let socket = keeping.path().display().to_string();
    let mut out = format!("gpumem: listening at {}\n", clean(&socket));
    let mut environment = Vec::new();
    if arguments.socket.is_some() {
        environment.push(format!("GPUMEM_SOCKET={}", clean(&socket)));
    }
    if let Ok(shim) = shim() {
        environment.push(format!("LD_PRELOAD={}", clean(&shim.to_string_lossy())));
    }
    if !environment.is_empty() {
        out.push_str(&format!("  {} CMD\n", environment.join(" ")));
    }
    out
}

/// The processes that came.
#[derive(Default)]
struct Processes {
    count: u64,
}

/// Prints what is heard until the end is.
fn report(heard: &Receiver<Heard>, quiet: bool) -> Processes {
    let mut processes = Processes::default();
    while let Ok(Heard::News(news)) = heard.recv() {
        processes.take(&news, quiet);
    }
    processes
}

impl Processes {
    fn take(&mut self, news: &News, quiet: bool) {
        self.count += u64::from(matches!(
            news,
            News::Came {
                capture: Some(_),
                ..
            }
        ));
        let is_warning = matches!(news, News::Said(_));
        if !quiet || is_warning {
            show::say(&line(news));
        }
    }
}

fn line(news: &News) -> String {
    match news {
        News::Came {
            pid,
            command,
            capture,
        } => {
            let start = format!("{pid} began: {}", clean(command));
            let path = capture.as_ref().map(|path| path.display().to_string());
            let path = path
                .map(|path| format!("  {}\n", clean(&path)))
                .unwrap_or_default();
            format!("{}\n{path}", cut(&start, WIDTH))
        }
        News::Went {
            pid,
            orderly,
            lived_ns,
            live_bytes,
            peak_bytes,
        } => {
            let how = match orderly {
                true => "ended",
                false => "went without a goodbye",
            };
            format!(
                "{pid} {how} after {}: {} at the end, peak {}\n",
                span_ns(*lived_ns),
                size(*live_bytes),
                size(*peak_bytes)
            )
        }
        News::Said(sentence) => format!("gpumem: {}\n", wrap(&clean(sentence), 8, WIDTH)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_those_who_come_and_go() {
        let came = News::Came {
            pid: 4711,
            command: format!("python train.py\n --name {}", "x".repeat(100)),
            capture: Some("/data/a.gpumem".into()),
        };
        let went = |orderly| News::Went {
            pid: 4711,
            orderly,
            lived_ns: 12_000_000_000,
            live_bytes: 168 << 20,
            peak_bytes: 172 << 20,
        };
        let said = News::Said("the disk is full".into());
        let all: String = [came, went(true), went(false), said]
            .iter()
            .map(line)
            .collect();
        assert!(
            all.lines().all(|line| line.chars().count() <= WIDTH),
            "{all}"
        );
        insta::assert_snapshot!(all);
    }
}
