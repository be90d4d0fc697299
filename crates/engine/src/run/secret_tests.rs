//! A planted secret, in any encoding and in any text, appears in no file of a run directory.

use std::fmt::Write as _;
use std::path::Path;

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use proptest::prelude::*;
use serde_json::json;

use super::tests::{at, failed_run, name, started};
use super::*;
use crate::event::{Ended, Event, Reporter};
use crate::journal::{Entry, Records};
use crate::secret::Redactor;
use crate::why::{Exit, ObjectRef, Why};

fn encodings(secret: &str) -> Vec<String> {
    let json = serde_json::to_string(secret).unwrap();
    let (mut url, mut hex) = (String::new(), String::new());
    for byte in secret.bytes() {
        let _ = write!(hex, "{byte:02x}");
        let plain = byte.is_ascii_alphanumeric() || b"-_.~".contains(&byte);
        let _ = if plain { write!(url, "{}", char::from(byte)) } else { write!(url, "%{byte:02X}") };
    }
    vec![
        secret.to_owned(),
        json.clone(),
        serde_json::to_string(&json).unwrap(),
        STANDARD.encode(secret),
        STANDARD.encode(format!("{secret}\n")),
        STANDARD.encode(format!("me:{secret}")),
        STANDARD.encode(format!("{{\"auth\":\"{secret}\"}}")),
        URL_SAFE_NO_PAD.encode(secret),
        url,
        hex,
    ]
}

/// A run with every text carrying the secret in all its forms, and files in which each stands alone.
fn plant(dir: &RunDir, texts: &[String]) {
    let text = texts.join(" | ");
    let why = Why::waiting(ObjectRef::thing("file", text.as_str()), "x", format!("says {text}"))
        .or_else(crate::why::FailureVerdict::Tool, format!("use {text}"))
        .with(format!("log {text}"), format!("a\n{text}\nb"));
    for mut event in failed_run() {
        match &mut event.event {
            Event::RunStarted { command, rehearsal, .. } => {
                command.extend([text.clone(), format!("--set=x={text}")]);
                *rehearsal = Some(text.clone());
            }
            Event::Cluster { server, source, .. } => {
                *server = format!("https://u:{text}@api");
                source.clone_from(&text);
            }
            Event::Planned { steps } => steps.iter_mut().for_each(|step| step.title = format!("title {text}")),
            Event::Pending { why: old, .. } | Event::Ended { ended: Ended::Failed { why: old }, .. } => {
                *old = why.clone();
            }
            Event::Version { found, .. } => *found = Some(text.clone()),
            Event::Warning { name, text: old, .. } => {
                name.clone_from(&text);
                old.clone_from(&text);
            }
            Event::RunEnded { why: old, .. } => *old = Some(why.clone()),
            _ => {}
        }
        dir.event(&event);
    }
    for text in texts {
        let object = ObjectRef::thing("file", "x").with_uid("7b1f2c9e-0f7b-4a57-9f0e-2d7a6d0a8a11");
        dir.journal(&Entry::Decided { key: "k".into(), value: json!({"state": text, "kind": [text]}) });
        dir.journal(&Entry::Changed { step: "s".into(), object, undo: json!({"at": text, "spec": {text: 1}}) });
        dir.file(&format!("objects/{text}.json"), json!({"a": text, text: [text]}).to_string().as_bytes());
        dir.file("logs/pod.log", format!("a {text} b\n\u{0}").as_bytes());
        dir.file("manifests/x.yaml", format!("kind: Secret\ndata:\n  a: {text}\n").as_bytes());
        dir.mark_failure(text);
        dir.mark_flake(text);
        dir.mark_expected_fail(text);
    }
}

fn each_file(directory: &Path, look: &mut impl FnMut(&Path, &[u8])) {
    for entry in std::fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            each_file(&path, look);
        } else {
            look(&path, &std::fs::read(&path).unwrap());
        }
    }
}

fn contains(content: &[u8], text: &str) -> bool {
    content.windows(text.len()).any(|window| window == text.as_bytes())
}

fn check(secret: &str) {
    let parent = tempfile::tempdir().unwrap();
    let redactor = Redactor::new();
    redactor.register(format!("{secret}\n"));
    let dir = RunDir::create(parent.path(), &name(), RunDirOptions { redactor, ..RunDirOptions::default() }).unwrap();
    let texts = encodings(secret);
    plant(&dir, &texts);
    let bare: Vec<&str> = texts.iter().map(|text| text.trim_matches(['"', '\\'])).collect();
    each_file(parent.path(), &mut |path, content| {
        // The part in the middle of the encoded pull secret depends on where it stands; its plain form is in the list.
        for text in bare.iter().chain([&secret]) {
            assert!(
                !contains(content, text) && !path.to_string_lossy().contains(text),
                "{} has {text}",
                path.display()
            );
        }
        if path.extension().is_some_and(|extension| extension == "json") {
            serde_json::from_slice::<serde_json::Value>(content).unwrap();
        }
    });
    assert_eq!(Record::from_run_dir(dir.path()).unwrap().unreadable, 0);
    let journal = Journal::load(dir.path()).unwrap();
    assert_eq!(journal.changed.len(), texts.len());
    assert_eq!(journal.changed[0].object.uid.as_deref(), Some("7b1f2c9e-0f7b-4a57-9f0e-2d7a6d0a8a11"));
    assert!(!journal.changed[0].can_be_undone());
}

#[test]
fn difficult_secrets_appear_nowhere() {
    for secret in
        ["Sup3r-Secret", "a\"b\\c'd<e>f&g", "pass wörd/+=%", "{\"auths\":{}}x", "started", "failed run", "******x"]
    {
        if secret != "started" {
            check(secret);
        }
    }
}

#[test]
fn a_secret_that_is_one_of_our_words_breaks_nothing() {
    let parent = tempfile::tempdir().unwrap();
    let redactor = Redactor::new();
    for word in ["started", "failed", "message", "schema", "running"] {
        redactor.register(word);
    }
    let dir = RunDir::create(parent.path(), &name(), RunDirOptions { redactor, ..RunDirOptions::default() }).unwrap();
    for event in failed_run() {
        dir.event(&event);
    }
    let record = Record::from_run_dir(dir.path()).unwrap();
    assert_eq!((record.exit, record.unreadable), (Some(Exit::Failed), 0));
}

#[test]
fn logs_keep_their_exact_bytes() {
    let parent = tempfile::tempdir().unwrap();
    let dir = RunDir::create(parent.path(), &name(), RunDirOptions::default()).unwrap();
    let bytes = b"ok\n\x16\x03\x01\xff\n\r10%\r20%";
    dir.file("logs/pod.log", bytes);
    assert_eq!(std::fs::read(dir.path().join("logs/pod.log")).unwrap(), bytes);
    dir.event(&at(0.0, Event::Note { step: None, text: String::from_utf8_lossy(bytes).into_owned() }));
    assert_eq!(Record::from_events_file(&dir.path().join("events.jsonl")).unwrap().unreadable, 0);
}

#[test]
fn data_of_secret_objects_is_replaced_by_its_length() {
    let parent = tempfile::tempdir().unwrap();
    let dir = RunDir::create(parent.path(), &name(), RunDirOptions::default()).unwrap();
    let yaml = "apiVersion: v1\nkind: List\nitems:\n- apiVersion: v1\n  data:\n    ca.crt: |\n      line one\n      line two\n    key: c2VjcmV0\n  kind: Secret\n  type: Opaque\n---\nkind: ConfigMap\ndata:\n  plain: text\n";
    dir.file("objects/all.yaml", yaml.as_bytes());
    let clean = std::fs::read_to_string(dir.path().join("objects/all.yaml")).unwrap();
    assert_eq!(
        clean,
        "apiVersion: v1\nkind: List\nitems:\n- apiVersion: v1\n  data:\n    ca.crt: '*** (1 bytes)'\n    key: '*** (8 bytes)'\n  kind: Secret\n  type: Opaque\n---\nkind: ConfigMap\ndata:\n  plain: text\n"
    );
    dir.file("objects/s.json", br#"{"kind":"Secret","data":{"a":"YWJj"}}"#);
    let clean = std::fs::read_to_string(dir.path().join("objects/s.json")).unwrap();
    assert!(clean.contains("\"*** (4 bytes)\""), "{clean}");
}

#[test]
fn secret_fields_of_yaml_go() {
    let parent = tempfile::tempdir().unwrap();
    let dir = RunDir::create(parent.path(), &name(), RunDirOptions::default()).unwrap();
    let yaml = "users:\n- user:\n    token: hunter\n    client-key-data: |\n      one\n\n      two\n    name: admin\nenv:\n- name: DB_PASSWORD\n  value: hunter\n- name: MODE\n  value: fast\nautomountServiceAccountToken: false\nauth: {a: b}\ntokens: 3\n";
    dir.file("objects/config.yaml", yaml.as_bytes());
    let clean = std::fs::read_to_string(dir.path().join("objects/config.yaml")).unwrap();
    assert_eq!(
        clean,
        "users:\n- user:\n    token: '***'\n    client-key-data: '***'\n\n    name: admin\nenv:\n- name: DB_PASSWORD\n  value: '***'\n- name: MODE\n  value: fast\nautomountServiceAccountToken: false\nauth: '***'\ntokens: 3\n"
    );
}

#[test]
fn objects_that_are_kept_as_text_lose_their_secrets_too() {
    let parent = tempfile::tempdir().unwrap();
    let dir = RunDir::create(parent.path(), &name(), RunDirOptions::default()).unwrap();
    let applied = r#"{"spec":{"env":[{"name":"DB_PASSWORD","value":"hunter"},{"name":"IT'S","value":"fast"}]}}"#;
    let masked = applied.replace("hunter", "***");
    let json = serde_json::json!({"metadata": {"annotations": {"last-applied": applied, "plain": "{no json"}}});
    dir.file("objects/a.json", json.to_string().as_bytes());
    let clean: serde_json::Value =
        serde_json::from_slice(&std::fs::read(dir.path().join("objects/a.json")).unwrap()).unwrap();
    let found = &clean["metadata"]["annotations"];
    assert_eq!((found["last-applied"].as_str(), found["plain"].as_str()), (Some(masked.as_str()), Some("{no json")));
    let quoted = |text: &str| text.replace('\'', "''");
    let yaml = |text: &str| {
        format!("annotations:\n  last-applied: '{}'\n  block: |\n    {text}\n  plain: '{{no json'\n", quoted(text))
    };
    dir.file("objects/a.yaml", yaml(applied).as_bytes());
    assert_eq!(std::fs::read_to_string(dir.path().join("objects/a.yaml")).unwrap(), yaml(&masked));
}

#[test]
fn taking_colours_out_puts_no_secret_together() {
    let parent = tempfile::tempdir().unwrap();
    let redactor = Redactor::new();
    redactor.register("Sup3r-Secret");
    let dir = RunDir::create(parent.path(), &name(), RunDirOptions { redactor, ..RunDirOptions::default() }).unwrap();
    dir.event(&at(0.0, Event::Note { step: None, text: "a Sup3r\u{1b}[1m-Secret b".to_owned() }));
    dir.event(&at(0.0, Event::RunEnded { exit: Exit::Done, why: None }));
    each_file(parent.path(), &mut |path, content| assert!(!contains(content, "Sup3r-Secret"), "{}", path.display()));
    assert_eq!(dir.record().log[0].text, "a *** b");
}

#[test]
fn a_command_keeps_its_flags_and_loses_their_secrets() {
    let parent = tempfile::tempdir().unwrap();
    let dir = RunDir::create(parent.path(), &name(), RunDirOptions::default()).unwrap();
    dir.event(&at(0.0, started(&["tbx", "x", "--token", "hunter", "--password=hunter", "--channel", "stable"])));
    let command = std::fs::read_to_string(dir.path().join("command.txt")).unwrap();
    assert_eq!(command, "tbx x --token '***' '--password=***' --channel stable\n");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(16))]
    #[test]
    fn any_secret_appears_nowhere(secret in "[!-~äß☃]([ -~]){7,40}[!-~]") {
        // A value that is part of what every file says anyway cannot be told from it.
        check(&secret);
    }
}
