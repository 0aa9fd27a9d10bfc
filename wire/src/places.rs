//! Where sockets and spool files are: a list of paths, the same for the shim that writes and the collector that reads.
//!
//! Only names: whether a place exists, is ours and can be written is for the caller to find out.

use std::path::PathBuf;

/// The name of the collector's socket in its folder.
const SOCKET_NAME: &str = "collector.sock";

/// Where spool files may be, best first. `variable` reads the environment.
pub fn spool_folders(variable: impl Fn(&str) -> Option<String>, uid: u32) -> Vec<PathBuf> {
    let variable = |name: &str| {
        variable(name)
            .filter(|value| !value.is_empty())
            .map(PathBuf::from)
    };
    let own = format!("gpumem-{uid}");
    let state = variable("XDG_STATE_HOME")
        .or_else(|| variable("HOME").map(|home| home.join(".local/state")));
    let temporary = ["SLURM_TMPDIR", "TMPDIR"].into_iter().filter_map(variable);
    variable("GPUMEM_DIR")
        .into_iter()
        .chain(state.map(|folder| folder.join("gpumem")))
        .chain(
            temporary
                .chain([PathBuf::from("/tmp")])
                .map(|folder| folder.join(&own)),
        )
        .collect()
}

/// Where a collector's socket may be, best first; `GPUMEM_SOCKET` alone where it is set.
pub fn sockets(variable: impl Fn(&str) -> Option<String>, uid: u32) -> Vec<PathBuf> {
    let variable = |name: &str| {
        variable(name)
            .filter(|value| !value.is_empty())
            .map(PathBuf::from)
    };
    if let Some(socket) = variable("GPUMEM_SOCKET") {
        return vec![socket];
    }
    let own = format!("gpumem-{uid}");
    let runtime = variable("XDG_RUNTIME_DIR").map(|folder| folder.join("gpumem"));
    let temporary = ["TMPDIR", "SLURM_TMPDIR"]
        .into_iter()
        .filter_map(variable)
        .chain([PathBuf::from("/tmp")]);
    runtime
        .into_iter()
        .chain([PathBuf::from("/run/gpumem")])
        .chain(temporary.map(|folder| folder.join(&own)))
        .map(|folder| folder.join(SOCKET_NAME))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_user_names_comes_first() {
        let set = |pairs: &'static [(&str, &str)]| {
            move |name: &str| {
                pairs
                    .iter()
                    .find(|(key, _)| *key == name)
                    .map(|(_, value)| (*value).to_owned())
            }
        };
        assert_eq!(
            spool_folders(
                set(&[("GPUMEM_DIR", "/d"), ("HOME", "/h"), ("TMPDIR", "")]),
                7
            ),
            ["/d", "/h/.local/state/gpumem", "/tmp/gpumem-7"].map(PathBuf::from)
        );
        assert_eq!(
            sockets(set(&[("GPUMEM_SOCKET", "/s")]), 7),
            [PathBuf::from("/s")]
        );
        assert_eq!(
            sockets(set(&[("XDG_RUNTIME_DIR", "/r")]), 7),
            [
                "/r/gpumem/collector.sock",
                "/run/gpumem/collector.sock",
                "/tmp/gpumem-7/collector.sock"
            ]
            .map(PathBuf::from)
        );
    }
}
