//! Captures and graphs.

use crate::library::*;

/// Status and number of a stream's capture.
fn capture(driver: &Driver, stream: u64) -> (i32, u64) {
    let (mut status, mut id, mut graph, mut nodes, mut edges, mut count) = (7, 0, 0, 7, 7, 7);
    let result = driver.cuStreamGetCaptureInfo_v3(
        stream,
        &mut status,
        &mut id,
        &mut graph,
        &mut nodes,
        &mut edges,
        &mut count,
    );
    assert_eq!((result, nodes, edges, count), (SUCCESS, 0, 0, 0));
    (status, id)
}

#[test]
fn captured_work_is_done_at_each_launch() {
    let test = "graphs::captured_work_is_done_at_each_launch";
    isolated(test, &[], |driver| {
        driver.start();
        let stream = get(|out| driver.cuStreamCreate(out, 1));
        let memory = driver.alloc(4096);
        assert_eq!(capture(driver, stream), (0, 0));
        assert_eq!(driver.cuStreamBeginCapture_v2(stream, 0), SUCCESS);
        assert_eq!(driver.cuStreamBeginCapture_v2(stream, 0), ILLEGAL_STATE);
        let (status, id) = capture(driver, stream);
        assert_eq!(status, 1);
        assert_ne!(id, 0);
        assert_eq!(
            driver.cuStreamSynchronize(stream),
            STREAM_CAPTURE_UNSUPPORTED
        );
        assert_eq!(
            driver.cuMemsetD32Async(memory, 0x0505_0505, 4, stream),
            SUCCESS
        );
        let mut back = [7; 4];
        assert_eq!(
            driver.cuMemcpyDtoH_v2(back.as_mut_ptr(), memory, 4),
            SUCCESS
        );
        assert_eq!(back, [0; 4], "nothing is done while it is captured");

        let graph = get(|out| driver.cuStreamEndCapture(stream, out));
        assert_eq!(capture(driver, stream).0, 0);
        let mut count = 0;
        assert_eq!(
            driver.cuGraphGetNodes(graph, std::ptr::null_mut(), &mut count),
            SUCCESS
        );
        assert_eq!(count, 1);
        let executable = get(|out| driver.cuGraphInstantiateWithFlags(out, graph, 0));
        assert_eq!(driver.cuGraphDestroy(graph), SUCCESS);
        assert_eq!(driver.cuGraphDestroy(graph), INVALID_VALUE);
        for _ in 0..2 {
            assert_eq!(driver.cuMemsetD8_v2(memory, 0, 4), SUCCESS);
            assert_eq!(driver.cuGraphLaunch(executable, stream), SUCCESS);
            assert_eq!(
                driver.cuMemcpyDtoH_v2(back.as_mut_ptr(), memory, 4),
                SUCCESS
            );
            assert_eq!(back, [5; 4]);
        }
        assert_eq!(driver.cuGraphExecDestroy(executable), SUCCESS);
        assert_eq!(driver.cuGraphLaunch(executable, stream), INVALID_VALUE);
    });
}

#[test]
fn streams_join_a_capture_by_its_events() {
    let test = "graphs::streams_join_a_capture_by_its_events";
    isolated(test, &[], |driver| {
        driver.start();
        let [origin, side] = [1, 1].map(|flags| get(|out| driver.cuStreamCreate(out, flags)));
        let [inside, outside] = [2, 2].map(|flags| get(|out| driver.cuEventCreate(out, flags)));
        assert_eq!(
            driver.cuStreamBeginCapture_v2(0, 0),
            STREAM_CAPTURE_UNSUPPORTED
        );
        assert_eq!(driver.cuStreamBeginCapture_v2(origin, 0), SUCCESS);
        assert_eq!(driver.cuEventRecord(outside, side), SUCCESS);
        assert_eq!(
            driver.cuStreamWaitEvent(origin, outside, 0),
            STREAM_CAPTURE_ISOLATION
        );
        assert_eq!(driver.cuEventRecord(inside, origin), SUCCESS);
        assert_eq!(driver.cuEventQuery(inside), CAPTURED_EVENT);
        assert_eq!(driver.cuStreamWaitEvent(side, inside, 0), SUCCESS);
        assert_eq!(capture(driver, side), capture(driver, origin));
        let mut graph = 0;
        assert_eq!(
            driver.cuStreamEndCapture(side, &mut graph),
            STREAM_CAPTURE_UNMATCHED
        );
        assert_eq!(driver.cuStreamEndCapture(origin, &mut graph), SUCCESS);
        assert_eq!(get(|out| driver.cuStreamIsCapturing(side, out)), 0);
        assert_eq!(driver.cuStreamEndCapture(origin, &mut graph), ILLEGAL_STATE);
    });
}

#[test]
fn the_mode_is_the_threads_own() {
    isolated("graphs::the_mode_is_the_threads_own", &[], |driver| {
        let mut mode = 2;
        assert_eq!(driver.cuThreadExchangeStreamCaptureMode(&mut mode), SUCCESS);
        assert_eq!(mode, 0);
        assert_eq!(driver.cuThreadExchangeStreamCaptureMode(&mut mode), SUCCESS);
        assert_eq!(mode, 2);
        mode = 3;
        assert_eq!(
            driver.cuThreadExchangeStreamCaptureMode(&mut mode),
            INVALID_VALUE
        );
    });
}
