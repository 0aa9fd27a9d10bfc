//! cuFile: no file is read past the host. 5001: the driver is not there.

use crate::export::stubs;

stubs! {
    versions [];
    computes {}
    refuses 5001 {
        cuFileBufDeregister
        cuFileBufRegister
        cuFileHandleDeregister
        cuFileHandleRegister
        cuFileRead
        cuFileWrite
    }
}
