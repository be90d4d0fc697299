//! Options that every verb has.

use std::path::PathBuf;
use std::time::Duration;

use clap::builder::NonEmptyStringValueParser;
use clap::{Args, ValueEnum};
use toolbox_engine::plan::parse_duration;

/// Form of the result on stdout.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Output {
    /// For people.
    Text,
    /// For programs.
    Json,
    /// For programs and people.
    Yaml,
}

/// When to colour.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Color {
    /// On a terminal, unless NO_COLOR is set.
    Auto,
    /// Always.
    Always,
    /// Never.
    Never,
}

/// Form of the developers' log.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum LogFormat {
    /// Lines.
    Plain,
    /// One JSON object a line.
    Json,
}

/// `NAME=DURATION` of `--deadline`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Deadline {
    pub(crate) name: String,
    pub(crate) limit: Duration,
}

fn deadline(text: &str) -> Result<Deadline, String> {
    let (name, limit) =
        text.split_once('=').ok_or_else(|| format!("`{text}` is no deadline: write NAME=DURATION, such as csv=20m"))?;
    if name.trim().is_empty() {
        return Err("the name before `=` is missing: write NAME=DURATION, such as csv=20m".to_owned());
    }
    Ok(Deadline { name: name.trim().to_owned(), limit: limit_of(limit.trim())? })
}

/// A time that something may take. Nothing can be done in none.
fn limit_of(text: &str) -> Result<Duration, String> {
    let limit = parse_duration(text)?;
    if limit.is_zero() {
        return Err("nothing can be done in no time: leave it out to have the usual limit".to_owned());
    }
    Ok(limit)
}

/// The name of a namespace, for an option's `value_parser`. An empty one counts as not given: scripts pass it.
pub fn namespace(text: &str) -> Result<String, String> {
    let text = text.trim();
    let inner = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    if text.len() <= 63 && text.chars().all(inner) && !text.starts_with('-') && !text.ends_with('-') {
        Ok(text.to_owned())
    } else {
        Err("this is no name of a namespace: use up to 63 small letters, digits and dashes".to_owned())
    }
}

/// The options.
#[expect(clippy::struct_excessive_bools, reason = "each is a switch of the command line")]
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "Global options")]
pub(crate) struct GlobalArgs {
    /// Directory of the run directories [default: a new one in the temporary directory]
    #[arg(long, global = true, value_name = "DIR")]
    pub(crate) artifact_dir: Option<PathBuf>,

    /// Configuration file [default: ./tbx.yaml, then ~/.config/tbx/config.yaml]
    #[arg(long, global = true, value_name = "FILE", hide_short_help = true)]
    pub(crate) config: Option<PathBuf>,

    /// Kubeconfig file, or several as in $KUBECONFIG
    #[arg(long, global = true, value_name = "FILE", value_parser = NonEmptyStringValueParser::new())]
    pub(crate) kubeconfig: Option<String>,

    /// Context of the kubeconfig
    #[arg(long, global = true, value_name = "NAME", value_parser = NonEmptyStringValueParser::new())]
    pub(crate) context: Option<String>,

    /// Use the account of the pod this runs in, whatever kubeconfig there is
    #[arg(long, global = true, hide_short_help = true)]
    pub(crate) in_cluster: bool,

    /// Act as this user
    #[arg(long = "as", global = true, value_name = "USER", value_parser = NonEmptyStringValueParser::new(), hide_short_help = true)]
    pub(crate) act_as: Option<String>,

    /// Act as a member of this group as well
    #[arg(long = "as-group", global = true, value_name = "GROUP", value_parser = NonEmptyStringValueParser::new(), hide_short_help = true)]
    pub(crate) act_as_group: Vec<String>,

    /// How long one request to the API server may take [default: 60s]
    #[arg(long, global = true, value_name = "DURATION", value_parser = limit_of, hide_short_help = true)]
    pub(crate) request_timeout: Option<Duration>,

    /// Print what would be done on this cluster, and change nothing
    #[arg(long, global = true)]
    pub(crate) plan: bool,

    /// Form of the result on stdout
    #[arg(long, short, global = true, value_enum, default_value_t = Output::Text, hide_possible_values = true, value_name = "text|json|yaml")]
    pub(crate) output: Output,

    /// How long a wait or step may take, such as csv=20m; repeatable
    #[arg(long = "deadline", global = true, value_name = "NAME=DURATION", value_parser = deadline)]
    pub(crate) deadlines: Vec<Deadline>,

    /// How long the whole run may take
    #[arg(long, global = true, value_name = "DURATION", value_parser = limit_of)]
    pub(crate) run_deadline: Option<Duration>,

    /// Stop at the first failure instead of finishing what does not depend on it
    #[arg(long, global = true, hide_short_help = true)]
    pub(crate) fail_fast: bool,

    /// How long captures may take once the run was asked to stop [default: 15s]
    #[arg(long, global = true, value_name = "DURATION", value_parser = parse_duration, hide_short_help = true)]
    pub(crate) grace: Option<Duration>,

    /// When the run fails, take back what it made and changed
    #[arg(long, global = true)]
    pub(crate) undo_on_failure: bool,

    /// Take over fields that another manager owns
    #[arg(long, global = true, hide_short_help = true)]
    pub(crate) force_conflicts: bool,

    /// Run even though another run holds the cluster's lease
    #[arg(long, global = true, hide_short_help = true)]
    pub(crate) force_lock: bool,

    /// Go on where a run that was killed has stopped; needs the same verb and arguments
    #[arg(long, global = true, value_name = "RUN_DIR", hide_short_help = true)]
    pub(crate) resume: Option<PathBuf>,

    /// Hold before this step until the run is asked to stop, to try out interruptions
    #[arg(long, global = true, value_name = "STEP", hide_short_help = true)]
    pub(crate) hold_at: Option<String>,

    /// When to colour
    #[arg(long, global = true, value_enum, default_value_t = Color::Auto, hide_possible_values = true, value_name = "auto|always|never", hide_short_help = true)]
    pub(crate) color: Color,

    /// More of the developers' log; repeatable
    #[arg(long, short, global = true, action = clap::ArgAction::Count, hide_short_help = true)]
    pub(crate) verbose: u8,

    /// What the developers' log shows, such as toolbox_cluster=debug
    #[arg(long, global = true, value_name = "FILTER", hide_short_help = true)]
    pub(crate) log_filter: Option<String>,

    /// Form of the developers' log
    #[arg(long, global = true, value_enum, default_value_t = LogFormat::Plain, hide_possible_values = true, value_name = "plain|json", hide_short_help = true)]
    pub(crate) log_format: LogFormat,
}

/// Variables that set a global option besides its own `TBX_…`.
pub(crate) const UPSTREAM: &[(&str, &[&str])] =
    &[("artifact-dir", &["ARTIFACT_DIR", "ARTIFACTS"]), ("kubeconfig", &["KUBECONFIG"])];

/// Options that only make sense for one run, so that no file and no variable sets them.
pub(crate) const ONCE: &[&str] =
    &["config", "deadline", "resume", "hold-at", "plan", "help", "version", "serve", "list-faults", "list-scenarios"];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_namespace_is_a_label_and_an_empty_one_is_not_given() {
        assert_eq!(namespace(" gpu-1 "), Ok("gpu-1".to_owned()));
        assert_eq!(namespace(""), Ok(String::new()));
        for text in ["A", "a b", "a_b", "-a", "a-", "a\nb", "é", &"x".repeat(64)] {
            assert!(namespace(text).is_err(), "{text}");
        }
    }
}
