//! From words to a command: settings bound, spelling accepted, clap's messages made ours.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{ArgMatches, Args, Command, FromArgMatches, Subcommand};
use toolbox_engine::Why;

use super::app::App;
use super::args::GlobalArgs;
use super::own::{Own, RehearseArgs};
use super::{binding, spelling};
use crate::EnvMap;
use crate::config::ConfigError;
use crate::settings::{ConfigFile, Layers, Schema, Settings, defaults};

/// What was asked for.
pub(crate) enum Asked {
    /// A verb on a real cluster.
    Verb(ArgMatches),
    /// A verb in the rehearsal; no verb when only lists are wanted.
    Rehearse(RehearseArgs, Option<ArgMatches>),
    /// A command of the program itself.
    Own(Own),
}

/// A command line that was understood.
pub(crate) struct Parsed {
    pub(crate) asked: Asked,
    pub(crate) globals: GlobalArgs,
    pub(crate) settings: Settings,
    /// What every setting is for, for `config`.
    pub(crate) schema: Schema,
    /// The configuration file that was read.
    pub(crate) file: Option<PathBuf>,
    /// One line each: what was odd.
    pub(crate) notes: Vec<String>,
}

/// Why there is nothing to do.
pub(crate) enum Ended {
    /// Help or version was asked for, or the words are wrong.
    Clap(clap::Error),
    /// A file or variable is wrong.
    Why(Why),
    /// The first word is no command of ours: perhaps another program.
    Unknown(OsString, clap::Error),
}

impl From<ConfigError> for Ended {
    fn from(error: ConfigError) -> Self {
        Ended::Why(error.into())
    }
}

/// The command line as help, manual pages and completions show it.
pub(crate) fn shown(app: &App) -> Command {
    spelling::variants(whole(app))
}

fn whole(app: &App) -> Command {
    let rehearse = RehearseArgs::augment_args(app.add_verbs(Command::new("rehearse")))
        .about("Run a verb against a simulated cluster, in virtual time")
        .subcommand_value_name("VERB")
        .subcommand_help_heading("Verbs");
    let command = GlobalArgs::augment_args(app.command());
    let command = command.subcommand(rehearse);
    if app.only_noun().is_some() {
        return command;
    }
    Own::augment_subcommands(command)
        // Augmenting brings the enum's own idea of the program's description along.
        .about(app.about().to_owned())
        .long_about(clap::builder::Resettable::Reset)
}

/// Understands a command line. `words` starts with the program's name.
pub(crate) fn parse(app: &App, words: &[OsString], env: &EnvMap, here: &Path) -> Result<Parsed, Ended> {
    let whole = whole(app);
    let only = app.only_noun();
    let schema = binding::schema(&whole, only);
    let path = ConfigFile::find(named_config(words).as_deref(), env, here);
    // Help has to work even when a file is wrong.
    let asks_for_help =
        words.iter().any(|word| word == "--help" || word == "-h" || word == "--version" || word == "-V");
    let layers = (|| {
        let file = match &path {
            Some(path) if !asks_for_help => Some(ConfigFile::read(path, &schema)?),
            _ => None,
        };
        let layers = Layers::new(&schema, env, file.as_ref(), &defaults(&schema)?)?;
        Ok::<_, ConfigError>((layers, file))
    })();
    let (layers, file) = match layers {
        Ok(found) => found,
        Err(_) if asks_for_help => (Layers::default(), None),
        Err(error) => return Err(error.into()),
    };
    let command = binding::bind(spelling::switches(spelling::variants(whole)), &layers, only);
    let sooner = if asks_for_help { help_sooner(&command, words) } else { None };
    let words = sooner.as_deref().unwrap_or(words);
    let matches = command
        .clone()
        .try_get_matches_from(words)
        .map_err(|error| wrong_words(app, error, words, &layers, file.as_ref(), &schema))?;
    let (_, deepest, _) = binding::deepest(&command, &matches, only);
    let globals = GlobalArgs::from_arg_matches(deepest).map_err(Ended::Clap)?;
    let settings = binding::resolve(&schema, &layers, &command, &matches, only);
    let asked = asked(&matches, only.is_some())?;
    let notes = layers.unknown.iter().map(|name| format!("${name} is set, but there is no such setting")).collect();
    Ok(Parsed { asked, globals, settings, schema, file: path.filter(|_| file.is_some()), notes })
}

/// A command that takes every word that follows would take `--help` as well: it is asked for in front of them.
fn help_sooner(command: &Command, words: &[OsString]) -> Option<Vec<OsString>> {
    let mut at = command;
    for (place, word) in words.iter().enumerate().skip(1) {
        let Some(inner) = at.find_subcommand(word) else { continue };
        at = inner;
        if !at.get_positionals().any(clap::Arg::is_trailing_var_arg_set) {
            continue;
        }
        let rest = words[place + 1..].iter().take_while(|word| *word != "--");
        let help = rest.into_iter().find(|word| *word == "--help" || *word == "-h")?;
        return Some(words[..=place].iter().chain([help]).cloned().collect());
    }
    None
}

fn asked(matches: &ArgMatches, small: bool) -> Result<Asked, Ended> {
    if let Some(("rehearse", inner)) = matches.subcommand() {
        let args = RehearseArgs::from_arg_matches(inner).map_err(Ended::Clap)?;
        let verb = inner.subcommand().is_some().then(|| inner.clone());
        return Ok(Asked::Rehearse(args, verb));
    }
    // A small binary's verbs may have the names of our own commands.
    if small {
        return Ok(Asked::Verb(matches.clone()));
    }
    match Own::from_arg_matches(matches) {
        Ok(own) => Ok(Asked::Own(own)),
        Err(_) => Ok(Asked::Verb(matches.clone())),
    }
}

/// The file named by `--config`, which has to be known before the options are.
fn named_config(words: &[OsString]) -> Option<PathBuf> {
    let mut words = words.iter().map(|word| word.to_string_lossy());
    let mut found = None;
    while let Some(word) = words.next() {
        if word == "--" {
            break;
        }
        if word == "--config" {
            // clap complains about an empty one.
            found = words.next().filter(|file| !file.is_empty()).map(|file| PathBuf::from(file.as_ref()));
        } else if let Some(file) = word.strip_prefix("--config=") {
            found = Some(PathBuf::from(file));
        }
    }
    found
}

fn text(error: &clap::Error, kind: ContextKind) -> Option<String> {
    match error.get(kind)? {
        ContextValue::String(text) => Some(text.clone()),
        _ => None,
    }
}

/// Sorts clap's complaint: about a flag, about a value from a file or variable, or about another program's name.
fn wrong_words(
    app: &App,
    error: clap::Error,
    words: &[OsString],
    layers: &Layers,
    file: Option<&ConfigFile>,
    schema: &Schema,
) -> Ended {
    match error.kind() {
        ErrorKind::DisplayHelp | ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand => {
            // Help is shown as the tools describe themselves, without what settings and spelling did to the options.
            match shown(app).try_get_matches_from(words) {
                Err(help) if help.kind() == error.kind() => Ended::Clap(help),
                _ => Ended::Clap(error),
            }
        }
        ErrorKind::InvalidSubcommand => {
            let first = words.get(1).cloned().unwrap_or_default();
            let named = text(&error, ContextKind::InvalidSubcommand);
            if named.as_deref() == first.to_str() { Ended::Unknown(first, error) } else { Ended::Clap(error) }
        }
        ErrorKind::InvalidValue | ErrorKind::ValueValidation | ErrorKind::NoEquals => {
            from_settings(&error, words, layers, file, schema).unwrap_or(Ended::Clap(error))
        }
        _ => Ended::Clap(error),
    }
}

/// When the flag was not given, its wrong value came from a file or a variable.
fn from_settings(
    error: &clap::Error,
    words: &[OsString],
    layers: &Layers,
    file: Option<&ConfigFile>,
    schema: &Schema,
) -> Option<Ended> {
    let flag = text(error, ContextKind::InvalidArg)?;
    let flag = flag.split([' ', '=', '[']).next()?.to_owned();
    let long = flag.strip_prefix("--")?;
    let given = words.iter().any(|word| {
        let word = word.to_string_lossy().replace('_', "-");
        word.split('=').next() == Some(flag.as_str())
    });
    if given {
        return None;
    }
    let value = text(error, ContextKind::InvalidValue);
    let setting = layers.settings.values().find(|setting| {
        let name = setting.key.rsplit('.').next();
        name == Some(long) && value.as_ref().is_none_or(|value| setting.values.contains(value))
    })?;
    let reason = std::error::Error::source(error).map(|reason| format!(": {reason}")).unwrap_or_default();
    let shown = setting.shown();
    let line = file
        .filter(|file| setting.origin == crate::settings::Origin::File(file.name.clone()))
        .and_then(|file| file.line_of(&setting.key, schema));
    let problem = format!("`{shown}` is not allowed{reason}");
    Some(ConfigError::file(setting.origin.to_string(), problem).at(&setting.key, line).into())
}

#[cfg(test)]
mod tests;
