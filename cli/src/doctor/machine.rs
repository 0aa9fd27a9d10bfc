//! The machine, whatever program runs on it: the shim, the driver, the places for sockets and recordings, the environment.

use std::env;
use std::ffi::{OsStr, OsString};
use std::fs;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use gpumem_collector::ingest::session::spool_places;
use rustix::fs::{Access, access, statvfs};
use rustix::process::getuid;

use super::driver::{self, Driver};
use super::elf::{Architecture, Head};
use super::{Check, container, loader};
use crate::run::places::{self, PrivateFolder};
use crate::show::size::size;

/// With less room than this, a recording may be cut short.
const ROOM_BYTES: u64 = 1 << 30;
/// Others may write to such a folder.
const OTHERS_WRITE: u32 = 0o022;

/// All checks of the machine, and the shim where it is well.
pub(crate) fn machine() -> (Vec<Check>, Option<OsString>) {
    let root = Path::new("/");
    let variable = |name: &str| env::var(name).ok();
    let (recorder, shim) = recorder();
    let found = driver(shim.as_deref().unwrap_or(OsStr::new("")));
    let mut checks = vec![recorder];
    match &found {
        Ok(driver) => checks.extend([driver::library(driver, root), driver::devices(driver, root)]),
        Err(error) => checks.push(Check::error("driver", error)),
    }
    checks.extend(driver::visible(variable("CUDA_VISIBLE_DEVICES").as_deref()));
    checks.extend(mode(variable("GPUMEM_MODE").as_deref()));
    let system = fs::read_to_string(root.join("etc/ld.so.preload")).unwrap_or_default();
    checks.extend(preload(variable("LD_PRELOAD").as_deref(), &system));
    checks.push(recordings(&spool_places(), getuid().as_raw()));
    checks.push(socket());
    checks.extend(listener(variable("GPUMEM_SOCKET").as_deref()));
    checks.extend(container(root).map(|kind| Check::ok("container", kind.into())));
    (checks, shim)
}

/// The driver that a program without paths of its own finds. The loader is asked with this very program.
pub(super) fn driver(shim: &OsStr) -> Result<Driver> {
    let own = env::current_exe().context("gpumem's own file is not known")?;
    Ok(Driver::at(loader::ask(&own, shim)?.driver))
}

/// Whether the shim is there, and can be loaded here.
fn recorder() -> (Check, Option<OsString>) {
    const NAME: &str = "recorder";
    let shim = match places::shim() {
        Ok(shim) => shim,
        Err(error) => return (Check::error(NAME, &error), None),
    };
    match loadable(Path::new(&shim)) {
        Ok(None) => {
            let found = format!("{}, {}", shim.to_string_lossy(), Architecture::OURS);
            (Check::ok(NAME, found), Some(shim))
        }
        Ok(Some(check)) => (check, None),
        Err(error) => {
            let error = error.context(format!(
                "the recorder {} cannot be looked at",
                shim.to_string_lossy()
            ));
            let mend = "Install gpumem anew".into();
            (Check::fail(NAME, format!("{error:#}"), mend), None)
        }
    }
}

fn loadable(shim: &Path) -> Result<Option<Check>> {
    let architecture = match Head::read(shim)? {
        Some(head) => head.architecture,
        None => {
            return Ok(Some(Check::fail(
                "recorder",
                format!("{} is no library", shim.display()),
                "Install gpumem anew, or set GPUMEM_SHIM to its libgpumemshim.so".into(),
            )));
        }
    };
    if architecture != Architecture::OURS {
        return Ok(Some(refused(&format!("it is for {architecture}"))));
    }
    let own = env::current_exe()?;
    Ok(loader::ask(&own, shim.as_os_str())?
        .refusal
        .map(|why| refused(&why)))
}

/// The loader does not take the shim.
pub(super) fn refused(why: &str) -> Check {
    Check::fail(
        "recorder",
        format!("the recorder cannot be loaded: {why}"),
        "Build gpumem on a machine whose glibc is no newer than the one here".into(),
    )
}

/// How much is recorded (`GPUMEM_MODE`).
fn mode(value: Option<&str>) -> Option<Check> {
    const NAME: &str = "mode";
    match value? {
        "full" | "" => None,
        "off" => Some(Check::fail(
            NAME,
            "GPUMEM_MODE is off: nothing is recorded".into(),
            "Unset GPUMEM_MODE".into(),
        )),
        "ledger" => Some(Check::warn(
            NAME,
            "GPUMEM_MODE is ledger: no lines are recorded".into(),
            "Unset GPUMEM_MODE to see which line holds what".into(),
        )),
        other => Some(Check::warn(
            NAME,
            format!("GPUMEM_MODE is {other}, which means nothing and is taken as full"),
            "Set it to off, ledger or full, or unset it".into(),
        )),
    }
}

/// What else is preloaded, by the variable and by `/etc/ld.so.preload`.
fn preload(variable: Option<&str>, system: &str) -> Option<Check> {
    const NAME: &str = "preload";
    let split = |text: &str| -> Vec<String> {
        let words = text.split([':', ' ', '\n']);
        words
            .filter(|word| !word.is_empty())
            .map(str::to_owned)
            .collect()
    };
    let mut names = split(variable.unwrap_or_default());
    names.extend(split(system));
    if names.is_empty() {
        return None;
    }
    let (ours, others): (Vec<String>, Vec<String>) = names
        .into_iter()
        .partition(|name| name.ends_with("libgpumemshim.so"));
    if others.is_empty() {
        return Some(Check::ok(NAME, ours.join(", ")));
    }
    Some(Check::warn(
        NAME,
        format!("preloaded too, behind the recorder: {}", others.join(", ")),
        "If CUDA calls are not seen, try without".into(),
    ))
}

/// Where recordings go: the first folder that takes them.
fn recordings(folders: &[PathBuf], uid: u32) -> Check {
    const NAME: &str = "recordings";
    const MEND: &str = "Set GPUMEM_DIR to a folder of your own that nobody else may write";
    let mut refused = Vec::new();
    for folder in folders {
        match takes(folder, uid) {
            Ok(free_bytes) => {
                let room = format!("{}, {} free", folder.display(), size(free_bytes));
                if free_bytes < ROOM_BYTES {
                    return Check::warn(NAME, room, "Make room, or set GPUMEM_DIR".into());
                }
                if refused.is_empty() {
                    return Check::ok(NAME, room);
                }
                return Check::warn(
                    NAME,
                    format!("{room} ({})", refused.join("; ")),
                    MEND.into(),
                );
            }
            Err(why) => refused.push(format!("not {}: {why}", folder.display())),
        }
    }
    Check::fail(
        NAME,
        format!("no folder takes recordings ({})", refused.join("; ")),
        MEND.into(),
    )
}

/// Whether a folder takes recordings, by the same rules as the shim, or can be made; the bytes that are free there.
fn takes(folder: &Path, uid: u32) -> Result<u64, &'static str> {
    if !folder.is_absolute() {
        return Err("it is a relative path");
    }
    let mut place = folder;
    match fs::symlink_metadata(folder) {
        Ok(found) if !found.is_dir() => return Err("it is no folder"),
        Ok(found) if found.uid() != uid => return Err("it is another user's"),
        Ok(found) if found.mode() & OTHERS_WRITE != 0 => return Err("others may write to it"),
        Ok(_) => {}
        Err(_) => {
            let above = folder.ancestors().skip(1).find(|above| above.exists());
            place = above.unwrap_or(Path::new("/"));
        }
    }
    if access(place, Access::WRITE_OK | Access::EXEC_OK).is_err() {
        return Err("it may not be written");
    }
    let found = statvfs(place).map_err(|_| "its file system does not answer")?;
    Ok(found.f_bavail.saturating_mul(found.f_frsize))
}

/// Whether `gpumem run` can make the private folder of its socket: it is made, and goes at once.
fn socket() -> Check {
    const NAME: &str = "socket";
    match PrivateFolder::make("gpumem-doctor") {
        Ok(folder) => {
            let above = folder.path().parent().unwrap_or(Path::new("/"));
            Check::ok(
                NAME,
                format!("in a private folder under {}", above.display()),
            )
        }
        Err(error) => Check::error(NAME, &error),
    }
}

/// Whether somebody can listen where `GPUMEM_SOCKET` leads programs that are preloaded by hand.
fn listener(value: Option<&str>) -> Option<Check> {
    const NAME: &str = "collector";
    let path = value.filter(|path| !path.is_empty())?;
    let uid = getuid().as_raw();
    let why = match fs::symlink_metadata(path) {
        Err(_) => "is not there",
        Ok(found) if !found.file_type().is_socket() => "is no socket",
        Ok(found) if found.uid() != uid && found.uid() != 0 => "is another user's",
        Ok(_) => return Some(Check::ok(NAME, format!("GPUMEM_SOCKET={path}"))),
    };
    Some(Check::warn(
        NAME,
        format!("GPUMEM_SOCKET={path} {why}: preloaded programs write recordings instead"),
        "Unset it, unless that is meant".into(),
    ))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;
    use crate::doctor::Level;

    fn level(check: Option<Check>) -> Option<Level> {
        check.map(|check| check.level)
    }

    #[test]
    fn the_mode_may_hide_what_is_sought() {
        assert_eq!(level(mode(None)), None);
        assert_eq!(level(mode(Some("full"))), None);
        assert_eq!(level(mode(Some("off"))), Some(Level::Fail));
        assert_eq!(level(mode(Some("ledger"))), Some(Level::Warn));
        assert_eq!(level(mode(Some("on"))), Some(Level::Warn));
    }

    #[test]
    fn other_preloads_are_named() {
        assert_eq!(level(preload(None, "")), None);
        let ours = preload(Some("/opt/libgpumemshim.so"), "\n");
        assert_eq!(level(ours), Some(Level::Ok));
        let both = preload(
            Some("/opt/libgpumemshim.so:/x/libjemalloc.so"),
            "/y/libvgpu.so\n",
        );
        let both = both.unwrap();
        assert_eq!(both.level, Level::Warn);
        assert!(
            both.found.ends_with(": /x/libjemalloc.so, /y/libvgpu.so"),
            "{}",
            both.found
        );
    }

    #[test]
    fn a_folder_that_others_may_write_is_passed_over() {
        let folder = tempfile::tempdir().unwrap();
        let uid = getuid().as_raw();
        let (own, open) = (folder.path().join("own/deep"), folder.path().join("open"));
        fs::create_dir(&open).unwrap();
        fs::set_permissions(&open, fs::Permissions::from_mode(0o777)).unwrap();
        let check = recordings(&[open.clone(), own.clone()], uid);
        assert_eq!(check.level, Level::Warn);
        assert!(
            check.found.contains("others may write to it"),
            "{}",
            check.found
        );
        assert!(check.found.starts_with(&own.display().to_string()));
        // Looking makes nothing.
        assert!(!own.exists());
        assert_eq!(recordings(&[open], uid).level, Level::Fail);
        assert_eq!(takes(folder.path(), uid + 1), Err("it is another user's"));
        assert_eq!(takes(Path::new("here"), uid), Err("it is a relative path"));
    }

    #[test]
    fn a_socket_must_be_one() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("socket");
        let found = || listener(path.to_str()).unwrap();
        assert!(found().found.contains("is not there"));
        fs::write(&path, "").unwrap();
        assert!(found().found.contains("is no socket"));
        fs::remove_file(&path).unwrap();
        let _listener = std::os::unix::net::UnixListener::bind(&path).unwrap();
        assert_eq!(found().level, Level::Ok);
        assert_eq!(level(listener(None)), None);
    }
}
