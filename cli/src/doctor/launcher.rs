//! Programs that start others where the environment of ours does not lead: in a container, on another machine, as another
//! user. gpumem has its place on their far side.

use std::ffi::OsString;
use std::path::Path;

/// A launcher: one row.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Launcher {
    /// Its name.
    pub(super) name: &'static str,
    /// Why nothing is seen of what it starts: the end of a sentence that begins with its name.
    pub(super) why: &'static str,
    /// The line to use; `{dir}` stands for gpumem's folder.
    line: &'static str,
}

const CONTAINER: &str =
    "starts its program in a container, which gets neither LD_PRELOAD nor the recorder";
const MACHINE: &str = "starts its program on another machine, which does not get LD_PRELOAD";
const USER: &str = "starts its program with a clean environment, without LD_PRELOAD";
const SERVICE: &str = "has its program started by a service, which does not get LD_PRELOAD";
const TASKS: &str = "starts tasks that may be on other nodes and do not reach this gpumem";
const ON_NODES: &str = "srun {dir}/gpumem run -o run-%h-%r.gpumem -- CMD";

const LAUNCHERS: &[Launcher] = &[
    row(
        "docker",
        CONTAINER,
        "docker run --gpus all -v {dir}:/opt/gpumem:ro -v $PWD:/out IMAGE /opt/gpumem/gpumem run -o /out/run.gpumem -- CMD",
    ),
    row(
        "podman",
        CONTAINER,
        "podman run --device nvidia.com/gpu=all -v {dir}:/opt/gpumem:ro -v $PWD:/out IMAGE /opt/gpumem/gpumem run -o /out/run.gpumem -- CMD",
    ),
    row(
        "nerdctl",
        CONTAINER,
        "nerdctl run --gpus all -v {dir}:/opt/gpumem:ro -v $PWD:/out IMAGE /opt/gpumem/gpumem run -o /out/run.gpumem -- CMD",
    ),
    row(
        "apptainer",
        CONTAINER,
        "apptainer exec --nv --bind {dir}:/opt/gpumem IMAGE /opt/gpumem/gpumem run -- CMD",
    ),
    row(
        "singularity",
        CONTAINER,
        "singularity exec --nv --bind {dir}:/opt/gpumem IMAGE /opt/gpumem/gpumem run -- CMD",
    ),
    row(
        "enroot",
        CONTAINER,
        "enroot start --mount {dir}:/opt/gpumem NAME /opt/gpumem/gpumem run -- CMD",
    ),
    row(
        "kubectl",
        CONTAINER,
        "kubectl exec POD -- gpumem run -o /tmp/run.gpumem -- CMD",
    ),
    row("srun", TASKS, ON_NODES),
    row("sbatch", TASKS, ON_NODES),
    row("ssh", MACHINE, "ssh HOST gpumem run -- CMD"),
    row("sudo", USER, "sudo {dir}/gpumem run -- CMD"),
    row("doas", USER, "doas {dir}/gpumem run -- CMD"),
    row("pkexec", USER, "pkexec {dir}/gpumem run -- CMD"),
    row(
        "systemd-run",
        SERVICE,
        "systemd-run --pty {dir}/gpumem run -- CMD",
    ),
    row(
        "flatpak-spawn",
        SERVICE,
        "flatpak-spawn --host {dir}/gpumem run -- CMD",
    ),
];

const fn row(name: &'static str, why: &'static str, line: &'static str) -> Launcher {
    Launcher { name, why, line }
}

impl Launcher {
    /// The line to use, where gpumem lies in `folder`.
    pub(super) fn line(&self, folder: &Path) -> String {
        self.line.replace("{dir}", &folder.display().to_string())
    }
}

/// The launcher that these words call, unless they take gpumem or its library along already.
pub(super) fn of(words: &[OsString]) -> Option<&'static Launcher> {
    let (name, rest) = words.split_first()?;
    let launcher = named(name.to_str()?)?;
    let takes_gpumem = rest.iter().any(|word| {
        let word = word.to_string_lossy();
        word.contains("libgpumemshim") || word.split_whitespace().any(|part| last(part) == "gpumem")
    });
    (!takes_gpumem).then_some(launcher)
}

/// The launcher that a line of shell calls.
pub(super) fn of_script(script: &str) -> Option<&'static Launcher> {
    script
        .split([';', '&', '|', '\n', '(', '{'])
        .find_map(|part| {
            let words: Vec<OsString> = part
                .split_whitespace()
                .skip_while(|word| matches!(*word, "exec" | "time" | "!") || word.contains('='))
                .map(OsString::from)
                .collect();
            of(&words)
        })
}

fn named(program: &str) -> Option<&'static Launcher> {
    LAUNCHERS.iter().find(|row| row.name == last(program))
}

fn last(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(line: &str) -> Vec<OsString> {
        line.split_whitespace().map(OsString::from).collect()
    }

    #[test]
    fn a_launcher_is_known_by_its_name() {
        let name = |line| of(&words(line)).map(|launcher| launcher.name);
        assert_eq!(name("/usr/bin/docker run image python"), Some("docker"));
        assert_eq!(name("python train.py docker"), None);
    }

    #[test]
    fn one_that_takes_gpumem_along_is_well() {
        assert_eq!(of(&words("srun /opt/gpumem run -- python train.py")), None);
        assert_eq!(
            of(&words("docker run -e LD_PRELOAD=/x/libgpumemshim.so image")),
            None
        );
    }

    #[test]
    fn a_line_of_shell_may_call_one() {
        let name = |script| of_script(script).map(|launcher| launcher.name);
        assert_eq!(name("cd /job && exec docker run image"), Some("docker"));
        assert_eq!(name("A=1 sudo ./job"), Some("sudo"));
        assert_eq!(name("echo docker"), None);
    }

    #[test]
    fn each_line_has_gpumem_run() {
        for row in LAUNCHERS {
            let line = row.line(Path::new("/opt"));
            assert!(
                line.contains("gpumem run") && line.ends_with(" -- CMD"),
                "{line}"
            );
            assert!(!line.contains('{'), "{line}");
        }
    }
}
