//! Faults drawn at random, each of a kind and size that a job has to live through.

use toolbox_rehearsal::scenario::{ApiFault, ApiFaultKind as Kind};

/// A small generator of numbers: what a seed draws must not change with a library's version.
pub(crate) struct Dice(u64);

impl Dice {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// SplitMix64.
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    fn within(&mut self, least: u64, most: u64) -> u64 {
        least + self.next() % (most - least + 1)
    }

    fn seconds(&mut self, least: u64, most: u64) -> f64 {
        self.within(least * 1000, most * 1000) as f64 / 1000.0
    }

    fn rate(&mut self, most: f64) -> f64 {
        most * (self.within(1, 100) as f64) / 100.0
    }

    fn verb(&mut self) -> Vec<String> {
        const VERBS: [&[&str]; 6] =
            [&[], &["get"], &["list"], &["watch"], &["create", "patch"], &["patch", "update", "delete"]];
        let index = self.within(0, VERBS.len() as u64 - 1) as usize;
        VERBS[index].iter().map(|verb| (*verb).to_owned()).collect()
    }

    /// At some moment of the job, most of which is over after a quarter of an hour.
    fn moment(&mut self) -> f64 {
        // The first seconds hold most requests.
        if self.within(0, 1) == 0 { self.seconds(0, 40) } else { self.seconds(40, 900) }
    }

    /// One to four faults.
    pub(crate) fn faults(&mut self) -> Vec<ApiFault> {
        let mut kinds = KINDS.to_vec();
        (0..self.within(1, 4))
            .map(|_| {
                let kind = kinds.remove(self.within(0, kinds.len() as u64 - 1) as usize);
                self.fault(kind)
            })
            .collect()
    }

    /// A fault of this kind. Outages are short enough that no request's patience ends, also when they meet.
    pub(crate) fn fault(&mut self, kind: Kind) -> ApiFault {
        let new = ApiFault::new(kind);
        match kind {
            Kind::Restart if self.within(0, 1) == 0 => new.at(self.moment()).lasting(self.seconds(1, 25)),
            Kind::Restart => {
                let verbs = self.verb();
                let skip = self.within(0, if verbs.len() > 1 { 10 } else { 60 });
                ApiFault { verbs, skip, times: Some(1), ..new.lasting(self.seconds(1, 25)) }
            }
            Kind::ExpiredWatch => new.at(self.moment()),
            Kind::Throttled if self.within(0, 1) == 0 => {
                let retry_after = Some(self.within(1, 10) as u32);
                ApiFault { retry_after, ..new.at(self.moment()).lasting(self.seconds(1, 30)) }
            }
            Kind::Throttled => ApiFault { retry_after: Some(1), rate: Some(self.rate(0.3)), verbs: self.verb(), ..new },
            Kind::ServerError if self.within(0, 1) == 0 => {
                let code = Some([500, 502, 503, 504][self.within(0, 3) as usize]);
                ApiFault { code, ..new.at(self.moment()).lasting(self.seconds(1, 12)) }
            }
            Kind::ServerError => {
                let code = Some([500, 502, 503, 504][self.within(0, 3) as usize]);
                ApiFault { code, rate: Some(self.rate(0.1)), verbs: self.verb(), ..new }
            }
            Kind::Refused => new.at(self.moment()).lasting(self.seconds(1, 25)),
            Kind::Reset | Kind::Unanswered => ApiFault { rate: Some(self.rate(0.2)), verbs: self.verb(), ..new },
            Kind::Stalled => {
                let verbs = self.verb();
                let skip = self.within(0, if verbs.len() > 1 { 10 } else { 60 });
                ApiFault { skip, times: Some(1), verbs, ..new }
            }
            Kind::Slow => {
                ApiFault { seconds: Some(self.seconds(1, 20)), rate: Some(self.rate(1.0)), verbs: self.verb(), ..new }
            }
            Kind::Unauthorized => new.at(self.moment()).lasting(self.seconds(0, 1)),
            Kind::Conflict => ApiFault { every: Some(self.within(2, 5)), ..new },
            Kind::HalfEvent => ApiFault { rate: Some(self.rate(0.8)), ..new.lasting(self.seconds(10, 600)) },
            Kind::Gone => new.at(self.moment()).lasting(self.seconds(1, 60)),
            Kind::ExpiredToken | Kind::RotatedCertificate => ApiFault { renewable: true, ..new.at(self.moment()) },
            Kind::ClockSkew => {
                let minutes = self.seconds(1, 30 * 60);
                ApiFault { seconds: Some(if self.within(0, 1) == 0 { minutes } else { -minutes }), ..new }
            }
            Kind::ShortPages => ApiFault { objects: Some(self.within(1, 4) as usize), ..new },
        }
    }
}

/// The kinds that a job has to live through.
pub(crate) const KINDS: &[Kind] = &[
    Kind::Restart,
    Kind::ExpiredWatch,
    Kind::Throttled,
    Kind::ServerError,
    Kind::Refused,
    Kind::Reset,
    Kind::Unanswered,
    Kind::Stalled,
    Kind::Slow,
    Kind::Conflict,
    Kind::HalfEvent,
    Kind::Gone,
    Kind::ExpiredToken,
    Kind::RotatedCertificate,
    Kind::ClockSkew,
    Kind::ShortPages,
];
