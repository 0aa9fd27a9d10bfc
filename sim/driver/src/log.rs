//! The log: what the program asked for and did not get.

use std::fs::OpenOptions;
use std::io::Write;
use std::sync::{LazyLock, Mutex, PoisonError};

/// Writes one line to `GPUMEM_SIM_LOG`, or to stderr when `GPUMEM_SIM_TRACE`
/// is set.
pub(crate) fn line(text: &str) {
    static SINK: LazyLock<Option<Mutex<Box<dyn Write + Send>>>> = LazyLock::new(open);
    if let Some(sink) = &*SINK {
        let text = format!("simulated CUDA driver [{}]: {text}\n", std::process::id());
        let mut sink = sink.lock().unwrap_or_else(PoisonError::into_inner);
        // A full disk must not change what the program sees.
        let _ = sink.write_all(text.as_bytes());
    }
}

fn open() -> Option<Mutex<Box<dyn Write + Send>>> {
    if let Some(path) = std::env::var_os("GPUMEM_SIM_LOG").filter(|path| !path.is_empty()) {
        match OpenOptions::new().create(true).append(true).open(&path) {
            Ok(file) => return Some(Mutex::new(Box::new(file))),
            Err(error) => eprintln!(
                "simulated CUDA driver: GPUMEM_SIM_LOG={} cannot be opened: {error}",
                path.display()
            ),
        }
    }
    let traced = std::env::var("GPUMEM_SIM_TRACE").is_ok_and(|value| value != "0");
    traced.then(|| Mutex::new(Box::new(std::io::stderr()) as Box<dyn Write + Send>))
}
