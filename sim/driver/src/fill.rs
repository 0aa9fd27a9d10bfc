//! Fills (`cuMemset`), with elements of one, two and four bytes.

use crate::abi::{Outcome, Status};
use crate::backing;
use crate::copy::Reach;
use crate::entry::entry;
use crate::graph::Work;
use crate::machine::Machine;
use crate::stream::DefaultStream;

/// Elements of one value, in rows.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Fill {
    address: u64,
    value: Value,
    /// Elements of a row.
    count: usize,
    /// Distance of rows.
    pitch_bytes: u64,
    rows: u64,
}

/// The value, by its size.
#[derive(Clone, Copy, Debug)]
enum Value {
    One(u8),
    Two(u16),
    Four(u32),
}

impl Value {
    fn size_bytes(self) -> u64 {
        match self {
            Self::One(_) => 1,
            Self::Two(_) => 2,
            Self::Four(_) => 4,
        }
    }

    fn is_zero(self) -> bool {
        matches!(self, Self::One(0) | Self::Two(0) | Self::Four(0))
    }
}

impl Fill {
    fn row(address: u64, value: Value, count: usize) -> Self {
        Self {
            address,
            value,
            count,
            pitch_bytes: 0,
            rows: 1,
        }
    }
}

impl Machine {
    /// Fills device memory; the address is a multiple of the element's size.
    pub(crate) fn fill(&self, fill: &Fill) -> Outcome {
        let element_bytes = fill.value.size_bytes();
        let row_bytes = (fill.count as u64).checked_mul(element_bytes);
        let row_bytes = row_bytes.ok_or(Status::INVALID_VALUE)?;
        if row_bytes == 0 || fill.rows == 0 {
            return Ok(());
        }
        let span = (fill.rows - 1)
            .checked_mul(fill.pitch_bytes)
            .and_then(|bytes| bytes.checked_add(row_bytes));
        let span = span.ok_or(Status::INVALID_VALUE)?;
        if !fill.address.is_multiple_of(element_bytes)
            || (fill.rows > 1 && fill.pitch_bytes < row_bytes)
            || self.reach(fill.address, span, true) != Reach::Known
        {
            return Err(Status::INVALID_VALUE);
        }
        let pages = self.pages(fill.address);
        for row in 0..fill.rows {
            let address = fill.address + row * fill.pitch_bytes;
            // SAFETY: the range was just found to be the driver's and writable,
            // and the lock keeps it; the pages are of the kind just found.
            unsafe {
                match fill.value {
                    value if value.is_zero() => backing::zero(address, row_bytes, pages),
                    Value::One(value) => backing::fill(address, value, fill.count),
                    Value::Two(value) => backing::fill(address, value, fill.count),
                    Value::Four(value) => backing::fill(address, value, fill.count),
                }
            }
        }
        Ok(())
    }

    fn fill_now(&mut self, fill: Fill) -> Outcome {
        let context = self.contexts.current()?.handle;
        self.streams.end_legacy(context);
        self.fill(&fill)
    }

    fn fill_on(&mut self, stream: u64, default: DefaultStream, fill: Fill) -> Outcome {
        let stream = self.stream(stream, default)?;
        self.submit(&stream, Work::Fill(fill))
    }
}

entry! {
    /// Bytes.
    fn cuMemsetD8_v2 | cuMemsetD8_v2_ptds(machine, _; to: u64, value: u8, count: usize) {
        machine.fill_now(Fill::row(to, Value::One(value), count))
    }

    /// Bytes, on a stream.
    fn cuMemsetD8Async | cuMemsetD8Async_ptsz(
        machine, default;
        to: u64, value: u8, count: usize, stream: u64
    ) {
        machine.fill_on(stream, default, Fill::row(to, Value::One(value), count))
    }

    /// Elements of two bytes.
    fn cuMemsetD16_v2 | cuMemsetD16_v2_ptds(machine, _; to: u64, value: u16, count: usize) {
        machine.fill_now(Fill::row(to, Value::Two(value), count))
    }

    /// Elements of two bytes, on a stream.
    fn cuMemsetD16Async | cuMemsetD16Async_ptsz(
        machine, default;
        to: u64, value: u16, count: usize, stream: u64
    ) {
        machine.fill_on(stream, default, Fill::row(to, Value::Two(value), count))
    }

    /// Elements of four bytes.
    fn cuMemsetD32_v2 | cuMemsetD32_v2_ptds(machine, _; to: u64, value: u32, count: usize) {
        machine.fill_now(Fill::row(to, Value::Four(value), count))
    }

    /// Elements of four bytes, on a stream.
    fn cuMemsetD32Async | cuMemsetD32Async_ptsz(
        machine, default;
        to: u64, value: u32, count: usize, stream: u64
    ) {
        machine.fill_on(stream, default, Fill::row(to, Value::Four(value), count))
    }

    /// Rows of bytes.
    fn cuMemsetD2D8_v2 | cuMemsetD2D8_v2_ptds(
        machine, _;
        to: u64, pitch_bytes: usize, value: u8, count: usize, rows: usize
    ) {
        let (pitch_bytes, rows) = (pitch_bytes as u64, rows as u64);
        machine.fill_now(Fill { pitch_bytes, rows, ..Fill::row(to, Value::One(value), count) })
    }

    /// Rows of bytes, on a stream.
    fn cuMemsetD2D8Async | cuMemsetD2D8Async_ptsz(
        machine, default;
        to: u64, pitch_bytes: usize, value: u8, count: usize, rows: usize, stream: u64
    ) {
        let (pitch_bytes, rows) = (pitch_bytes as u64, rows as u64);
        let fill = Fill { pitch_bytes, rows, ..Fill::row(to, Value::One(value), count) };
        machine.fill_on(stream, default, fill)
    }
}
