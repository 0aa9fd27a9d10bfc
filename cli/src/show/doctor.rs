//! The doctor's report: a line a check, and under it what to do.

use super::WIDTH;
use super::colour::Style;
use super::size::many;
use super::text::{clean, wrap};
use crate::doctor::{Check, DoctorReport, Level};

/// Columns before what was found: level and name.
const INDENT: usize = 18;

/// The report as text.
pub(crate) fn doctor(report: &DoctorReport, style: Style) -> String {
    let mut out: String = report
        .checks
        .iter()
        .map(|check| row(check, style))
        .collect();
    out.push('\n');
    out.push_str(&verdict(report, style));
    out
}

fn row(check: &Check, style: Style) -> String {
    let level = match check.level {
        Level::Ok => style.fine("OK  "),
        Level::Warn => style.strong("WARN"),
        Level::Fail => style.alarm("FAIL"),
    };
    let found = wrap(&clean(&check.found), INDENT, WIDTH);
    let mut out = format!("{level}  {:<10}  {found}\n", check.name);
    if let Some(mend) = &check.mend {
        let mend = wrap(&clean(mend), INDENT, WIDTH);
        out.push_str(&format!("{:INDENT$}{mend}.\n", "  do"));
    }
    if let Some(line) = &check.line {
        // Each line but the last ends so that a shell reads on; two columns are kept for that.
        let line = wrap(&clean(line), 6, WIDTH - 2).replace('\n', " \\\n");
        out.push_str(&format!("\n      {line}\n"));
    }
    out
}

fn verdict(report: &DoctorReport, style: Style) -> String {
    let (broken, warned) = (report.count(Level::Fail), report.count(Level::Warn));
    let warnings = many(warned as u64, "warning");
    let said = match (broken, warned) {
        (0, 0) => style.fine("All is well."),
        (0, _) => format!("No problem, {warnings}."),
        _ => {
            let problems = style.alarm(&many(broken as u64, "problem"));
            match warned {
                0 => format!("{problems}."),
                _ => format!("{problems}, {warnings}."),
            }
        }
    };
    format!("{said}\n")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doctor::SCHEMA;

    fn report(checks: Vec<Check>) -> DoctorReport {
        DoctorReport {
            schema: SCHEMA,
            command: vec!["docker".into()],
            ran: false,
            status: None,
            checks,
        }
    }

    fn text(checks: Vec<Check>) -> String {
        let text = doctor(&report(checks), Style::PLAIN);
        for line in text.lines() {
            assert!(line.chars().count() <= WIDTH, "{line}");
            assert!(line.is_ascii(), "{line}");
        }
        text
    }

    fn well() -> Check {
        Check::ok("recorder", "/opt/gpumem/libgpumemshim.so, x86-64".into())
    }

    fn warned() -> Check {
        Check::warn(
            "preload",
            "preloaded too, behind the recorder: /usr/lib/x86_64-linux-gnu/libjemalloc.so.2".into(),
            "If CUDA calls are not seen, try without".into(),
        )
    }

    fn broken() -> Check {
        let found = "docker starts its program in a container\x1b[2J";
        let line = "docker run --gpus all -v /opt/gpumem:/opt/gpumem:ro -v $PWD:/out IMAGE \
                    /opt/gpumem/gpumem run -o /out/run.gpumem -- CMD";
        Check::fail(
            "program",
            found.into(),
            "Start gpumem on the far side".into(),
        )
        .with_line(line.into())
    }

    #[test]
    fn problems_and_what_to_do() {
        insta::assert_snapshot!(text(vec![well(), warned(), broken()]));
    }

    #[test]
    fn the_last_line_says_how_it_stands() {
        let last = |checks| text(checks).lines().last().unwrap().to_owned();
        assert_eq!(last(vec![well()]), "All is well.");
        assert_eq!(last(vec![well(), warned()]), "No problem, 1 warning.");
        assert_eq!(last(vec![broken(), broken()]), "2 problems.");
    }

    #[test]
    fn a_line_may_be_pasted_into_a_shell() {
        let text = text(vec![broken()]);
        let from = text.find("docker run").unwrap();
        let pasted = text[from..].split("\n\n").next().unwrap();
        let pasted = pasted.replace("\\\n", " ");
        assert_eq!(
            pasted.split_whitespace().collect::<Vec<_>>().join(" "),
            broken().line.unwrap()
        );
    }

    #[test]
    fn the_keys_of_the_report() {
        let json = serde_json::to_string(&report(vec![well(), broken()])).unwrap();
        insta::assert_snapshot!(json.replace("},", "},\n"));
    }
}
