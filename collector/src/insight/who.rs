//! Who a process is, in a word: what every report begins with.

use crate::model::Process;

/// Variables that hold a process's rank, the most telling first.
const RANKS: [&str; 4] = ["RANK", "SLURM_PROCID", "OMPI_COMM_WORLD_RANK", "PMI_RANK"];

/// The command line as one string; the executable where it is not known.
pub fn command(process: &Process) -> String {
    let definition = process.definition();
    if definition.command.is_empty() {
        definition.executable.clone()
    } else {
        definition.command.join(" ")
    }
}

/// The simulated device that the process ran on, as `gpumem sim --devices` names it.
pub fn simulated(process: &Process) -> Option<String> {
    let environment = &process.definition().environment;
    let device = environment
        .iter()
        .find(|(name, _)| name == "GPUMEM_SIM_DEVICE");
    device
        .map(|(_, device)| device.clone())
        .filter(|device| !device.is_empty())
}

/// The rank of a process in its job.
pub fn rank(process: &Process) -> Option<u32> {
    let environment = &process.definition().environment;
    RANKS.iter().find_map(|name| {
        environment
            .iter()
            .find(|(known, _)| known == name)
            .and_then(|(_, value)| value.parse().ok())
    })
}
