//! The cache of results, from which nothing is ever removed: the leak.

use crate::driver::{ByVersion, Error, check};

/// What each request leaves behind.
const RESULT_BYTES: usize = 4 << 20;

/// Results by request.
#[derive(Default)]
pub(crate) struct Cache {
    results: Vec<u64>,
    leak_line: u32,
}

/// A value, and the line that it was computed in: the call's own, which a good
/// tool must find.
macro_rules! with_line {
    ($value:expr) => {
        ($value, line!())
    };
}

/// Keeps the result of a request on the device, for ever.
#[inline(never)]
pub(crate) fn cache_request_result(driver: &ByVersion, cache: &mut Cache) -> Result<(), Error> {
    let mut result = 0;
    // SAFETY: the answer goes to a local variable.
    let (code, line) = with_line!(unsafe { (driver.allocate)(&mut result, RESULT_BYTES) });
    check("cuMemAlloc", code)?;
    cache.leak_line = line;
    cache.results.push(result);
    Ok(())
}

impl Cache {
    /// Results that are held.
    pub(crate) fn len(&self) -> usize {
        self.results.len()
    }

    /// Where and how much it leaks, as a line of JSON.
    pub(crate) fn truth(&self, steps: u32) -> String {
        format!(
            "{{\"leak_bytes_per_step\":{RESULT_BYTES},\"steps\":{steps},\
             \"leak_function\":\"cache_request_result\",\"leak_file\":\"{}\",\
             \"leak_line\":{}}}",
            file!(),
            self.leak_line
        )
    }
}
