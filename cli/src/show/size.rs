//! Sizes, rates, spans of time and counts as a person reads them.

pub(crate) use gpumem_collector::insight::size::size;

/// A growth: `+4.00 MiB/step`.
pub(crate) fn rate(bytes: u64, unit: &str) -> String {
    format!("+{}/{unit}", size(bytes))
}

/// A span of time in its two largest units: `45 s`, `12 min 5 s`, `3 h 20 min`, `2 d 4 h`.
pub(crate) fn span(seconds: u64) -> String {
    let two = |large: u64, a: &str, small: u64, b: &str| {
        if small == 0 {
            format!("{large} {a}")
        } else {
            format!("{large} {a} {small} {b}")
        }
    };
    match seconds {
        0..60 => format!("{seconds} s"),
        60..3600 => two(seconds / 60, "min", seconds % 60, "s"),
        3600..86_400 => two(seconds / 3600, "h", seconds % 3600 / 60, "min"),
        _ => two(seconds / 86_400, "d", seconds % 86_400 / 3600, "h"),
    }
}

/// A short span in nanoseconds: with a decimal below ten seconds.
pub(crate) fn span_ns(nanoseconds: u64) -> String {
    if nanoseconds < 10_000_000_000 {
        format!("{:.1} s", nanoseconds as f64 / 1e9)
    } else {
        span(nanoseconds / 1_000_000_000)
    }
}

/// A number with its digits in groups of three: `12,345`.
pub(crate) fn count(number: u64) -> String {
    let digits = number.to_string();
    let mut out = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

/// `1 block`, `2 blocks`.
pub(crate) fn many(number: u64, one: &str) -> String {
    let plural = match one {
        "process" => "processes".to_owned(),
        one => format!("{one}s"),
    };
    format!(
        "{} {}",
        count(number),
        if number == 1 { one } else { &plural }
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_read_well() {
        assert_eq!(rate(4 << 20, "step"), "+4.00 MiB/step");
        assert_eq!(span(59), "59 s");
        assert_eq!(span(3600), "1 h");
        assert_eq!(span(90_061), "1 d 1 h");
        assert_eq!(span_ns(1_540_000_000), "1.5 s");
        assert_eq!(count(1_234_567), "1,234,567");
        assert_eq!(many(1, "process"), "1 process");
        assert_eq!(many(2000, "process"), "2,000 processes");
    }
}
