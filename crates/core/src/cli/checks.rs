//! What can only be checked once the plan is known: names of steps and waits, and the run that is resumed.

use std::path::Path;

use clap::Args as _;
use toolbox_engine::run::{Journal, is_running};
use toolbox_engine::secret::MASK;
use toolbox_engine::{Cause, Exit, FailureVerdict, ObjectRef, Plan, Why};

use super::args::GlobalArgs;
use super::own::RehearseArgs;
use super::run::record;
use super::verb::VerbName;

/// Waits that a step may only add while it runs.
const WAITS: [&str; 6] = ["machines", "nodes", "gpu-label", "csv", "cluster-policy", "burn"];

/// A flag's value that cannot be right.
#[derive(Debug)]
struct WrongFlag {
    text: String,
    next: String,
}

impl Cause for WrongFlag {
    fn code(&self) -> &'static str {
        "wrong-flag"
    }
    fn text(&self) -> String {
        self.text.clone()
    }
    fn next(&self) -> String {
        self.next.clone()
    }
    fn verdict(&self) -> FailureVerdict {
        FailureVerdict::Configuration
    }
    fn exit(&self) -> Exit {
        Exit::Usage
    }
}

/// A wrong command line: `flag` with its dashes or the argument's name, what is wrong, what to do. Exit code 2.
pub fn wrong_flag(flag: &str, text: impl Into<String>, next: impl Into<String>) -> Why {
    let cause = WrongFlag { text: text.into(), next: next.into() };
    Why::new(ObjectRef::thing("flag", flag), &cause)
}

/// Whether `--deadline` and `--hold-at` name what the plan has.
pub(crate) fn names(globals: &GlobalArgs, plan: &Plan) -> Result<(), Why> {
    let steps = plan.planned();
    let mut known: Vec<&str> = Vec::new();
    known.extend(steps.iter().filter_map(|step| step.wait.as_deref()));
    known.sort_unstable();
    known.dedup();
    let waits = known.len();
    known.extend(steps.iter().map(|step| step.id.as_str()));
    for deadline in &globals.deadlines {
        let name = deadline.name.as_str();
        let base = name.split('[').next().unwrap_or(name);
        if !known.contains(&base) && !WAITS.contains(&name) {
            let text = format!("`{name}` is neither a wait nor a step of {}", plan.name());
            let next = if waits > 0 {
                format!("name one of {}, or a step that --plan shows", known[..waits].join(", "))
            } else {
                format!("name one of {}", known.join(", "))
            };
            return Err(wrong_flag("--deadline", text, next));
        }
    }
    if let Some(step) = &globals.hold_at
        && !steps.iter().any(|known| known.id == *step)
    {
        let text = format!("`{step}` is no step of {}", plan.name());
        let next = format!("name one of {}", known[waits..].join(", "));
        return Err(wrong_flag("--hold-at", text, next));
    }
    Ok(())
}

/// The journal of a run that is over, however it ended; `flag` is what named it.
pub(crate) fn ended(flag: &str, directory: &Path) -> Result<Journal, Why> {
    let journal = Journal::load(directory)?;
    if is_running(directory) {
        return Err(wrong_flag(
            flag,
            format!("the run in {} is still going on", directory.display()),
            "stop it first (Ctrl-C or kill), or let it end",
        ));
    }
    Ok(journal)
}

/// The journal of a run that can be resumed by this verb with these words. A CI flow's run carries the flow's name.
pub(crate) fn resumable(
    directory: &Path,
    name: &VerbName,
    flow: Option<&str>,
    words: &[String],
) -> Result<Journal, Why> {
    let journal = ended("--resume", directory)?;
    let record = record(directory)?;
    let refused = |text: String| {
        Err(wrong_flag("--resume", text, "repeat the command that is in its command.txt, with --resume"))
    };
    let name = flow.map_or_else(|| name.to_string(), str::to_owned);
    if record.name.replace('-', "_") != name.replace('-', "_") {
        return refused(format!("that run was `{}`, this is `{name}`", record.name));
    }
    // Its decisions would silently win over what is asked for now.
    let (was, is) = (own_words(record.command.get(1..).unwrap_or_default()), own_words(words));
    if !same_words(&was, &is) {
        return refused(format!("that run was asked for `{}`, this for `{}`", was.join(" "), is.join(" ")));
    }
    if let Some(line) = journal.damaged.first() {
        let file = directory.join("journal.jsonl").display().to_string();
        let problem = format!("line {line} cannot be read, so what that run decided and made is not known");
        let help = "run the command without --resume: it finds out what is there";
        return Err(crate::config::ConfigError::file(file, problem).help(help).into());
    }
    Ok(journal)
}

/// The words that say what is to be done: without the options that every verb has, and without the rehearsal's.
fn own_words(words: &[String]) -> Vec<String> {
    let command = RehearseArgs::augment_args(GlobalArgs::augment_args(clap::Command::new("")));
    let mut own = Vec::new();
    let mut words = words.iter();
    while let Some(word) = words.next() {
        let (name, value) = word.split_once('=').map_or((word.as_str(), None), |(name, value)| (name, Some(value)));
        let long = name.strip_prefix("--").map(|name| name.replace('_', "-"));
        let short = name.strip_prefix('-').and_then(|name| name.chars().next());
        let option = command.get_arguments().find(|option| match &long {
            Some(long) => option.get_long() == Some(long),
            None => short.is_some() && option.get_short() == short,
        });
        match option {
            Some(option) if option.get_action().takes_values() => {
                let attached = value.is_some() || (long.is_none() && name.len() > 2);
                if !attached {
                    words.next();
                }
            }
            Some(_) => {}
            None if word == "rehearse" && own.is_empty() => {}
            None => own.push(word.clone()),
        }
    }
    own
}

/// Whether the words ask for the same. A word that was masked when it was written is taken for any.
fn same_words(was: &[String], is: &[String]) -> bool {
    let same = |(was, is): (&String, &String)| was.contains(MASK) || was.replace('_', "-") == is.replace('_', "-");
    was.len() == is.len() && was.iter().zip(is).all(same)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn own(text: &str) -> Vec<String> {
        own_words(&text.split(' ').map(str::to_owned).collect::<Vec<_>>())
    }

    #[test]
    fn what_every_verb_has_is_no_part_of_what_is_asked_for() {
        for text in [
            "cluster scale g4dn.xlarge 1 --base_machineset=a",
            "-v -o json --kubeconfig /k cluster --deadline machines=1h scale g4dn.xlarge 1 --base_machineset=a --fail_fast",
            "--resume=/r -ojson rehearse --seed 3 --fault throttled cluster scale g4dn.xlarge 1 --base_machineset=a",
        ] {
            assert_eq!(own(text), ["cluster", "scale", "g4dn.xlarge", "1", "--base_machineset=a"], "{text}");
        }
    }

    #[test]
    fn another_number_is_another_wish_and_a_masked_word_is_any() {
        assert!(same_words(&own("cluster set_scale a 1"), &own("cluster set-scale a 1")));
        assert!(!same_words(&own("cluster scale a 1"), &own("cluster scale a 2")));
        assert!(!same_words(&own("nfd deploy"), &own("nfd deploy --channel 4.11")));
        assert!(same_words(&own("nfd deploy --key=***"), &own("nfd deploy --key=abc")));
    }
}
