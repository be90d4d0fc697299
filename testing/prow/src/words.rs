//! Words of the predecessor's command line that stand for something that does not exist here yet.

use toolbox_core::engine::{Cause, Exit, FailureVerdict, ObjectRef, Why};

/// Whatever follows such a word.
#[derive(Clone, Debug, Default, clap::Args)]
pub struct NotBuilt {
    /// Passed over
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, hide = true)]
    words: Vec<String>,
}

/// What there is, for those who asked for something else.
const EXISTING: &str = "there is: prow gpu-operator test_operatorhub [VERSION] [CHANNEL]";

/// Why a word on the command line leads nowhere.
enum WordCause {
    /// It is known, and what it stands for is not built yet.
    NotBuilt,
    /// Nobody knows it.
    Unknown,
    /// There is none.
    Missing,
    /// One too many.
    TooMany,
}

impl Cause for WordCause {
    fn code(&self) -> &'static str {
        match self {
            WordCause::NotBuilt => "entrypoint-not-built",
            WordCause::Unknown => "unknown-entrypoint",
            WordCause::Missing => "no-entrypoint",
            WordCause::TooMany => "too-many-arguments",
        }
    }
    fn text(&self) -> String {
        match self {
            WordCause::NotBuilt => "this job of the predecessor is not built yet",
            WordCause::Unknown => "no such job",
            WordCause::Missing => "no job is named",
            WordCause::TooMany => "one argument too many",
        }
        .to_owned()
    }
    fn next(&self) -> String {
        match self {
            WordCause::TooMany => "give at most a version and a channel".to_owned(),
            _ => EXISTING.to_owned(),
        }
    }
    fn verdict(&self) -> FailureVerdict {
        FailureVerdict::Configuration
    }
    fn exit(&self) -> Exit {
        Exit::Usage
    }
}

fn why(words: &str, cause: &WordCause) -> Why {
    Why::new(ObjectRef::thing("job", words), cause)
}

/// A job that the predecessor had and that is not built yet.
pub(crate) fn not_built(words: &str) -> Why {
    why(words, &WordCause::NotBuilt)
}

/// A job that nobody had.
pub(crate) fn unknown(words: &str) -> Why {
    why(words, &WordCause::Unknown)
}

/// No job at all.
pub(crate) fn missing() -> Why {
    why("<none>", &WordCause::Missing)
}

/// A word that has no meaning any more.
pub(crate) fn too_many(word: &str) -> Why {
    why(word, &WordCause::TooMany)
}
