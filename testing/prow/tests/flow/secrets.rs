//! Secrets that are planted where a run meets them must be in none of its files and in nothing it says.

use std::path::{Path, PathBuf};

use serde_json::json;
use toolbox_core::EnvMap;
use toolbox_core::engine::Exit;
use toolbox_core::engine::plan::Interrupt;
use toolbox_testkit::Rehearsed;

use crate::support::{JOB, tbx_with};

const PULL: &str = "cHVsbC1zZWNyZXQtb2YtdGhlLWNsdXN0ZXI6MTIzNDU2Nzg5MA==";
const QUAY: &str = "QUAYTOKENW5XK2F3LMWPQ7RT4ZB6YHC8DJ0VSN1GE";
const TOKEN: &str = "sha256~planted0bearer1token2of3the4kubeconfig5A";
const PEM_BODY: &str = "MIIEpAIBAAKCAQEAplantedEntitlementKeyBodyLineOne0123456789abcdefgh";

fn pem() -> String {
    format!("-----BEGIN PRIVATE KEY-----\n{PEM_BODY}\nQmVlZkJlZWZCZWVmQmVlZg==\n-----END PRIVATE KEY-----\n")
}

fn base64(text: &str) -> String {
    const LETTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut out = String::new();
    for chunk in text.as_bytes().chunks(3) {
        let number = chunk.iter().enumerate().fold(0u32, |sum, (at, byte)| sum | u32::from(*byte) << (16 - 8 * at));
        for at in 0..4 {
            let letter = LETTERS[(number >> (18 - 6 * at)) as usize & 63];
            out.push(if at <= chunk.len() { char::from(letter) } else { '=' });
        }
    }
    out
}

fn files(directory: &Path, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(directory).unwrap().flatten() {
        if entry.path().is_dir() { files(&entry.path(), found) } else { found.push(entry.path()) }
    }
}

/// Every form in which a planted secret could have got out.
fn needles() -> Vec<(String, String)> {
    let docker = format!(r#"{{"auths":{{"quay.io":{{"auth":"{PULL}"}}}}}}"#);
    let mut all = Vec::new();
    for secret in [PULL, QUAY, TOKEN, PEM_BODY] {
        all.push((secret.to_owned(), secret.to_owned()));
        all.push((secret.to_owned(), base64(secret).trim_end_matches('=').to_owned()));
    }
    for (name, whole) in [("pull secret", docker), ("PEM", pem())] {
        all.push((name.to_owned(), base64(&whole)[..40].to_owned()));
        all.push((name.to_owned(), base64(&whole)[60..100].to_owned()));
        all.push((name.to_owned(), serde_json::to_string(&whole).unwrap().trim_matches('"').to_owned()));
    }
    all
}

async fn planted(faults: &[&str]) -> Rehearsed {
    let rehearsed = Rehearsed::new("default", faults).await;
    let docker = format!(r#"{{"auths":{{"quay.io":{{"auth":"{PULL}"}}}}}}"#);
    for namespace in ["nvidia-gpu-operator", "openshift-nfd"] {
        rehearsed
            .somebody_creates(json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}}))
            .await;
        rehearsed
            .somebody_creates(json!({"apiVersion": "v1", "kind": "Secret", "type": "kubernetes.io/dockerconfigjson",
                "metadata": {"name": "pull", "namespace": namespace}, "data": {".dockerconfigjson": base64(&docker)}}))
            .await;
        rehearsed
            .somebody_creates(json!({"apiVersion": "v1", "kind": "ConfigMap",
                "metadata": {"name": "entitlement", "namespace": namespace, "annotations": {"note": pem()}},
                "data": {"entitlement.pem": pem(), "config.json": docker, "env": format!("QUAY_TOKEN={QUAY}\n")}}))
            .await;
        // A pod that prints everything it knows, beside the operator's.
        rehearsed
            .somebody_creates(json!({"apiVersion": "v1", "kind": "Pod",
                "metadata": {"name": "chatty", "namespace": namespace, "labels": {"app": "gpu-operator"}},
                "spec": {"containers": [{"name": "main", "image": "registry.example/chatty:1",
                    "env": [{"name": "QUAY_TOKEN", "value": QUAY}, {"name": "API_TOKEN", "value": TOKEN}],
                    "args": ["--token", TOKEN]}]}}))
            .await;
        for line in [
            format!("Authorization: Bearer {TOKEN}"),
            format!("pulling with {docker}"),
            format!("password={QUAY}"),
            format!("login https://robot:{QUAY}@quay.io/v2"),
            pem(),
            format!("{{\"key\":{}}}", serde_json::to_string(&pem()).unwrap()),
            format!("kubeconfig: {{\"token\":\"{TOKEN}\"}}"),
            format!(".dockerconfigjson: {}", base64(&docker)),
        ] {
            rehearsed.world().api().logs().append(namespace, "chatty", "main", &line);
        }
    }
    rehearsed
}

#[tokio::test(start_paused = true)]
async fn planted_secrets_are_in_no_file_and_no_output() {
    for (faults, exit) in [(&[][..], Exit::Done), (&["driver-crash-loop"][..], Exit::Failed)] {
        let rehearsed = planted(faults).await;
        let dir = tempfile::tempdir().unwrap();
        let spec =
            json!({"type": "presubmit", "job": "pull-ci", "refs": {"org": "o", "repo": "r", "pulls": [{"number": 1}]}});
        let env = EnvMap::new([
            ("JOB_SPEC", spec.to_string()),
            ("QUAY_TOKEN", QUAY.to_owned()),
            ("PULL_SECRET", format!(r#"{{"auths":{{"quay.io":{{"auth":"{PULL}"}}}}}}"#)),
            ("ENTITLEMENT_PEM", pem()),
        ]);
        let done = tbx_with(&rehearsed, dir.path(), &JOB, Interrupt::default(), &env).await;
        assert_eq!(done.exit, exit, "{}", done.said);
        let mut all = Vec::new();
        files(dir.path(), &mut all);
        assert!(all.len() > 20, "{all:?}");
        let log = all.iter().any(|path| std::fs::read_to_string(path).is_ok_and(|text| text.contains("pulling with")));
        assert!(log, "the chatty pod's log is among the files, or this test shows nothing");
        let mut leaks = Vec::new();
        for (secret, needle) in needles() {
            for path in &all {
                let bytes = std::fs::read(path).unwrap();
                if bytes.windows(needle.len()).any(|window| window == needle.as_bytes()) {
                    let text = String::from_utf8_lossy(&bytes).into_owned();
                    let at = text.find(&needle).unwrap_or(0);
                    let from = text[..at].char_indices().rev().nth(60).map_or(0, |(from, _)| from);
                    leaks.push(format!("{secret:.30} as {needle:.30} in {}: {}", path.display(), &text[from..at]));
                }
            }
            let answer = done.answer.as_ref().map(|answer| answer.text.clone()).unwrap_or_default();
            assert!(!done.said.contains(&needle) && !answer.contains(&needle), "{secret} is said: {}", done.said);
        }
        assert!(leaks.is_empty(), "{faults:?}: {leaks:#?}");
    }
}
