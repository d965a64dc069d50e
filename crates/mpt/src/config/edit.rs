//! A setting that differs, with what it takes to change it while it runs.

use std::fmt;
use std::sync::Arc;

use super::written::Written;

/// What it takes to carry out a change; the greater of two includes the lesser where it is about the
/// same thing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Effect {
    /// Nothing that traffic main_events.
    InPlace,
    /// The path goes and comes again.
    PathReplaced,
    /// The connection goes and comes again, and its sequence starts anew at the peer.
    ConnectionReplaced,
    /// The tunnel with its interface goes and comes again.
    TunnelRestarted,
    /// It cannot be done while the daemon runs.
    DaemonRestarted,
}

/// A setting of an `O`, and what it becomes.
pub(crate) struct Edit<O> {
    key: String,
    effect: Effect,
    /// The values before and after as a file has them.
    values: (String, String),
    set: Arc<dyn Fn(&mut O) + Send + Sync>,
}

impl<O: 'static> Edit<O> {
    /// The change of a setting, if it differs; `place` is where an `O` has it.
    pub(super) fn between<T>(
        key: &str,
        effect: Effect,
        from: &T,
        to: &T,
        place: fn(&mut O) -> &mut T,
    ) -> Option<Self>
    where
        T: Clone + PartialEq + Written + Send + Sync + 'static,
    {
        let edit = || {
            let values = (from.written(), to.written());
            let to = to.clone();
            let set = Arc::new(move |owner: &mut O| place(owner).clone_from(&to));
            Self { key: key.to_owned(), effect, values, set }
        };
        (from != to).then(edit)
    }

    /// The same change of what has the `O` in that place.
    pub(super) fn within<P: 'static>(self, place: fn(&mut P) -> &mut O) -> Edit<P> {
        let Self { key, effect, values, set } = self;
        Edit { key, effect, values, set: Arc::new(move |owner| set(place(owner))) }
    }

    /// The same change with the name of its table before its key.
    pub(super) fn below(self, table: &str) -> Self {
        Self { key: format!("{table}.{}", self.key), ..self }
    }
}

impl<O> Edit<O> {
    /// Makes the change.
    pub(super) fn set(&self, owner: &mut O) {
        (self.set)(owner);
    }

    /// What it takes.
    pub(crate) fn effect(&self) -> Effect {
        self.effect
    }

    /// The key that it has in the file.
    pub(crate) fn key(&self) -> &str {
        &self.key
    }
}

/// `weight 1 -> 3`.
impl<O> fmt::Display for Edit<O> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (from, to) = &self.values;
        write!(f, "{} {from} -> {to}", self.key)
    }
}

impl<O> fmt::Debug for Edit<O> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Edit({self}, {:?})", self.effect)
    }
}

impl<O> Clone for Edit<O> {
    fn clone(&self) -> Self {
        let Self { key, effect, values, set } = self;
        let (key, values, set) = (key.clone(), values.clone(), Arc::clone(set));
        Self { key, effect: *effect, values, set }
    }
}

/// By what is shown: what is written of a value gives the value.
impl<O> PartialEq for Edit<O> {
    fn eq(&self, other: &Self) -> bool {
        (&self.key, self.effect, &self.values) == (&other.key, other.effect, &other.values)
    }
}
