//! `tbx run`: the predecessor's entrypoint, with its argument list word for word.

use toolbox_core::engine::Why;
use toolbox_core::{Lone, Verb};

use crate::flow::OperatorHubFlow;
use crate::words;

/// Run a CI job, in the words of the predecessor's entrypoint
///
/// As in `run gpu-operator test_operatorhub 1.11.0 stable` or `run prow gpu-operator test_operatorhub`; the word prow
/// may be left out.
#[derive(Clone, Debug, clap::Args)]
pub struct RunArgs {
    /// The job and its arguments
    #[arg(value_name = "WORD", trailing_var_arg = true, allow_hyphen_values = true)]
    words: Vec<String>,
}

impl Lone for RunArgs {
    fn verb(self) -> Result<Box<dyn Verb>, Why> {
        job(&self.words)
    }
}

/// The folders of the predecessor's entrypoints, besides `prow`'s own.
const OTHERS: [&str; 3] = ["osde2e", "recipes", "test-commit"];
/// The jobs below `prow` that are not built yet.
const PROW: [&str; 5] = ["cluster", "entitle", "nfd-operator", "nto", "sro"];
/// The actions of `prow gpu-operator` that are not built yet.
const ACTIONS: [&str; 5] = [
    "test-master-branch",
    "test-commit",
    "validate-deployment-post-upgrade",
    "publish-master-bundle",
    "cleanup-cluster",
];

fn job(words: &[String]) -> Result<Box<dyn Verb>, Why> {
    let whole = words.join(" ");
    let rest = match words.first().map(String::as_str) {
        None => return Err(words::missing()),
        Some("prow") => &words[1..],
        Some(_) => words,
    };
    // The predecessor's file names have dashes, its actions underscores; both are taken for both.
    let spelled = |at: usize| rest.get(at).map(|word| word.replace('_', "-"));
    let (first, second) = (spelled(0), spelled(1));
    match (first.as_deref(), second.as_deref()) {
        (None, _) | (Some("gpu-operator"), None) => Err(words::missing()),
        (Some("gpu-operator"), Some("test-operatorhub")) => Ok(Box::new(OperatorHubFlow::of_words(&rest[2..])?)),
        (Some("gpu-operator"), Some(action)) if ACTIONS.contains(&action) => Err(words::not_built(&whole)),
        (Some(other), _) if OTHERS.contains(&other) || PROW.contains(&other) => Err(words::not_built(&whole)),
        _ => Err(words::unknown(&whole)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use toolbox_core::engine::Exit;

    fn words(text: &str) -> Vec<String> {
        text.split_whitespace().map(str::to_owned).collect()
    }

    #[test]
    fn the_predecessors_words_lead_to_the_same_job() {
        for text in [
            "gpu-operator test_operatorhub",
            "prow gpu-operator test_operatorhub 1.11.0 stable",
            "prow gpu_operator test-operatorhub 1.8.2 v1.8 no_undeploy",
        ] {
            let verb = job(&words(text)).unwrap();
            assert_eq!(verb.flow().as_deref(), Some("gpu-operator-test_operatorhub"), "{text}");
        }
    }

    #[test]
    fn what_is_not_built_or_unknown_says_what_there_is() {
        for (text, code) in [
            ("", "no-entrypoint"),
            ("prow", "no-entrypoint"),
            ("gpu-operator", "no-entrypoint"),
            ("osde2e gpu-addon", "entrypoint-not-built"),
            ("recipes test", "entrypoint-not-built"),
            ("test-commit", "entrypoint-not-built"),
            ("prow entitle", "entrypoint-not-built"),
            ("gpu-operator test_master_branch", "entrypoint-not-built"),
            ("prow frobnicate", "unknown-entrypoint"),
            ("gpu-operator test_operatorhub 1.11.0 stable no_undeploy x", "too-many-arguments"),
        ] {
            let Err(why) = job(&words(text)) else {
                panic!("{text} is accepted");
            };
            assert_eq!((why.code.as_ref(), why.exit), (code, Exit::Usage), "{text}");
            assert!(!why.next.is_empty());
        }
    }
}
