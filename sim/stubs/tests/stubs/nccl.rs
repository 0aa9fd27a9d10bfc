//! What a communicator takes of the device.

use std::process::Command;

use crate::folder::{Folder, compile};

#[test]
fn a_communicator_takes_buffers_where_it_is_told_to() {
    let folder = Folder::of_names("nccl");
    let program = folder.0.join("program");
    compile(&["nccl.c", "-ldl", "-o", program.to_str().unwrap()]);
    // Bytes that one of two ranks, and one that is alone, take and do not give
    // back.
    let taken = |channels: &str| {
        let output = Command::new(&program)
            .env("LD_LIBRARY_PATH", &folder.0)
            .env("GPUMEM_SIM_NCCL_CHANNELS", channels)
            .output()
            .unwrap();
        assert!(output.status.success(), "{output:?}");
        String::from_utf8(output.stdout).unwrap()
    };
    assert_eq!(taken("0"), "0 0 0\n");
    // A channel's 19,267,584 bytes are ten of the driver's pages.
    assert_eq!(taken("2"), format!("{} 0 0\n", 2 * 10 * (2 << 20)));
}
