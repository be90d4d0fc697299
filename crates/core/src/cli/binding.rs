//! Options and settings: every option of every command can also be set by a variable or a file.

use std::collections::BTreeMap;

use clap::builder::Resettable;
use clap::parser::ValueSource;
use clap::{Arg, ArgAction, ArgMatches, Command};

use super::args::{ONCE, UPSTREAM};
use crate::settings::{Layers, Leaf, Origin, Schema, Setting, Settings};

/// Words that are commands of the program itself, not nouns.
const OWN: &[&str] = &["why", "report", "cleanup", "config", "completions", "man", "help"];

/// The settings that a command's options stand for. `only` is the noun of a small binary.
pub(crate) fn schema(command: &Command, only: Option<&str>) -> Schema {
    let mut root = Schema { leaves: leaves(command, true), open: only.is_some(), ..Schema::default() };
    let free = Schema { free: Some(Leaf::default()), ..Schema::default() };
    root.groups.insert("deadlines".to_owned(), free);
    let below = groups(command);
    if let Some(noun) = only {
        let rehearse = below.get("rehearse").map(|rehearse| ("rehearse".to_owned(), rehearse.clone()));
        let mut verbs = below;
        verbs.remove("rehearse");
        root.groups.extend(rehearse);
        root.groups.insert(noun.to_owned(), Schema { groups: verbs, ..Schema::default() });
    } else {
        root.groups.extend(below);
    }
    root
}

fn groups(command: &Command) -> BTreeMap<String, Schema> {
    command
        .get_subcommands()
        .filter(|inner| !OWN.contains(&inner.get_name()))
        .map(|inner| {
            let name = inner.get_name().to_owned();
            let nested = if name == "rehearse" { BTreeMap::new() } else { groups(inner) };
            let schema = Schema { leaves: leaves(inner, false), groups: nested, ..Schema::default() };
            (name, schema)
        })
        .filter(|(_, schema)| *schema != Schema::default())
        .collect()
}

fn leaves(command: &Command, global: bool) -> BTreeMap<String, Leaf> {
    command
        .get_arguments()
        .filter(|arg| arg.is_global_set() == global)
        .filter_map(|arg| Some((arg.get_long()?.to_owned(), leaf(arg, global))))
        .filter(|(name, _)| !ONCE.contains(&name.as_str()))
        .collect()
}

fn leaf(arg: &Arg, global: bool) -> Leaf {
    let name = arg.get_long().unwrap_or_default();
    let mut env: Vec<String> = arg.get_env().map(|name| name.to_string_lossy().into_owned()).into_iter().collect();
    if global {
        let upstream = UPSTREAM.iter().find(|(known, _)| *known == name);
        env.extend(upstream.into_iter().flat_map(|(_, names)| names.iter().map(|name| (*name).to_owned())));
    }
    let words = arg.get_possible_values();
    Leaf {
        list: matches!(arg.get_action(), ArgAction::Append),
        env,
        secret: arg.is_hide_env_values_set(),
        allowed: words
            .iter()
            .filter(|_| arg.get_action().takes_values())
            .map(|word| word.get_name().to_owned())
            .collect(),
        help: arg.get_help().map(ToString::to_string).unwrap_or_default(),
    }
}

/// Makes the values of the layers the options' defaults, so that the parser needs to know nothing about them.
pub(crate) fn bind(command: Command, layers: &Layers, only: Option<&str>) -> Command {
    let command = command.mut_args(|arg| if arg.is_global_set() { with_value(arg, "", layers) } else { arg });
    let prefix = only.map(|noun| format!("{noun}.")).unwrap_or_default();
    bind_below(command, &prefix, layers)
}

fn bind_below(command: Command, prefix: &str, layers: &Layers) -> Command {
    command.mut_subcommands(|inner| {
        let name = inner.get_name().to_owned();
        // A rehearsed verb has the settings of the verb.
        let below = if name == "rehearse" { prefix.to_owned() } else { format!("{prefix}{name}.") };
        let own = if name == "rehearse" { "rehearse." } else { below.as_str() };
        let inner = inner.mut_args(|arg| if arg.is_global_set() { arg } else { with_value(arg, own, layers) });
        bind_below(inner, &below, layers)
    })
}

fn with_value(arg: Arg, prefix: &str, layers: &Layers) -> Arg {
    let Some(name) = arg.get_long() else {
        return arg;
    };
    let key = format!("{prefix}{name}");
    // The environment is a layer of ours; the parser must not look at it again.
    let arg = arg.env(Resettable::Reset);
    match layers.settings.get(&key) {
        Some(setting) if !matches!(arg.get_action(), ArgAction::Count) => {
            arg.required(false).default_values(setting.values.clone())
        }
        _ => arg,
    }
}

/// The settings in force: what the layers say, under the flags that were given.
pub(crate) fn resolve(
    schema: &Schema,
    layers: &Layers,
    command: &Command,
    matches: &ArgMatches,
    only: Option<&str>,
) -> Settings {
    let mut found = layers.settings.clone();
    let (path, deepest, last) = deepest(command, matches, only);
    // Global options are only written down at the top.
    let globals = command.get_arguments().filter(|arg| arg.is_global_set());
    let own = last.get_arguments().filter(|arg| !arg.is_global_set());
    for arg in globals.chain(own) {
        let Some(long) = arg.get_long() else { continue };
        let key = if arg.is_global_set() { long.to_owned() } else { format!("{path}{long}") };
        let id = arg.get_id().as_str();
        let Ok(Some(values)) = deepest.try_get_raw(id) else {
            continue;
        };
        let values: Vec<String> = values.map(|value| value.to_string_lossy().into_owned()).collect();
        let origin = match deepest.value_source(id) {
            Some(ValueSource::CommandLine) => Origin::Flag(format!("--{long}")),
            _ if found.contains_key(&key) => continue,
            _ => Origin::Default,
        };
        if long == "deadline" {
            let given = values.iter().filter_map(|value| value.split_once('='));
            for (name, limit) in given {
                let key = format!("deadlines.{}", name.trim());
                found.insert(key.clone(), setting(key, vec![limit.trim().to_owned()], origin.clone(), false));
            }
            continue;
        }
        if ONCE.contains(&long) {
            continue;
        }
        let secret = arg.is_hide_env_values_set();
        found.insert(key.clone(), setting(key, values, origin, secret));
    }
    // What only the code sets by default is a setting as well.
    for (key, leaf) in schema.all() {
        if let Some(value) = code_default(command, &key, only)
            && !found.contains_key(&key)
        {
            found.insert(key.clone(), setting(key, value, Origin::Default, leaf.secret));
        }
    }
    Settings::new(found.into_values())
}

fn setting(key: String, values: Vec<String>, origin: Origin, secret: bool) -> Setting {
    Setting { key, values, origin, secret }
}

fn code_default(command: &Command, key: &str, only: Option<&str>) -> Option<Vec<String>> {
    let mut words: Vec<&str> = key.split('.').collect();
    let long = words.pop()?;
    if only.is_some() && words.first() == only.as_ref() {
        words.remove(0);
    }
    let mut at = command;
    for word in words {
        at = at.find_subcommand(word)?;
    }
    let arg = at.get_arguments().find(|arg| arg.get_long() == Some(long))?;
    let values: Vec<String> =
        arg.get_default_values().iter().map(|value| value.to_string_lossy().into_owned()).collect();
    (!values.is_empty()).then_some(values)
}

/// The command that was named, with its matches and the prefix of its settings.
pub(crate) fn deepest<'a>(
    command: &'a Command,
    matches: &'a ArgMatches,
    only: Option<&str>,
) -> (String, &'a ArgMatches, &'a Command) {
    let (mut at, mut found) = (command, matches);
    let mut path = only.map(|noun| format!("{noun}.")).unwrap_or_default();
    while let Some((name, inner)) = found.subcommand() {
        let Some(next) = at.find_subcommand(name) else {
            break;
        };
        if name == "rehearse" {
            if inner.subcommand().is_none() {
                "rehearse.".clone_into(&mut path);
            }
        } else {
            path.push_str(name);
            path.push('.');
        }
        (at, found) = (next, inner);
    }
    (path, found, at)
}
