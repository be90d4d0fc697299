//! Amounts such as `500m`, `2` and `1Gi`.

use std::ops::{Add, Sub};

use serde_json::Value;

const BINARY: [(&str, i128); 6] =
    [("Ki", 1 << 10), ("Mi", 1 << 20), ("Gi", 1 << 30), ("Ti", 1 << 40), ("Pi", 1 << 50), ("Ei", 1 << 60)];
const DECIMAL: [(&str, i128); 6] = [
    ("k", 1_000),
    ("M", 1_000_000),
    ("G", 1_000_000_000),
    ("T", 1_000_000_000_000),
    ("P", 1_000_000_000_000_000),
    ("E", 1_000_000_000_000_000_000),
];

/// An amount, in thousandths.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Quantity {
    milli: i128,
    /// Whether it is printed in powers of 1024.
    binary: bool,
}

impl PartialOrd for Quantity {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Quantity {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.milli.cmp(&other.milli)
    }
}

impl Quantity {
    /// A number of things.
    pub(super) fn whole(count: usize) -> Self {
        Self { milli: i128::try_from(count).unwrap_or(i128::MAX / 1000) * 1000, binary: false }
    }

    pub(super) fn is_zero(self) -> bool {
        self.milli == 0
    }

    /// The amount in a field; nothing when it cannot be read.
    pub(super) fn of(value: &Value) -> Self {
        match value {
            Value::Number(number) => Self::read(&number.to_string()),
            Value::String(text) => Self::read(text),
            _ => None,
        }
        .unwrap_or_default()
    }

    fn read(text: &str) -> Option<Self> {
        let end = text.find(|c: char| !(c.is_ascii_digit() || ".+-".contains(c))).unwrap_or(text.len());
        let (number, suffix) = text.split_at(end);
        let scale = |list: &[(&str, i128)]| list.iter().find(|(name, _)| *name == suffix).map(|(_, scale)| *scale);
        let (scale, binary) = match suffix {
            "" => (1000, false),
            "m" => (1, false),
            _ => match scale(&BINARY) {
                Some(scale) => (scale * 1000, true),
                None => (scale(&DECIMAL)? * 1000, false),
            },
        };
        let (whole, part) = number.split_once('.').unwrap_or((number, ""));
        let mut milli = whole.parse::<i128>().ok()?.checked_mul(scale)?;
        if !part.is_empty() {
            let digits = u32::try_from(part.len()).ok().filter(|digits| *digits <= 9)?;
            milli += part.parse::<i128>().ok()?.checked_mul(scale)? / 10_i128.pow(digits);
        }
        Some(Self { milli, binary })
    }
}

impl Add for Quantity {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        let binary = if self.milli == 0 { other.binary } else { self.binary };
        Self { milli: self.milli + other.milli, binary }
    }
}

impl Sub for Quantity {
    type Output = Self;

    fn sub(self, other: Self) -> Self {
        Self { milli: self.milli - other.milli, binary: self.binary }
    }
}

impl std::fmt::Display for Quantity {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if self.milli % 1000 != 0 {
            return write!(f, "{}m", self.milli);
        }
        let whole = self.milli / 1000;
        let table = if self.binary { &BINARY } else { &DECIMAL };
        let fits = table.iter().rev().find(|(_, scale)| whole != 0 && whole % scale == 0);
        match fits {
            Some((suffix, scale)) => write!(f, "{}{suffix}", whole / scale),
            None => write!(f, "{whole}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Quantity;

    #[test]
    fn amounts_are_added_and_printed_as_servers_do() {
        for (one, other, sum) in [
            ("600m", "600m", "1200m"),
            ("300m", "0.3", "600m"),
            ("0", "512Mi", "512Mi"),
            ("512Mi", "600Mi", "1112Mi"),
            ("512Mi", "512Mi", "1Gi"),
            ("1", "1", "2"),
            ("500m", "500m", "1"),
            ("1k", "500", "1500"),
        ] {
            let read = |text| Quantity::read(text).unwrap_or_default();
            assert_eq!((read(one) + read(other)).to_string(), sum, "{one} + {other}");
        }
        assert_eq!(Quantity::read("1x"), None);
    }
}
