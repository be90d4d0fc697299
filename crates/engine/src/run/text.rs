//! Text for shells, for XML and for people.

/// The arguments as one line that a shell splits into the same arguments.
pub fn shell_words(arguments: &[String]) -> String {
    let quoted: Vec<String> = arguments.iter().map(|argument| shell_word(argument)).collect();
    quoted.join(" ")
}

fn shell_word(argument: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./:=@%+,".contains(c);
    if !argument.is_empty() && argument.chars().all(plain) {
        argument.to_owned()
    } else {
        format!("'{}'", argument.replace('\'', r"'\''"))
    }
}

/// The text without escape sequences and control characters; progress that overwrites its line becomes lines.
pub(crate) fn readable(text: &str) -> String {
    let mut clean = String::with_capacity(text.len());
    let mut rest = text.chars().peekable();
    while let Some(c) = rest.next() {
        match c {
            '\u{1b}' => skip_escape(&mut rest),
            '\r' if rest.peek() == Some(&'\n') => {}
            '\r' => clean.push('\n'),
            '\n' | '\t' => clean.push(c),
            '\u{fffe}' | '\u{ffff}' => clean.push('\u{fffd}'),
            c if c.is_control() => clean.push('\u{fffd}'),
            c => clean.push(c),
        }
    }
    clean
}

/// Passes over the rest of an escape sequence.
fn skip_escape(rest: &mut std::iter::Peekable<std::str::Chars<'_>>) {
    match rest.peek() {
        Some('[') => {
            rest.next();
            while let Some(c) = rest.peek().copied() {
                if !(' '..='~').contains(&c) {
                    return;
                }
                rest.next();
                if ('@'..='~').contains(&c) {
                    return;
                }
            }
        }
        Some(']') => {
            rest.next();
            // An operating system command ends with BEL or ESC \.
            while let Some(c) = rest.next_if(|c| *c != '\n') {
                if c == '\u{7}' {
                    return;
                }
                if c == '\u{1b}' {
                    rest.next_if_eq(&'\\');
                    return;
                }
            }
        }
        Some(c) if (' '..='~').contains(c) => {
            rest.next();
        }
        _ => {}
    }
}

/// The beginning, at most `limit` bytes, no character cut.
pub(super) fn start(text: &str, limit: usize) -> &str {
    let mut end = text.len().min(limit);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    &text[..end]
}

/// At most `limit` bytes: the beginning and, more of it, the end, with a note between them of what was left out.
pub(super) fn clip(text: &str, limit: usize) -> String {
    if text.len() <= limit {
        return text.to_owned();
    }
    let head = start(text, limit / 4).len();
    let mut tail = text.len() - (limit - limit / 4);
    while !text.is_char_boundary(tail) {
        tail += 1;
    }
    format!("{}\n[… {} bytes left out …]\n{}", &text[..head], tail - head, &text[tail..])
}

/// Seconds as people say them: `850 ms`, `42 s`, `3 min 20 s`, `1 h 05 min`.
pub(super) fn show_seconds(seconds: f64) -> String {
    let whole = seconds.round() as u64;
    if seconds < 1.0 {
        format!("{} ms", (seconds * 1000.0).round())
    } else if seconds < 10.0 {
        format!("{seconds:.1} s")
    } else if whole < 60 {
        format!("{whole} s")
    } else if whole < 3600 {
        format!("{} min {:02} s", whole / 60, whole % 60)
    } else {
        format!("{} h {:02} min", whole / 3600, whole % 3600 / 60)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_quoted_only_where_needed() {
        let words = ["tbx", "run", "a b", "it's", "", "$HOME", "--x=1"].map(str::to_owned);
        assert_eq!(shell_words(&words), r"tbx run 'a b' 'it'\''s' '' '$HOME' --x=1");
    }

    #[test]
    fn escapes_go_and_controls_show() {
        assert_eq!(readable("\u{1b}[31mred\u{1b}[0m \u{0}\u{b}\u{fffe}!"), "red \u{fffd}\u{fffd}\u{fffd}!");
        assert_eq!(readable("10%\r50%\r\nend\u{1b}]0;title\u{7}."), "10%\n50%\nend.");
        assert_eq!(readable("\u{1b}"), "");
        assert_eq!(readable("\u{1b}[12"), "");
    }

    #[test]
    fn long_text_keeps_both_ends() {
        let text = format!("head{}ü{}tail", "a".repeat(500), "b".repeat(500));
        let short = clip(&text, 100);
        assert!(short.starts_with("head") && short.ends_with("tail") && short.len() < 140, "{short}");
        assert!(short.contains("bytes left out"));
    }

    #[test]
    fn seconds_read_well() {
        let shown: Vec<String> = [0.25, 4.0, 42.4, 200.0, 3900.0].into_iter().map(show_seconds).collect();
        assert_eq!(shown, ["250 ms", "4.0 s", "42 s", "3 min 20 s", "1 h 05 min"]);
    }
}
