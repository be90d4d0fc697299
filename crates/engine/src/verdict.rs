//! What a wait says about the present state.

use crate::why::Why;

/// Done, pending because, or failed because. There is no fourth answer and no silent one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict<T> {
    /// The condition holds; the value is what it found.
    Done(T),
    /// Not yet, and this is what it waits for.
    Pending(Why),
    /// It will not hold any more; the wait ends at once.
    Failed(Why),
}

impl<T> Verdict<T> {
    /// Changes the value of a done verdict.
    pub fn map<U>(self, change: impl FnOnce(T) -> U) -> Verdict<U> {
        match self {
            Verdict::Done(value) => Verdict::Done(change(value)),
            Verdict::Pending(why) => Verdict::Pending(why),
            Verdict::Failed(why) => Verdict::Failed(why),
        }
    }

    /// Goes on with the next condition once this one is done.
    pub fn and_then<U>(self, next: impl FnOnce(T) -> Verdict<U>) -> Verdict<U> {
        match self {
            Verdict::Done(value) => next(value),
            Verdict::Pending(why) => Verdict::Pending(why),
            Verdict::Failed(why) => Verdict::Failed(why),
        }
    }

    /// All of several: failed if one failed, pending on the first that is pending, else every value.
    pub fn all(verdicts: impl IntoIterator<Item = Verdict<T>>) -> Verdict<Vec<T>> {
        let mut values = Vec::new();
        let mut pending = None;
        for verdict in verdicts {
            match verdict {
                Verdict::Done(value) => values.push(value),
                Verdict::Pending(why) => pending = pending.or(Some(why)),
                Verdict::Failed(why) => return Verdict::Failed(why),
            }
        }
        pending.map_or(Verdict::Done(values), Verdict::Pending)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::why::ObjectRef;

    fn why(code: &'static str) -> Why {
        Why::waiting(ObjectRef::thing("test", "x"), code, code)
    }

    #[test]
    fn a_failure_wins_over_what_is_still_pending() {
        let all = Verdict::all([Verdict::Done(1), Verdict::Pending(why("slow")), Verdict::Failed(why("broken"))]);
        assert_eq!(all, Verdict::Failed(why("broken")));
        let all = Verdict::all([Verdict::Pending(why("first")), Verdict::Pending(why("second")), Verdict::Done(1)]);
        assert_eq!(all, Verdict::Pending(why("first")));
        assert_eq!(Verdict::all([Verdict::Done(1), Verdict::Done(2)]), Verdict::Done(vec![1, 2]));
    }
}
