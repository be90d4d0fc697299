//! How long a thing takes: a fixed value or a distribution, drawn by seed and by what it is about.

use std::fmt;
use std::time::Duration;

use schemars::JsonSchema;
use serde::de::value::MapAccessDeserializer;
use serde::de::{Error, MapAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize};

/// Seconds, fixed or spread between a least, a most likely and a greatest value.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, JsonSchema)]
#[serde(untagged)]
pub enum Dist {
    /// Always this many seconds.
    Fixed(f64),
    /// A triangle: `min` and `max` are the ends, `mode` the most likely value.
    Spread(Spread),
}

/// The three corners of a triangular distribution, in seconds.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Spread {
    /// The least value.
    pub min: f64,
    /// The most likely value.
    pub mode: f64,
    /// The greatest value.
    pub max: f64,
}

impl<'de> Deserialize<'de> for Dist {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Either)
    }
}

/// Reads either form. Serde's own way of trying one form after the other forgets which field was wrong.
struct Either;

impl<'de> Visitor<'de> for Either {
    type Value = Dist;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("seconds, or {min: …, mode: …, max: …}")
    }
    fn visit_f64<E: Error>(self, seconds: f64) -> Result<Dist, E> {
        Ok(Dist::Fixed(seconds))
    }
    fn visit_i64<E: Error>(self, seconds: i64) -> Result<Dist, E> {
        Ok(Dist::Fixed(seconds as f64))
    }
    fn visit_u64<E: Error>(self, seconds: u64) -> Result<Dist, E> {
        Ok(Dist::Fixed(seconds as f64))
    }
    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Dist, A::Error> {
        Spread::deserialize(MapAccessDeserializer::new(map)).map(Dist::Spread)
    }
}

impl Default for Dist {
    fn default() -> Self {
        Self::Fixed(0.0)
    }
}

/// A year: what takes longer is a slip.
const LONGEST: f64 = 31_536_000.0;

impl Dist {
    /// Why it cannot be: corners that are not in order, a negative time.
    pub(super) fn objection(&self) -> Option<String> {
        let fits = match *self {
            Self::Fixed(seconds) => (0.0..=LONGEST).contains(&seconds),
            Self::Spread(Spread { min, mode, max }) => 0.0 <= min && min <= mode && mode <= max && max <= LONGEST,
        };
        (!fits).then(|| match *self {
            Self::Fixed(seconds) => format!("{seconds} is no time between 0 and {LONGEST} seconds"),
            Self::Spread(Spread { min, mode, max }) => {
                format!("wants 0 <= min <= mode <= max <= {LONGEST}, and has min {min}, mode {mode}, max {max}")
            }
        })
    }

    /// The value at fraction `u` (0 to 1) of the distribution, in seconds.
    fn at(&self, u: f64) -> f64 {
        match *self {
            Self::Fixed(seconds) => seconds,
            Self::Spread(Spread { min, mode, max }) => {
                let width = max - min;
                if width <= 0.0 {
                    return min;
                }
                let knee = (mode - min) / width;
                if u < knee {
                    min + (u * width * (mode - min)).sqrt()
                } else {
                    max - ((1.0 - u) * width * (max - mode)).sqrt()
                }
            }
        }
    }
}

/// The dice of one world. The same seed, concern and identity give the same value, whoever asks and whenever.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Dice {
    seed: u64,
}

impl Dice {
    /// Dice for `seed`.
    pub fn new(seed: u64) -> Self {
        Self { seed }
    }

    /// A value of `dist` for `identity`, in steps of a tenth of a second so that sums are exact.
    pub fn draw(&self, dist: Dist, concern: &str, identity: &str) -> Duration {
        let seconds = match dist {
            Dist::Fixed(seconds) => seconds,
            Dist::Spread(_) => (dist.at(self.unit(concern, identity)) * 10.0).round() / 10.0,
        };
        Duration::from_millis((seconds * 1000.0).round() as u64)
    }

    /// A number that depends on nothing but the seed, the concern and the identity.
    pub fn number(&self, concern: &str, identity: &str) -> u64 {
        let mut hash = 0xcbf2_9ce4_8422_2325_u64 ^ self.seed.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        for byte in concern.bytes().chain([0xff]).chain(identity.bytes()) {
            hash = (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3);
        }
        // The last multiplications spread the low bits, which a plain byte hash leaves correlated.
        hash = (hash ^ (hash >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        hash = (hash ^ (hash >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        hash ^ (hash >> 31)
    }

    fn unit(self, concern: &str, identity: &str) -> f64 {
        (self.number(concern, identity) >> 11) as f64 / (1_u64 << 53) as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn draws_stay_between_the_corners_and_repeat() {
        let dist = Dist::Spread(Spread { min: 4.0, mode: 5.0, max: 6.0 });
        let dice = Dice::new(7);
        let mut sum = 0.0;
        for n in 0..500 {
            let name = format!("node-{n}");
            let value = dice.draw(dist, "boot", &name).as_secs_f64();
            assert!((4.0..=6.0).contains(&value), "{value}");
            assert_eq!(dice.draw(dist, "boot", &name), dice.draw(dist, "boot", &name));
            sum += value;
        }
        assert!((4.9..5.1).contains(&(sum / 500.0)), "mean {}", sum / 500.0);
        assert_ne!(dice.number("boot", "a"), Dice::new(8).number("boot", "a"));
    }

    #[test]
    fn a_fixed_value_is_itself() {
        assert_eq!(Dice::new(1).draw(Dist::Fixed(2.5), "x", "y"), Duration::from_millis(2500));
        assert!(Dist::Fixed(-1.0).objection().is_some());
        assert!(Dist::Fixed(1e12).objection().is_some());
        let order = Dist::Spread(Spread { min: 2.0, mode: 1.0, max: 3.0 }).objection().unwrap();
        assert!(order.ends_with("min 2, mode 1, max 3"), "{order}");
    }
}
