//! Durations as people write and read them: `90s`, `20m`, `1h30m`.

use std::time::Duration;

/// Reads `90s`, `20m`, `1h30m`, or a bare number of seconds. The error says what is allowed.
pub fn parse_duration(text: &str) -> Result<Duration, String> {
    let wrong = || format!("`{text}` is no duration: write 90s, 20m, 1h30m or a number of seconds");
    if text.is_empty() {
        return Err(wrong());
    }
    if let Ok(seconds) = text.parse::<u64>() {
        return Ok(Duration::from_secs(seconds));
    }
    let (mut total, mut number) = (0u64, String::new());
    for letter in text.chars() {
        let unit = match letter {
            '0'..='9' => {
                number.push(letter);
                continue;
            }
            's' => 1,
            'm' => 60,
            'h' => 3600,
            _ => return Err(wrong()),
        };
        let count: u64 = number.parse().map_err(|_| wrong())?;
        total = count.checked_mul(unit).and_then(|part| total.checked_add(part)).ok_or_else(wrong)?;
        number.clear();
    }
    if number.is_empty() { Ok(Duration::from_secs(total)) } else { Err(wrong()) }
}

/// `0.4s`, `42s`, `4m10s`, `1h02m`.
pub fn show_duration(duration: Duration) -> String {
    let seconds = duration.as_secs_f64();
    if seconds < 9.95 {
        let text = format!("{seconds:.1}");
        return format!("{}s", text.strip_suffix(".0").unwrap_or(&text));
    }
    let whole = seconds.round() as u64;
    match (whole / 3600, whole / 60 % 60, whole % 60) {
        (0, 0, s) => format!("{s}s"),
        (0, m, 0) => format!("{m}m"),
        (0, m, s) => format!("{m}m{s:02}s"),
        (h, 0, _) => format!("{h}h"),
        (h, m, _) => format!("{h}h{m:02}m"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_read_as_people_write_them() {
        for (text, seconds) in [("90", 90), ("90s", 90), ("20m", 1200), ("1h30m", 5400), ("0", 0)] {
            assert_eq!(parse_duration(text), Ok(Duration::from_secs(seconds)), "{text}");
        }
        for text in ["", "m", "5x", "1h5", "-1", "99999999999999999999h"] {
            assert!(parse_duration(text).is_err(), "{text}");
        }
    }

    #[test]
    fn durations_are_shown_short() {
        let shown: Vec<String> = [0.0, 0.42, 9.94, 42.0, 60.0, 250.0, 3720.0, 7200.0]
            .map(|s| show_duration(Duration::from_secs_f64(s)))
            .into();
        assert_eq!(shown, ["0s", "0.4s", "9.9s", "42s", "1m", "4m10s", "1h02m", "2h"]);
    }
}
