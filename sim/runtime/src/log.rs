//! The log: what the program asked for and did not get.

use std::fs::OpenOptions;
use std::io::Write;

/// Adds a line to the file `GPUMEM_SIM_LOG`, or writes it to stderr when
/// `GPUMEM_SIM_TRACE` is set. Lines are few: one for each function.
pub(crate) fn line(text: &str) {
    let text = format!("simulated CUDA runtime [{}]: {text}\n", std::process::id());
    let path = std::env::var_os("GPUMEM_SIM_LOG").filter(|path| !path.is_empty());
    let file = path.and_then(|path| OpenOptions::new().create(true).append(true).open(path).ok());
    // What cannot be written must not change what the program sees.
    if let Some(mut file) = file {
        let _ = file.write_all(text.as_bytes());
    } else if std::env::var("GPUMEM_SIM_TRACE").is_ok_and(|value| value != "0") {
        let _ = std::io::stderr().write_all(text.as_bytes());
    }
}
