//! Spelling: dashes and underscores mean the same in nouns, verbs and flags, and flags take `=false`.

use clap::builder::ValueParser;
use clap::{Arg, ArgAction, Command};

/// Accepts underscores wherever a name has dashes, and the other way round.
pub(crate) fn variants(command: Command) -> Command {
    command
        .mut_args(|arg| match arg.get_long().map(other) {
            Some(Some(other)) => arg.alias(other),
            _ => arg,
        })
        .mut_subcommands(|inner| {
            let mut names = vec![inner.get_name().to_owned()];
            names.extend(inner.get_all_aliases().map(str::to_owned));
            let aliases: Vec<String> =
                names.iter().filter_map(|name| other(name)).filter(|other| !names.contains(other)).collect();
            variants(inner.aliases(aliases))
        })
}

/// `set-scale` for `set_scale`, and the other way round; nothing for a word without either.
fn other(name: &str) -> Option<String> {
    if name.contains('-') {
        Some(name.replace('-', "_"))
    } else if name.contains('_') {
        Some(name.replace('_', "-"))
    } else {
        None
    }
}

/// Lets every switch take a word: `--force=false` as Ansible and python-fire users write it. And a negative number is a
/// wrong value, not an unknown option.
pub(crate) fn switches(command: Command) -> Command {
    command
        .mut_args(|arg| match arg.get_action() {
            ArgAction::SetTrue => switch(arg),
            ArgAction::Set | ArgAction::Append => arg.allow_negative_numbers(true),
            _ => arg,
        })
        .mut_subcommands(switches)
}

fn switch(arg: Arg) -> Arg {
    arg.action(ArgAction::Set)
        .num_args(0..=1)
        .require_equals(true)
        .default_missing_value("true")
        .default_value("false")
        .value_parser(ValueParser::new(yes_or_no))
}

/// The words for yes and no; everything else is an error, never a silent yes.
pub(crate) fn yes_or_no(word: &str) -> Result<bool, String> {
    match word.to_lowercase().as_str() {
        "true" | "yes" | "on" | "1" | "y" | "t" => Ok(true),
        "false" | "no" | "off" | "0" | "n" | "f" | "" => Ok(false),
        _ => Err("write true or false".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(words: &[&str]) -> Result<(String, bool, Option<String>), clap::Error> {
        let scale = Command::new("set-scale")
            .arg(Arg::new("force").long("force").action(ArgAction::SetTrue))
            .arg(Arg::new("base").long("base-machineset"));
        let noun = Command::new("nfd-operator").subcommand(scale);
        let command = switches(variants(Command::new("tbx").subcommand(noun)));
        let matches = command.try_get_matches_from(words)?;
        let (noun, inner) = matches.subcommand().unwrap();
        let (verb, inner) = inner.subcommand().unwrap();
        Ok((format!("{noun} {verb}"), inner.get_one("force").copied().unwrap(), inner.get_one("base").cloned()))
    }

    #[test]
    fn underscores_are_accepted_everywhere() {
        let expected = ("nfd-operator set-scale".to_owned(), true, Some("4.10".to_owned()));
        for words in [
            ["tbx", "nfd_operator", "set_scale", "--force", "--base_machineset=4.10"],
            ["tbx", "nfd-operator", "set-scale", "--force=yes", "--base-machineset=4.10"],
        ] {
            assert_eq!(parse(&words).unwrap(), expected);
        }
    }

    #[test]
    fn the_word_false_is_false_and_a_strange_word_is_an_error() {
        for word in ["false", "False", "no", "0", "", "off", "N"] {
            let force = format!("--force={word}");
            assert!(!parse(&["tbx", "nfd-operator", "set-scale", &force]).unwrap().1, "{word}");
        }
        assert!(parse(&["tbx", "nfd-operator", "set-scale", "--force=maybe"]).is_err());
        assert!(!parse(&["tbx", "nfd-operator", "set-scale"]).unwrap().1);
    }
}
