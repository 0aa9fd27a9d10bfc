//! CUPTI: there is nothing to trace. 27 is `CUPTI_ERROR_NOT_SUPPORTED`.

use std::ffi::c_char;

use crate::export::{Out, answers, stubs};

answers! {
    versions ["libcupti.so.13", "libcupti.so.12"];
    /// The version of the interface.
    fn cuptiGetVersion(out: Out<u32>) -> i32 {
        out.set(130_000);
        0
    }

    /// What an error is called; it lives for ever.
    fn cuptiGetResultString(status: i32, out: Out<*const c_char>) -> i32 {
        let text = if status == 0 { c"success" } else { c"not supported by the simulated CUPTI" };
        out.set(text.as_ptr());
        0
    }
}

stubs! {
    versions ["libcupti.so.13", "libcupti.so.12"];
    computes {
        cuptiActivityFlushAll
        cuptiFinalize
    }
    refuses 27 {
        cuptiActivityDisable
        cuptiActivityEnable
        cuptiActivityEnableCudaEventDeviceTimestamps
        cuptiActivityEnableDriverApi
        cuptiActivityEnableRuntimeApi
        cuptiActivityGetNextRecord
        cuptiActivityGetNumDroppedRecords
        cuptiActivityPopExternalCorrelationId
        cuptiActivityPushExternalCorrelationId
        cuptiActivityRegisterCallbacks
        cuptiActivityRegisterTimestampCallback
        cuptiActivitySetAttribute
        cuptiEnableCallback
        cuptiEnableDomain
        cuptiEventGetAttribute
        cuptiEventGetIdFromName
        cuptiEventGroupGetAttribute
        cuptiEventGroupReadEvent
        cuptiEventGroupSetAttribute
        cuptiEventGroupSetDisable
        cuptiEventGroupSetEnable
        cuptiEventGroupSetsCreate
        cuptiEventGroupSetsDestroy
        cuptiGetCallbackName
        cuptiGetDeviceId
        cuptiMetricEnumEvents
        cuptiMetricGetAttribute
        cuptiMetricGetIdFromName
        cuptiMetricGetNumEvents
        cuptiMetricGetValue
        cuptiSetEventCollectionMode
        cuptiSubscribe
        cuptiUnsubscribe
    }
}
