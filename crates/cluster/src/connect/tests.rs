//! Finding the configuration: which source, which context, what is said when it cannot be used.

use std::collections::BTreeMap;
use std::path::Path;

use serde_json::json;
use toolbox_engine::{Clock, Exit};

use super::*;

fn write(dir: &Path, name: &str, content: &str) -> String {
    let file = dir.join(name);
    std::fs::create_dir_all(file.parent().unwrap()).unwrap();
    std::fs::write(&file, content).unwrap();
    file.to_str().unwrap().to_owned()
}

/// A kubeconfig with one context of each name.
fn config(contexts: &[&str], user: &serde_json::Value) -> String {
    let named = |what: &str, value: &serde_json::Value| -> Vec<serde_json::Value> {
        let named = contexts.iter().map(|name| json!({"name": name, what: value}));
        named.collect()
    };
    let clusters = contexts
        .iter()
        .map(|name| json!({"name": name, "cluster": {"server": format!("https://{name}.example.test:6443")}}));
    let links = contexts.iter().map(|name| json!({"name": name, "context": {"cluster": name, "user": name}}));
    json!({
        "apiVersion": "v1", "kind": "Config", "current-context": contexts[0],
        "clusters": clusters.collect::<Vec<_>>(),
        "contexts": links.collect::<Vec<_>>(),
        "users": named("user", user),
    })
    .to_string()
}

fn options(variables: &[(&str, &str)]) -> ConnectOptions {
    ConnectOptions {
        environment: variables
            .iter()
            .map(|(key, value)| ((*key).to_owned(), (*value).to_owned()))
            .collect::<BTreeMap<_, _>>(),
        ..ConnectOptions::default()
    }
}

fn info(options: &ConnectOptions) -> Result<ClusterInfo, Why> {
    make_client(options).map(|(_, info)| info)
}

#[tokio::test]
async fn a_list_is_merged_and_missing_files_are_left_out_with_a_note() {
    let dir = tempfile::tempdir().unwrap();
    let one = write(dir.path(), "one", &config(&["one"], &json!({"token": "t"})));
    let two = write(dir.path(), "two", &config(&["two"], &json!({"token": "t"})));
    let list = format!("/nowhere/kube.local:{one}::{two}");
    let mut options = options(&[("KUBECONFIG", &list)]);
    let found = info(&options).unwrap();
    assert_eq!(found.server, "https://one.example.test:6443");
    assert_eq!(found.source, format!("KUBECONFIG={list}"));
    assert_eq!(found.notes, ["/nowhere/kube.local does not exist and is left out"]);
    options.context = Some("two".to_owned());
    assert_eq!(info(&options).unwrap().context.as_deref(), Some("two"));
}

#[tokio::test]
async fn a_kubeconfig_that_is_named_is_the_only_source() {
    let dir = tempfile::tempdir().unwrap();
    write(dir.path(), ".kube/config", &config(&["home"], &json!({})));
    let home = dir.path().to_str().unwrap();
    let pod = [("HOME", home), ("KUBERNETES_SERVICE_HOST", "10.0.0.1")];
    let missing = [&pod[..], &[("KUBECONFIG", "/nowhere/kubeconfig")]].concat();
    let why = info(&options(&missing)).unwrap_err();
    assert_eq!(why.exit, Exit::Configuration);
    assert_eq!(why.to_string(), "variable/KUBECONFIG: /nowhere/kubeconfig does not exist");
    let cut = write(dir.path(), "cut", "apiVersion: v1\nusers: [{name: a, user: {token: s3cret");
    let why = info(&options(&[&pod[..], &[("KUBECONFIG", &cut)]].concat())).unwrap_err();
    assert_eq!(why.code, "kubeconfig-malformed");
    assert!(!format!("{why:?}").contains("s3cret"));
    // With no variable the home file is used, and not the pod's account.
    assert_eq!(info(&options(&pod)).unwrap().context.as_deref(), Some("home"));
}

#[tokio::test]
async fn nothing_found_says_where_it_was_looked_for() {
    let why = info(&options(&[("HOME", "/nowhere")])).unwrap_err();
    assert_eq!(why.code, "no-kubeconfig");
    assert!(why.cause.contains("/nowhere/.kube/config"), "{why}");
}

#[tokio::test]
async fn an_unknown_context_lists_the_known_ones() {
    let dir = tempfile::tempdir().unwrap();
    let file = write(dir.path(), "c", &config(&["one", "two"], &json!({})));
    let mut options = options(&[]);
    options.kubeconfig = Some(file.into());
    options.context = Some("three".to_owned());
    let why = info(&options).unwrap_err();
    assert_eq!(why.to_string(), "context/three: there is no such context; there are: one, two");
    assert_eq!(why.exit, Exit::Configuration);
}

#[cfg(unix)]
#[tokio::test]
async fn a_plugin_is_found_beside_the_kubeconfig_and_its_output_is_never_shown() {
    use std::os::unix::fs::PermissionsExt as _;
    let dir = tempfile::tempdir().unwrap();
    let script = |text: &str| {
        let file = write(dir.path(), "bin/token.sh", text);
        std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o755)).unwrap();
    };
    let exec = json!({"exec": {"apiVersion": "client.authentication.k8s.io/v1", "command": "../bin/token.sh",
        "installHint": "get it from example.test"}});
    let file = write(dir.path(), "etc/kubeconfig", &config(&["one"], &exec));
    let mut options = options(&[]);
    options.kubeconfig = Some(file.into());
    let why = info(&options).unwrap_err();
    assert_eq!(why.exit, Exit::Access);
    assert_eq!(why.next, "install the plugin: get it from example.test");
    script("#!/bin/sh\necho s3cret\necho expired login >&2\nexit 1\n");
    let why = info(&options).unwrap_err();
    assert!(why.cause.contains("expired login"), "{why}");
    assert!(!format!("{why:?}").contains("s3cret"));
    script(
        "#!/bin/sh\necho '{\"apiVersion\":\"client.authentication.k8s.io/v1\",\"kind\":\"ExecCredential\",\"status\":{\"token\":\"t\"}}'\n",
    );
    assert_eq!(info(&options).unwrap().user.as_deref(), Some("one"));
}

#[tokio::test]
async fn a_proxy_that_is_not_spoken_is_an_error_at_the_start_and_a_password_stays_hidden() {
    let dir = tempfile::tempdir().unwrap();
    let file = write(dir.path(), "c", &config(&["one"], &json!({})));
    let mut asked = options(&[("HTTPS_PROXY", "ftp://proxy.example.test")]);
    asked.kubeconfig = Some(file.into());
    let why = info(&asked).unwrap_err();
    assert_eq!(why.to_string(), "proxy/ftp://proxy.example.test: a proxy of the kind `ftp` is not supported");
    let proxy = "http://me:s3cret@proxy.example.test:3128".to_owned();
    asked.environment.insert("HTTPS_PROXY".to_owned(), proxy);
    let found = info(&asked).unwrap();
    assert_eq!(found.proxy.as_deref(), Some("http://proxy.example.test:3128"));
}

#[tokio::test]
async fn a_server_that_does_not_answer_is_named_with_the_reason() {
    let dir = tempfile::tempdir().unwrap();
    let text = config(&["one"], &json!({})).replace("https://one.example.test:6443", "http://127.0.0.1:9");
    let mut asked = options(&[]);
    asked.kubeconfig = Some(write(dir.path(), "c", &text).into());
    asked.retry_budget = Some(Duration::from_millis(300));
    let why = Cluster::connect(&asked, Clock::real()).await.unwrap_err();
    assert_eq!(why.exit, Exit::Access);
    assert!(why.to_string().starts_with("server/http://127.0.0.1:9: the API server is not reachable since"), "{why}");
    assert!(why.cause.contains("Connection refused"), "{why}");
}

#[test]
fn authorities_may_be_a_file_or_data_and_say_what_is_wrong() {
    let chosen = |cluster| Chosen {
        cluster,
        user: kube::config::AuthInfo::default(),
        user_name: None,
        context: None,
        namespace: String::new(),
        source: String::new(),
        object: ObjectRef::thing("file", "x"),
        notes: Vec::new(),
    };
    let cluster =
        kube::config::Cluster { certificate_authority: Some("/nowhere/ca.pem".to_owned()), ..Default::default() };
    assert!(authorities(&chosen(cluster)).unwrap_err().starts_with("/nowhere/ca.pem: "));
    let cluster =
        kube::config::Cluster { certificate_authority_data: Some("bm90aGluZw==".to_owned()), ..Default::default() };
    assert_eq!(authorities(&chosen(cluster)).unwrap_err(), "it has no certificate");
}

#[test]
fn only_absence_says_that_it_is_no_openshift() {
    let object = || kinds::CLUSTER_VERSION.object(None, "version");
    let mut notes = Vec::new();
    assert_eq!(believed(Err(ClusterError::NotServed { object: object() }), &mut notes), Ok(None));
    assert_eq!(believed(Ok(Some("4.11.27".to_owned())), &mut notes), Ok(Some("4.11.27".to_owned())));
    assert!(notes.is_empty());
    let forbidden = ClusterError::Forbidden {
        object: object(),
        verb: "get",
        user: Some("jane".to_owned()),
        message: String::new(),
    };
    assert_eq!(believed(Err(forbidden), &mut notes), Ok(None));
    assert!(notes[0].contains("`jane` may not get it"), "{notes:?}");
    let broken = ClusterError::Other { object: object(), code: 500, reason: String::new(), message: "etcd".to_owned() };
    assert_eq!(believed(Err(broken.clone()), &mut notes), Err(broken));
    assert_eq!(notes.len(), 1);
}
