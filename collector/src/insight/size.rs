//! Sizes as a person reads them, for the sentences of an insight and for tables alike.

const UNITS: [&str; 5] = ["KiB", "MiB", "GiB", "TiB", "PiB"];

/// A size in binary units with three digits that count: `512 B`, `4.00 MiB`, `38.2 GiB`.
pub fn size(bytes: u64) -> String {
    if bytes < 1024 {
        return format!("{bytes} B");
    }
    let mut value = bytes as f64 / 1024.0;
    let mut unit = 0;
    while value >= 999.5 && unit + 1 < UNITS.len() {
        value /= 1024.0;
        unit += 1;
    }
    let digits = if value < 9.995 {
        2
    } else if value < 99.95 {
        1
    } else {
        0
    };
    let name = UNITS.get(unit).copied().unwrap_or("");
    format!("{value:.digits$} {name}")
}

#[cfg(test)]
mod tests {
    use super::size;

    #[test]
    fn three_digits_count() {
        let shown: Vec<String> = [
            0,
            512,
            1024,
            4 << 20,
            (4 << 20) + 512,
            16 * 1024 - 1,
            1000 << 20,
            80 << 30,
        ]
        .map(size)
        .into();
        assert_eq!(
            shown,
            [
                "0 B", "512 B", "1.00 KiB", "4.00 MiB", "4.00 MiB", "16.0 KiB", "0.98 GiB",
                "80.0 GiB"
            ]
        );
    }
}
