//! Streams and events.

use crate::library::*;

#[test]
fn handles_are_checked() {
    isolated("streams::handles_are_checked", &[], |driver| {
        driver.start();
        let stream = get(|out| driver.cuStreamCreate(out, 1));
        let event = get(|out| driver.cuEventCreate(out, 0));
        assert_eq!(get(|out| driver.cuStreamIsCapturing(stream, out)), 0);
        assert_eq!(driver.cuEventRecord(event, stream), SUCCESS);
        assert_eq!(driver.cuEventRecord(stream, stream), INVALID_HANDLE);
        assert_eq!(driver.cuStreamDestroy_v2(stream), SUCCESS);
        assert_eq!(driver.cuStreamDestroy_v2(stream), INVALID_HANDLE);
        assert_eq!(driver.cuStreamDestroy_v2(0), INVALID_HANDLE);
        assert_eq!(driver.cuStreamSynchronize(stream), INVALID_HANDLE);
        assert_eq!(driver.cuEventDestroy_v2(event), SUCCESS);
        assert_eq!(driver.cuEventDestroy_v2(event), INVALID_HANDLE);
        assert_eq!(driver.cuEventSynchronize(event), INVALID_HANDLE);
        let mut out = 7;
        assert_eq!(driver.cuStreamCreate(&mut out, 0x80), INVALID_VALUE);
        assert_eq!(
            driver.cuStreamCreate(std::ptr::null_mut(), 0),
            INVALID_VALUE
        );
        assert_eq!(
            driver.cuStreamIsCapturing(0, std::ptr::null_mut()),
            INVALID_VALUE
        );
    });
}

#[test]
fn the_null_stream_depends_on_the_variant() {
    isolated(
        "streams::the_null_stream_depends_on_the_variant",
        &[],
        |driver| {
            driver.start();
            let legacy = get(|out| driver.cuStreamGetId(0, out));
            let per_thread = get(|out| driver.cuStreamGetId_ptsz(0, out));
            assert_ne!(legacy, per_thread);
            assert_eq!(get(|out| driver.cuStreamGetId(2, out)), per_thread);
            assert_eq!(get(|out| driver.cuStreamGetId_ptsz(1, out)), legacy);
            get(|out| driver.cuMemAllocAsync(out, 100, 0));
            get(|out| driver.cuMemAllocAsync_ptsz(out, 200, 0));
            for (bytes, stream) in [(100, "legacy"), (200, "per-thread")] {
                let blocks = driver.live("pool-block");
                let block = blocks
                    .iter()
                    .find(|block| block["size_bytes"] == bytes)
                    .unwrap();
                assert_eq!(block["stream"], stream);
            }
        },
    );
}

#[test]
fn time_passes_between_events() {
    isolated("streams::time_passes_between_events", &[], |driver| {
        driver.start();
        let [first, second, silent] =
            [0, 0, 2].map(|flags| get(|out| driver.cuEventCreate(out, flags)));
        let mut time = -1.0;
        assert_eq!(
            driver.cuEventElapsedTime(&mut time, first, second),
            INVALID_HANDLE
        );
        for event in [first, second, silent] {
            assert_eq!(driver.cuEventRecord(event, 0), SUCCESS);
        }
        assert_eq!(driver.cuEventElapsedTime(&mut time, first, second), SUCCESS);
        assert!(time >= 0.0);
        assert_eq!(
            driver.cuEventElapsedTime(&mut time, first, silent),
            INVALID_HANDLE
        );
    });
}
