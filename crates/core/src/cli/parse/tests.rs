use toolbox_engine::Plan;

use super::*;
use crate::settings::Origin;
use crate::{Lone, Noun, Verb, VerbEnv, VerbName};

#[derive(clap::Subcommand)]
enum Things {
    /// Make a thing larger
    SetScale {
        /// Kind of thing
        kind: String,
        /// From which one
        #[arg(long, env = "BASE_THING", default_value = "first")]
        base_thing: String,
        /// Several
        #[arg(long)]
        label: Vec<String>,
    },
    /// A verb with the name of one of our own commands
    Report,
}

struct Said(String);

impl Verb for Said {
    fn name(&self) -> VerbName {
        VerbName::new("things", &self.0)
    }
    fn plan(self: Box<Self>, _: &VerbEnv) -> Result<Plan, Why> {
        Ok(Plan::new(self.0))
    }
}

impl Noun for Things {
    fn verb(self) -> Result<Box<dyn Verb>, Why> {
        Ok(Box::new(Said(match self {
            Things::SetScale { kind, base_thing, label } => format!("{kind} {base_thing} {}", label.join("+")),
            Things::Report => "report".to_owned(),
        })))
    }
}

/// Words as an older program took them
#[derive(clap::Args)]
struct Words {
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    words: Vec<String>,
}

impl Lone for Words {
    fn verb(self) -> Result<Box<dyn Verb>, Why> {
        Ok(Box::new(Said(self.words.join(" "))))
    }
}

fn large() -> App {
    App::new("tbx").noun::<Things>("things", &["thing_operator"]).lone::<Words>("run", &[])
}

fn small() -> App {
    App::new("tbx-things").only::<Things>("things")
}

fn understood(app: &App, words: &[&str], env: &[(&str, &str)]) -> Parsed {
    let words: Vec<OsString> = std::iter::once(&app.name()).chain(words).map(OsString::from).collect();
    let env = EnvMap::new(env.iter().map(|(name, value)| (*name, *value)));
    match parse(app, &words, &env, Path::new("/nowhere")) {
        Ok(parsed) => parsed,
        Err(Ended::Clap(error) | Ended::Unknown(_, error)) => panic!("{error}"),
        Err(Ended::Why(why)) => panic!("{why}"),
    }
}

fn said(app: &App, words: &[&str], env: &[(&str, &str)]) -> String {
    let parsed = understood(app, words, env);
    let (Asked::Verb(matches) | Asked::Rehearse(_, Some(matches))) = &parsed.asked else { panic!("no verb") };
    match app.verb(matches) {
        Some(Ok(verb)) => verb.name().command,
        Some(Err(_)) | None => panic!("no verb"),
    }
}

#[test]
fn a_small_binary_leaves_its_noun_out_and_has_the_same_settings() {
    let variable = [("TBX_THINGS_SET_SCALE_BASE_THING", "second")];
    for (app, words) in [
        (large(), &["things", "set_scale", "a"][..]),
        (large(), &["thing-operator", "set-scale", "a"]),
        (large(), &["rehearse", "things", "set-scale", "a"]),
        (small(), &["set-scale", "a"]),
        (small(), &["rehearse", "set_scale", "a"]),
    ] {
        assert_eq!(said(&app, words, &[]), "a first ", "{words:?}");
        assert_eq!(said(&app, words, &variable), "a second ", "{words:?}");
        assert_eq!(said(&app, words, &[("BASE_THING", "third")]), "a third ", "{words:?}");
    }
    assert_eq!(said(&small(), &["report"], &[]), "report");
    assert!(matches!(understood(&large(), &["report", "dir"], &[]).asked, Asked::Own(Own::Report(_))));
}

#[test]
fn a_list_comes_from_a_variable_with_commas_and_flags_replace_it() {
    let variable = [("TBX_THINGS_SET_SCALE_LABEL", "x, y")];
    assert_eq!(said(&large(), &["things", "set-scale", "a"], &variable), "a first x+y");
    let words = ["things", "set-scale", "a", "--label", "z"];
    assert_eq!(said(&large(), &words, &variable), "a first z");
}

#[test]
fn each_value_knows_where_it_came_from() {
    let words = ["things", "set-scale", "a", "--output", "json", "--deadline", "csv=20m", "--artifact-dir=/x"];
    let parsed = understood(&large(), &words, &[("KUBECONFIG", "/k"), ("TBX_GRACE", "9s")]);
    let origin = |key: &str| parsed.settings.origin(key).cloned();
    assert_eq!(origin("output"), Some(Origin::Flag("--output".into())));
    assert_eq!(origin("artifact-dir"), Some(Origin::Flag("--artifact-dir".into())));
    assert_eq!(origin("deadlines.csv"), Some(Origin::Flag("--deadline".into())));
    assert_eq!(origin("kubeconfig"), Some(Origin::Env("KUBECONFIG".into())));
    assert_eq!(origin("grace"), Some(Origin::Env("TBX_GRACE".into())));
    assert_eq!(origin("request-timeout"), Some(Origin::Default));
    assert_eq!(origin("things.set-scale.base-thing"), Some(Origin::Default));
    assert_eq!(parsed.globals.grace.map(|grace| grace.as_secs()), Some(9));
    assert_eq!(parsed.globals.request_timeout.map(|limit| limit.as_secs()), Some(30));
}

#[test]
fn words_of_an_older_program_are_passed_on_as_they_are() {
    let words = ["run", "gpu-operator", "test_operatorhub", "1.8.2", "--flag=x"];
    assert_eq!(said(&large(), &words, &[]), "gpu_operator test_operatorhub 1.8.2 __flag=x");
}

#[test]
fn the_command_line_is_sound_in_every_form() {
    for app in [large(), small()] {
        shown(&app).debug_assert();
        spelling::switches(spelling::variants(whole(&app))).debug_assert();
    }
}

#[test]
fn short_help_fits_on_a_screen() {
    let help = shown(&large()).render_help().to_string();
    assert!(help.lines().count() < 40, "{help}");
}

#[test]
fn help_is_help_behind_words_that_are_taken_as_they_are() {
    for (words, help) in [
        (&["tbx", "run", "a", "--help"][..], true),
        (&["tbx", "rehearse", "run", "a", "b", "-h"], true),
        (&["tbx", "run", "a", "--helpful"], false),
        (&["tbx", "run", "a", "--", "--help"], false),
    ] {
        let words: Vec<OsString> = words.iter().map(OsString::from).collect();
        let parsed = parse(&large(), &words, &EnvMap::default(), Path::new("/nowhere"));
        let asked = matches!(&parsed, Err(Ended::Clap(error)) if !error.use_stderr());
        assert_eq!((asked, parsed.is_ok()), (help, !help), "{words:?}");
    }
}
