//! A program: which nouns it has, and how their words on the command line become a [`Verb`].

use clap::{ArgMatches, Command};
use toolbox_engine::Why;

use super::verb::{Lone, Noun, Verb};

/// Why words did not become a verb.
#[derive(Debug)]
pub(crate) enum Refusal {
    /// clap's own message.
    Clap(clap::Error),
    /// A check of the verb's.
    Why(Why),
}

#[derive(Clone)]
struct Entry {
    name: String,
    aliases: Vec<String>,
    augment: fn(Command) -> Command,
    verb: fn(&ArgMatches) -> Result<Box<dyn Verb>, Refusal>,
}

fn noun_command<N: Noun>(command: Command) -> Command {
    N::augment_subcommands(command)
        .subcommand_required(true)
        .arg_required_else_help(true)
        .subcommand_value_name("VERB")
        .subcommand_help_heading("Verbs")
}

fn noun_verb<N: Noun>(matches: &ArgMatches) -> Result<Box<dyn Verb>, Refusal> {
    N::from_arg_matches(matches).map_err(Refusal::Clap)?.verb().map_err(Refusal::Why)
}

fn lone_verb<L: Lone>(matches: &ArgMatches) -> Result<Box<dyn Verb>, Refusal> {
    L::from_arg_matches(matches).map_err(Refusal::Clap)?.verb().map_err(Refusal::Why)
}

/// A program of one or more nouns.
#[derive(Clone)]
pub struct App {
    name: &'static str,
    about: String,
    entries: Vec<Entry>,
    only: bool,
}

impl App {
    /// A program without verbs; `name` is the binary's.
    pub fn new(name: &'static str) -> Self {
        Self {
            name,
            about: "Tools that test accelerator and scheduler stacks on Kubernetes and OpenShift".to_owned(),
            entries: Vec::new(),
            only: false,
        }
    }

    /// Adds a group of verbs.
    #[must_use]
    pub fn noun<N: Noun>(self, name: &str, aliases: &[&str]) -> Self {
        self.entry(name, aliases, noun_command::<N>, noun_verb::<N>)
    }

    /// Adds a verb without a noun.
    #[must_use]
    pub fn lone<L: Lone>(self, name: &str, aliases: &[&str]) -> Self {
        self.entry(name, aliases, L::augment_args, lone_verb::<L>)
    }

    /// A small binary: the verbs of this one noun, without naming it. `name` is the noun's, as settings know it.
    #[must_use]
    pub fn only<N: Noun>(mut self, name: &str) -> Self {
        self.only = true;
        self.entry(name, &[], N::augment_subcommands, noun_verb::<N>)
    }

    fn entry(
        mut self,
        name: &str,
        aliases: &[&str],
        augment: fn(Command) -> Command,
        verb: fn(&ArgMatches) -> Result<Box<dyn Verb>, Refusal>,
    ) -> Self {
        self.entries.push(Entry {
            name: name.to_owned(),
            aliases: aliases.iter().map(|alias| (*alias).to_owned()).collect(),
            augment,
            verb,
        });
        self
    }

    /// The binary's name.
    pub fn name(&self) -> &'static str {
        self.name
    }

    /// Adds every noun to `command`: at the top, or below `rehearse`.
    pub(crate) fn add_verbs(&self, command: Command) -> Command {
        self.entries.iter().fold(command, |command, entry| {
            if self.only {
                (entry.augment)(command)
            } else {
                command.subcommand((entry.augment)(Command::new(entry.name.clone())).aliases(entry.aliases.clone()))
            }
        })
    }

    /// The verb that was named, if the words name one.
    pub(crate) fn verb(&self, matches: &ArgMatches) -> Option<Result<Box<dyn Verb>, Refusal>> {
        if self.only {
            return self.entries.first().map(|entry| (entry.verb)(matches));
        }
        let (name, inner) = matches.subcommand()?;
        let entry = self.entries.iter().find(|entry| entry.name == name)?;
        Some((entry.verb)(inner))
    }

    /// What it is for, in one line.
    pub(crate) fn about(&self) -> &str {
        &self.about
    }

    /// The noun of a small binary, which its command line leaves out.
    pub(crate) fn only_noun(&self) -> Option<&str> {
        self.entries.first().filter(|_| self.only).map(|entry| entry.name.as_str())
    }

    /// The whole command line, before spelling variants and settings.
    pub(crate) fn command(&self) -> Command {
        self.add_verbs(
            Command::new(self.name)
                .about(self.about.clone())
                .version(env!("CARGO_PKG_VERSION"))
                .subcommand_required(true)
                .arg_required_else_help(true),
        )
    }
}
