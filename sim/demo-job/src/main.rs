//! The small leaking program that `gpumem demo` runs: it pretends to serve
//! requests with a model, and forgets one buffer in each.
//!
//! It calls the CUDA driver in three ways: a plugin's symbols bound at link
//! time (`plugin.rs`), `dlsym` (`model.rs`) and `cuGetProcAddress` (`cache.rs`,
//! `arena.rs`). It uses the public driver interface alone, and so runs on a
//! real device as well as on a simulated one.

mod arena;
mod cache;
mod driver;
mod model;
mod plugin;

use std::process::ExitCode;
use std::time::Duration;

use arena::Arena;
use cache::Cache;
use driver::{ByName, ByVersion, Error, Library};
use model::Model;
use plugin::Plugin;

const USAGE: &str = "\
gpumem-demo-job: pretends to serve requests on a GPU, and leaks in each

  --steps N     requests to serve (default 40)
  --pause MS    pretended work in each, in milliseconds (default 30)
  --truth       print where it leaks, and how much, as a line of JSON";

const BATCH_BYTES: usize = 6 << 20;

struct Arguments {
    steps: u32,
    pause: Duration,
    truth: bool,
}

fn main() -> ExitCode {
    let arguments = match arguments(std::env::args().skip(1)) {
        Ok(Some(arguments)) => arguments,
        Ok(None) => {
            println!("{USAGE}");
            return ExitCode::SUCCESS;
        }
        Err(message) => {
            eprintln!("gpumem-demo-job: {message}\n\n{USAGE}");
            return ExitCode::from(2);
        }
    };
    match serve(&arguments) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("gpumem-demo-job: {error}");
            ExitCode::FAILURE
        }
    }
}

/// The arguments; `None` when only help is wanted.
fn arguments(mut words: impl Iterator<Item = String>) -> Result<Option<Arguments>, String> {
    let mut arguments = Arguments {
        steps: 40,
        pause: Duration::from_millis(30),
        truth: false,
    };
    while let Some(word) = words.next() {
        let mut number = || {
            let value = words
                .next()
                .ok_or_else(|| format!("{word} needs a number"))?;
            value
                .parse::<u32>()
                .map_err(|_| format!("{word} needs a number, not {value}"))
        };
        match word.as_str() {
            "--steps" => arguments.steps = number()?,
            "--pause" => arguments.pause = Duration::from_millis(number()?.into()),
            "--truth" => arguments.truth = true,
            "--help" | "-h" => return Ok(None),
            _ => return Err(format!("{word} is unknown")),
        }
    }
    Ok(Some(arguments))
}

/// Serves all requests. What the cache holds at the end is not given back: it
/// is the leak.
fn serve(arguments: &Arguments) -> Result<(), Error> {
    let library = Library::open()?;
    let by_name = ByName::find(&library)?;
    let by_version = ByVersion::find(&library)?;
    let plugin = Plugin::load()?;
    let device = by_name.start()?;
    println!(
        "gpumem demo: serving {} requests on {device}",
        arguments.steps
    );

    let mut model = Model::load(&by_name)?;
    let mut arena = Arena::reserve(&by_version)?;
    let mut cache = Cache::default();
    for step in 0..arguments.steps {
        serve_request(&plugin, &model, &mut arena, &mut cache, step)?;
        std::thread::sleep(arguments.pause);
    }
    arena.release()?;
    model.unload()?;

    println!(
        "gpumem demo: done; the results of {} requests are still cached",
        cache.len()
    );
    if arguments.truth {
        println!("{}", cache.truth(arguments.steps));
    }
    Ok(())
}

#[inline(never)]
fn serve_request(
    plugin: &Plugin,
    model: &Model<'_>,
    arena: &mut Arena<'_>,
    cache: &mut Cache,
    step: u32,
) -> Result<(), Error> {
    plugin.load_batch(BATCH_BYTES)?;
    arena.grow(step)?;
    model.forward()?;
    arena.attend()?;
    cache::cache_request_result(arena.driver(), cache)
}
