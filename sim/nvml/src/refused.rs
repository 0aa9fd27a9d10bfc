//! What a simulated device does not have: sensors, links, instances.

use crate::abi::NOT_SUPPORTED;

macro_rules! refused {
    ($($name:ident)*) => {$(
        // Whatever the parameters are: the C conventions let the callee ignore
        // them.
        #[unsafe(no_mangle)]
        extern "C" fn $name() -> i32 {
            NOT_SUPPORTED
        }
    )*};
}

refused! {
    nvmlDeviceGetMigMode
    nvmlDeviceGetNvLinkRemoteDeviceType
    nvmlDeviceGetNvLinkRemotePciInfo_v2
    nvmlDeviceGetNvLinkState
    nvmlDeviceGetPowerUsage
    nvmlDeviceGetTemperature
    nvmlDeviceGetUtilizationRates
    nvmlDeviceGetClockInfo
    nvmlDeviceGetComputeMode
    nvmlDeviceGetCurrPcieLinkGeneration
    nvmlDeviceGetFieldValues
}
