//! Text from a target, made safe for a terminal, and text cut to a width.

/// A string of the target's with its control characters escaped: a file name must not move the cursor.
pub(crate) fn clean(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for character in text.chars() {
        if is_control(character) {
            out.extend(character.escape_unicode());
        } else {
            out.push(character);
        }
    }
    out
}

/// Control characters, and those that turn the direction of the text around.
fn is_control(character: char) -> bool {
    character.is_control()
        || matches!(character, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// At most `width` characters, cut at the end.
pub(crate) fn cut(text: &str, width: usize) -> String {
    if text.chars().count() <= width {
        return text.to_owned();
    }
    let kept = width.saturating_sub(2);
    text.chars().take(kept).chain("..".chars()).collect()
}

/// At most `width` characters, cut at the start: of a path the end tells more.
pub(crate) fn cut_start(text: &str, width: usize) -> String {
    let length = text.chars().count();
    if length <= width {
        return text.to_owned();
    }
    let left_out = length - width.saturating_sub(2);
    "..".chars().chain(text.chars().skip(left_out)).collect()
}

/// Words in lines of at most `width` characters; the first line begins after `indent` characters that are there already,
/// the others are indented by as many.
pub(crate) fn wrap(text: &str, indent: usize, width: usize) -> String {
    let mut out = String::new();
    let mut column = indent;
    let mut words = text.split_whitespace().peekable();
    while let Some(word) = words.next() {
        // A number stays with its unit.
        let word = match words.next_if(|next| is_unit(next)) {
            Some(unit) => format!("{word} {unit}"),
            None => word.to_owned(),
        };
        let length = word.chars().count();
        if column > indent && column + 1 + length > width {
            out.push('\n');
            out.extend(std::iter::repeat_n(' ', indent));
            column = indent;
        } else if column > indent {
            out.push(' ');
            column += 1;
        }
        out.push_str(&word);
        column += length;
    }
    out
}

fn is_unit(word: &str) -> bool {
    let word = word.trim_end_matches(|end: char| end.is_ascii_punctuation());
    matches!(
        word,
        "B" | "KiB" | "MiB" | "GiB" | "TiB" | "s" | "min" | "h" | "d"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_name_cannot_move_the_cursor() {
        assert_eq!(clean("a\x1b[2Jb\n\u{202e}"), "a\\u{1b}[2Jb\\u{a}\\u{202e}");
    }

    #[test]
    fn cutting_keeps_the_width() {
        assert_eq!(cut("abcdef", 4), "ab..");
        assert_eq!(cut_start("abcdef", 4), "..ef");
        assert_eq!(cut("abcd", 4), "abcd");
    }

    #[test]
    fn lines_are_wrapped_and_indented() {
        assert_eq!(wrap("one two three", 2, 9), "one two\n  three");
        assert_eq!(wrap("one 4 MiB, two", 0, 8), "one\n4 MiB,\ntwo");
    }
}
