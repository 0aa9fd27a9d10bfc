//! The driver: its library, the kernel's part, the device nodes. All is read from files; no CUDA call is made.

use std::fs;
use std::path::{Path, PathBuf};

use rustix::fs::{Access, access};

use super::{Check, Level, container};

/// What to do in a container that has no GPU.
const IN_CONTAINER: &str = "Start the container with its GPU: docker run --gpus all, apptainer exec --nv. Without a GPU: gpumem run --sim -- CMD";

/// The driver's library that programs find.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Driver {
    /// None.
    Absent,
    /// NVIDIA's.
    Real {
        /// Where it is found.
        path: PathBuf,
        /// Its version, by its file's name.
        version: Option<String>,
    },
    /// The CUDA toolkit's library for linking, which can do nothing.
    Stub {
        /// Where it is found.
        path: PathBuf,
    },
    /// The simulator's.
    Simulated {
        /// Where it is found.
        path: PathBuf,
    },
}

impl Driver {
    /// The library at this path.
    pub(super) fn at(path: Option<PathBuf>) -> Self {
        let Some(path) = path else {
            return Self::Absent;
        };
        let real = path.canonicalize().unwrap_or_else(|_| path.clone());
        let name = real.file_name().unwrap_or_default().to_string_lossy();
        if name.starts_with("libgpumem_sim_") {
            Self::Simulated { path }
        } else if real.components().any(|part| part.as_os_str() == "stubs") {
            Self::Stub { path }
        } else {
            let version = name
                .strip_prefix("libcuda.so.")
                .filter(|rest| is_version(rest));
            let version = version.map(str::to_owned);
            Self::Real { path, version }
        }
    }
}

/// Dots between numbers, two at least: `535.104.05`, and not the `1` of a soname.
fn is_version(text: &str) -> bool {
    let mut parts = text.split('.');
    let numbers = |part: &str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
    text.contains('.') && parts.all(numbers)
}

/// The version of the kernel's part, below `root`.
fn kernel(root: &Path) -> Option<String> {
    let text = fs::read_to_string(root.join("proc/driver/nvidia/version")).ok()?;
    let mut words = text.lines().next()?.split_whitespace();
    words.find(|word| is_version(word)).map(str::to_owned)
}

/// Checks the library, and that the kernel's part is of the same version.
pub(super) fn library(driver: &Driver, root: &Path) -> Check {
    const NAME: &str = "driver";
    match driver {
        Driver::Absent => Check::fail(
            NAME,
            "no libcuda.so.1 is found: CUDA programs will say that there is no driver".into(),
            match container(root) {
                Some(_) => IN_CONTAINER.into(),
                None => "Install NVIDIA's driver, or set LD_LIBRARY_PATH to its folder. Without a GPU: gpumem run --sim -- CMD".into(),
            },
        ),
        Driver::Stub { path } => Check::fail(
            NAME,
            format!("{} is a stub for linking, no driver", path.display()),
            "Take its folder out of LD_LIBRARY_PATH".into(),
        ),
        Driver::Simulated { path } => Check::ok(NAME, format!("{}, simulated", path.display())),
        Driver::Real { path, version } => {
            let found = match version {
                Some(version) => format!("{}, NVIDIA {version}", path.display()),
                None => format!("{}, version not known", path.display()),
            };
            match (version, kernel(root)) {
                (Some(library), Some(kernel)) if *library != kernel => {
                    mismatch(path, library, &kernel)
                }
                _ => Check::ok(NAME, found),
            }
        }
    }
}

fn mismatch(path: &Path, library: &str, kernel: &str) -> Check {
    const NAME: &str = "driver";
    // NVIDIA's forward compatibility package lies in a folder of this name and is meant to be newer than the kernel's part.
    if path.to_string_lossy().contains("compat") {
        return Check::ok(
            NAME,
            format!(
                "{}, NVIDIA {library} (forward compatible), kernel module {kernel}",
                path.display()
            ),
        );
    }
    Check::fail(
        NAME,
        format!(
            "{} is of version {library}, the kernel module of {kernel}: CUDA does not start",
            path.display()
        ),
        "Reboot, or reload NVIDIA's kernel modules; restart a container that is older than the driver"
            .into(),
    )
}

/// Checks that the device nodes below `root` may be opened.
pub(super) fn devices(driver: &Driver, root: &Path) -> Check {
    const NAME: &str = "devices";
    if matches!(driver, Driver::Simulated { .. }) {
        return Check::ok(NAME, "none is needed: the driver is simulated".into());
    }
    let nodes = nodes(root);
    let name = |path: &PathBuf| format!("/dev/{}", file_name(path));
    let numbered: Vec<&PathBuf> = nodes.iter().filter(|path| is_device(path)).collect();
    if numbered.is_empty() {
        return Check::fail(
            NAME,
            "there is no /dev/nvidia0 or other GPU here".into(),
            match container(root) {
                Some(_) => IN_CONTAINER.into(),
                None => "Load NVIDIA's kernel module (nvidia-smi does; dmesg says why not). Without a GPU: gpumem run --sim -- CMD".into(),
            },
        );
    }
    let closed: Vec<String> = nodes
        .iter()
        .filter(|path| access(*path, Access::READ_OK | Access::WRITE_OK).is_err())
        .map(name)
        .collect();
    if !closed.is_empty() {
        return Check::fail(
            NAME,
            format!("{} may not be opened by this user", closed.join(", ")),
            "Join the group that owns them (often video or render), then log in anew".into(),
        );
    }
    let has = |wanted: &str| nodes.iter().any(|path| file_name(path) == wanted);
    if !has("dxg") && ["nvidiactl", "nvidia-uvm"].iter().any(|name| !has(name)) {
        // On a machine of one's own the driver makes them at its first use, with a helper of NVIDIA's.
        return Check::warn(
            NAME,
            "/dev/nvidiactl or /dev/nvidia-uvm is not there: CUDA may not start".into(),
            "Run nvidia-modprobe -u -c 0 as root; give them to a container, too".into(),
        );
    }
    let names: Vec<String> = numbered.into_iter().map(name).collect();
    Check::ok(NAME, names.join(", "))
}

/// NVIDIA's nodes, and `/dev/dxg`, which takes their place under WSL.
fn nodes(root: &Path) -> Vec<PathBuf> {
    let mut nodes: Vec<PathBuf> = fs::read_dir(root.join("dev"))
        .into_iter()
        .flatten()
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(|path| {
            is_device(path) || matches!(file_name(path).as_str(), "nvidiactl" | "nvidia-uvm")
        })
        .collect();
    nodes.sort();
    nodes
}

fn is_device(path: &Path) -> bool {
    let name = file_name(path);
    let number = name.strip_prefix("nvidia");
    name == "dxg"
        || number
            .is_some_and(|rest| !rest.is_empty() && rest.bytes().all(|byte| byte.is_ascii_digit()))
}

fn file_name(path: &Path) -> String {
    let name = path.file_name().unwrap_or_default();
    name.to_string_lossy().into_owned()
}

/// Checks that `CUDA_VISIBLE_DEVICES`, if it is set, leaves a device to be seen.
pub(super) fn visible(value: Option<&str>) -> Option<Check> {
    const NAME: &str = "visible";
    let value = value?;
    let first = value.split(',').next().unwrap_or_default().trim();
    // CUDA stops at the first entry that it cannot take.
    if first.is_empty() || first.starts_with('-') {
        return Some(Check::fail(
            NAME,
            format!("CUDA_VISIBLE_DEVICES is \"{value}\": it hides every GPU"),
            "Unset it, or name a device, as in CUDA_VISIBLE_DEVICES=0".into(),
        ));
    }
    Some(Check::ok(NAME, format!("CUDA_VISIBLE_DEVICES={value}")))
}

/// Says that a driver was found after all: the program knew where one is.
pub(super) fn was_found(check: &mut Check) {
    if check.level == Level::Fail && matches!(check.name, "driver" | "devices") {
        *check = Check::ok(check.name, "the program found its own".into());
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{PermissionsExt, symlink};

    use super::*;

    fn root() -> tempfile::TempDir {
        let root = tempfile::tempdir().unwrap();
        for folder in ["dev", "proc/driver/nvidia", "lib/stubs", "lib/compat"] {
            fs::create_dir_all(root.path().join(folder)).unwrap();
        }
        root
    }

    fn link(root: &Path, target: &str) -> Driver {
        let path = root.join("lib/libcuda.so.1");
        let target = root.join("lib").join(target);
        fs::write(&target, "").unwrap();
        let _ = fs::remove_file(&path);
        symlink(target, &path).unwrap();
        Driver::at(Some(path))
    }

    #[test]
    fn a_library_is_told_by_the_file_behind_it() {
        let root = root();
        let kind = |target| match link(root.path(), target) {
            Driver::Absent => "absent".into(),
            Driver::Stub { .. } => "stub".into(),
            Driver::Simulated { .. } => "simulated".into(),
            Driver::Real { version, .. } => version.unwrap_or("real".into()),
        };
        assert_eq!(kind("libcuda.so.535.104.05"), "535.104.05");
        assert_eq!(kind("libcuda.so.1.0-x"), "real");
        assert_eq!(kind("stubs/libcuda.so"), "stub");
        assert_eq!(kind("libgpumem_sim_driver.so"), "simulated");
    }

    #[test]
    fn library_and_kernel_are_of_one_version() {
        let root = root();
        let driver = link(root.path(), "libcuda.so.550.54.15");
        assert_eq!(library(&driver, root.path()).level, Level::Ok);
        let says = |line: &str| {
            fs::write(root.path().join("proc/driver/nvidia/version"), line).unwrap();
            library(&driver, root.path()).level
        };
        let closed = "NVRM version: NVIDIA UNIX x86_64 Kernel Module  550.54.15  Tue Mar 5";
        assert_eq!(says(closed), Level::Ok);
        let open = "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  575.57.08  Release";
        assert_eq!(says(open), Level::Fail);
        let found = library(&driver, root.path()).found;
        assert!(found.contains("550.54.15") && found.contains("575.57.08"));
        let compatible = link(root.path(), "compat/libcuda.so.580.1.2");
        let Driver::Real { version, .. } = compatible else {
            panic!("{compatible:?}")
        };
        let path = root.path().join("lib/compat/libcuda.so.1");
        let check = library(&Driver::Real { path, version }, root.path());
        assert_eq!(check.level, Level::Ok, "{}", check.found);
    }

    #[test]
    fn device_nodes_must_be_there() {
        let root = root();
        let (real, dev) = (link(root.path(), "libcuda.so.1.2"), root.path().join("dev"));
        let found = || devices(&real, root.path());
        assert!(found().found.contains("no /dev/nvidia0"));
        fs::write(dev.join("nvidia0"), "").unwrap();
        assert!(found().found.contains("nvidia-uvm"));
        for name in ["nvidiactl", "nvidia-uvm", "nvidia-modeset"] {
            fs::write(dev.join(name), "").unwrap();
        }
        assert_eq!(
            (found().level, found().found.as_str()),
            (Level::Ok, "/dev/nvidia0")
        );
        let closed = dev.join("nvidia0");
        fs::set_permissions(&closed, fs::Permissions::from_mode(0o000)).unwrap();
        // To root every file is open.
        if access(&closed, Access::READ_OK).is_err() {
            assert!(found().found.contains("may not be opened"));
        }
        let simulated = link(root.path(), "libgpumem_sim_driver.so");
        assert_eq!(devices(&simulated, Path::new("/no/such")).level, Level::Ok);
    }

    #[test]
    fn a_variable_can_hide_every_device() {
        let level = |value| visible(value).map(|check| check.level);
        assert_eq!(level(None), None);
        assert_eq!(level(Some("0,1")), Some(Level::Ok));
        assert_eq!(level(Some("")), Some(Level::Fail));
        assert_eq!(level(Some("-1")), Some(Level::Fail));
    }
}
