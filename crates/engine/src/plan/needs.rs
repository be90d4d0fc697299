//! Handles to what steps return, and how a step names those it needs.

use std::marker::PhantomData;
use std::sync::Arc;

use super::AnyValue;

/// Position of a step in its plan.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct StepIndex(pub(super) usize);

/// A handle to what a step will return. Only a plan makes them, so a need always points backwards.
#[derive(Debug)]
pub struct Out<T> {
    pub(super) index: StepIndex,
    value: PhantomData<fn() -> T>,
}

impl<T> Clone for Out<T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for Out<T> {}

impl<T> Out<T> {
    pub(super) fn new(index: StepIndex) -> Self {
        Self { index, value: PhantomData }
    }

    /// The order without the value.
    pub fn done(&self) -> After {
        After(vec![self.index])
    }
}

/// An order without a value: the step starts after these.
#[derive(Clone, Debug, Default)]
pub struct After(Vec<StepIndex>);

impl After {
    /// After nothing.
    pub fn nothing() -> Self {
        Self::default()
    }

    /// Also after this.
    #[must_use]
    pub fn and<T>(mut self, out: &Out<T>) -> Self {
        self.0.push(out.index);
        self
    }

    /// Also after all of these.
    #[must_use]
    pub fn all(mut self, other: &After) -> Self {
        self.0.extend(other.0.iter().copied());
        self
    }
}

/// Values of finished steps.
#[derive(Default)]
pub struct Values(pub(super) Vec<Option<AnyValue>>);

impl Values {
    pub(super) fn get<T: Send + Sync + 'static>(&self, index: StepIndex) -> Option<Arc<T>> {
        self.0.get(index.0)?.clone()?.downcast::<T>().ok()
    }
}

/// What a step needs: nothing, an [`Out`], a tuple or a list of them, or an [`After`].
pub trait Needs: Send + 'static {
    /// What the step's code is given.
    type Values;
    /// Adds the steps meant.
    fn indexes(&self, into: &mut Vec<StepIndex>);
    /// Takes their values; `None` when one is missing.
    fn take(&self, values: &Values) -> Option<Self::Values>;
}

impl Needs for () {
    type Values = ();
    fn indexes(&self, _: &mut Vec<StepIndex>) {}
    fn take(&self, _: &Values) -> Option<()> {
        Some(())
    }
}

impl<T: Send + Sync + 'static> Needs for Out<T> {
    type Values = Arc<T>;
    fn indexes(&self, into: &mut Vec<StepIndex>) {
        into.push(self.index);
    }
    fn take(&self, values: &Values) -> Option<Arc<T>> {
        values.get(self.index)
    }
}

impl<T: Send + Sync + 'static> Needs for Vec<Out<T>> {
    type Values = Vec<Arc<T>>;
    fn indexes(&self, into: &mut Vec<StepIndex>) {
        into.extend(self.iter().map(|out| out.index));
    }
    fn take(&self, values: &Values) -> Option<Vec<Arc<T>>> {
        self.iter().map(|out| values.get(out.index)).collect()
    }
}

impl Needs for After {
    type Values = ();
    fn indexes(&self, into: &mut Vec<StepIndex>) {
        into.extend(self.0.iter().copied());
    }
    fn take(&self, _: &Values) -> Option<()> {
        Some(())
    }
}

macro_rules! needs_of_tuples {
    ($($name:ident $at:tt),+) => {
        impl<$($name: Needs),+> Needs for ($($name,)+) {
            type Values = ($($name::Values,)+);
            fn indexes(&self, into: &mut Vec<StepIndex>) {
                $(self.$at.indexes(into);)+
            }
            fn take(&self, values: &Values) -> Option<Self::Values> {
                Some(($(self.$at.take(values)?,)+))
            }
        }
    };
}

needs_of_tuples!(A 0);
needs_of_tuples!(A 0, B 1);
needs_of_tuples!(A 0, B 1, C 2);
needs_of_tuples!(A 0, B 1, C 2, D 3);
needs_of_tuples!(A 0, B 1, C 2, D 3, E 4);
needs_of_tuples!(A 0, B 1, C 2, D 3, E 4, F 5);
