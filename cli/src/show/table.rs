//! Tables: columns that are as wide as they must be, the last one cut to fit.

use super::WIDTH;
use super::text::cut;

/// How a column is aligned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Align {
    /// Names.
    Left,
    /// Numbers.
    Right,
}

/// A table with a heading. The last column takes what is left of the width.
pub(crate) fn table(columns: &[(&str, Align)], rows: &[Vec<String>]) -> String {
    let widths: Vec<usize> = columns
        .iter()
        .enumerate()
        .map(|(index, (name, _))| {
            rows.iter()
                .filter_map(|row| row.get(index))
                .map(|cell| cell.chars().count())
                .chain([name.len()])
                .max()
                .unwrap_or(0)
        })
        .collect();
    let heading = columns.iter().map(|(name, _)| (*name).to_owned()).collect();
    let mut out = String::new();
    for row in std::iter::once(&heading).chain(rows) {
        let mut line = String::new();
        for (((_, align), width), cell) in columns.iter().zip(&widths).zip(row) {
            if !line.is_empty() {
                line.push_str("  ");
            }
            let room = WIDTH.saturating_sub(line.chars().count());
            let cell = cut(cell, room);
            match align {
                Align::Left => line.push_str(&format!("{cell:<width$}")),
                Align::Right => line.push_str(&format!("{cell:>width$}")),
            }
        }
        out.push_str(line.trim_end());
        out.push('\n');
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_column_is_cut_to_fit() {
        let rows = vec![vec!["7".into(), "x".repeat(200)]];
        let shown = table(&[("PID", Align::Right), ("COMMAND", Align::Left)], &rows);
        assert!(shown.lines().all(|line| line.len() <= WIDTH));
        assert!(shown.ends_with("..\n"));
        assert!(shown.starts_with("PID  COMMAND\n  7  xxx"));
    }
}
