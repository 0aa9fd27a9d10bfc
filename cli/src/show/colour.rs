//! Colour, where a person looks at a terminal and did not say no.

use std::env;
use std::io::IsTerminal;

/// Whether and how to colour.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Style {
    coloured: bool,
}

impl Style {
    /// Without colour.
    #[cfg(test)]
    pub(crate) const PLAIN: Self = Self { coloured: false };

    /// As an output wants it: a terminal that is not dumb, and no `NO_COLOR` (<https://no-color.org>).
    pub(crate) fn of(output: &impl IsTerminal) -> Self {
        let refused = env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
        let dumb = env::var_os("TERM").is_some_and(|term| term == "dumb");
        Self {
            coloured: output.is_terminal() && !refused && !dumb,
        }
    }

    /// What must be seen first: a leak.
    pub(crate) fn alarm(self, text: &str) -> String {
        self.wrapped(text, "1;31")
    }

    /// What is well.
    pub(crate) fn fine(self, text: &str) -> String {
        self.wrapped(text, "32")
    }

    /// A place or a name to look for.
    pub(crate) fn strong(self, text: &str) -> String {
        self.wrapped(text, "1")
    }

    /// What may be passed over.
    pub(crate) fn faint(self, text: &str) -> String {
        self.wrapped(text, "2")
    }

    fn wrapped(self, text: &str, code: &str) -> String {
        if self.coloured {
            format!("\x1b[{code}m{text}\x1b[0m")
        } else {
            text.to_owned()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Style;

    #[test]
    fn plain_text_has_no_escapes() {
        assert_eq!(Style::PLAIN.alarm("LEAK"), "LEAK");
        assert_eq!(
            Style { coloured: true }.alarm("LEAK"),
            "\x1b[1;31mLEAK\x1b[0m"
        );
    }
}
