//! The log: what the program asked for and did not get.

use std::fs::OpenOptions;
use std::io::Write;
use std::sync::atomic::{AtomicBool, Ordering};

/// Names a function that is not simulated, the first time that it is called: in
/// the file `GPUMEM_SIM_LOG`, or on stderr when `GPUMEM_SIM_TRACE` is set.
pub(crate) fn name_once(name: &str, named: &AtomicBool) {
    // Relaxed: at worst two threads name it.
    if named.swap(true, Ordering::Relaxed) {
        return;
    }
    let process = std::process::id();
    let text = format!("simulated libraries [{process}]: {name} is not simulated\n");
    let path = std::env::var_os("GPUMEM_SIM_LOG").filter(|path| !path.is_empty());
    let file = path.and_then(|path| OpenOptions::new().create(true).append(true).open(path).ok());
    // What cannot be written must not change what the program sees.
    if let Some(mut file) = file {
        let _ = file.write_all(text.as_bytes());
    } else if std::env::var("GPUMEM_SIM_TRACE").is_ok_and(|value| value != "0") {
        let _ = std::io::stderr().write_all(text.as_bytes());
    }
}
