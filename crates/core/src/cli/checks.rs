//! What can only be checked once the plan is known: names of steps and waits, and the run that is resumed.

use std::path::Path;

use toolbox_engine::run::{Journal, is_running};
use toolbox_engine::{Cause, Exit, FailureVerdict, ObjectRef, Plan, Why};

use super::args::GlobalArgs;
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

/// The journal of a run that can be resumed by this verb. A CI flow's run carries the flow's name.
pub(crate) fn resumable(directory: &Path, name: &VerbName, flow: Option<&str>) -> Result<Journal, Why> {
    let journal = ended("--resume", directory)?;
    let record = record(directory)?;
    let name = flow.map_or_else(|| name.to_string(), str::to_owned);
    let same = record.name.is_empty() || record.name.replace('-', "_") == name.replace('-', "_");
    if same {
        Ok(journal)
    } else {
        Err(wrong_flag(
            "--resume",
            format!("that run was `{}`, this is `{name}`", record.name),
            "repeat the command that is in its command.txt, with --resume",
        ))
    }
}
