//! From options and environment to a connection, and what is said about it.

use std::io::IsTerminal;
use std::path::{Path, PathBuf};

use toolbox_cluster::{ClusterInfo, ConnectOptions};
use toolbox_engine::Redactor;

use super::args::GlobalArgs;
use crate::EnvMap;
use crate::config;
use crate::settings::{Origin, Settings};

/// How to reach the cluster.
pub(crate) fn options(globals: &GlobalArgs, settings: &Settings, env: &EnvMap) -> ConnectOptions {
    // `$KUBECONFIG` is a list of files, and only one that is named by us is a single file.
    let from_list = settings.origin("kubeconfig") == Some(&Origin::Env("KUBECONFIG".to_owned()));
    ConnectOptions {
        kubeconfig: globals.kubeconfig.as_ref().filter(|_| !from_list).map(PathBuf::from),
        context: globals.context.clone(),
        impersonate: globals.act_as.clone(),
        impersonate_groups: globals.act_as_group.clone(),
        request_timeout: globals.request_timeout,
        retry_budget: None,
        in_cluster: globals.in_cluster,
        interactive: std::io::stdin().is_terminal() && std::io::stderr().is_terminal(),
        environment: env.to_map(),
    }
}

/// Makes every secret of the kubeconfig unprintable, before anything is read with it.
pub(crate) fn hide_credentials(options: &ConnectOptions, redactor: &Redactor) {
    let env = |name: &str| options.environment.get(name).filter(|value| !value.is_empty());
    let mut files: Vec<PathBuf> = options.kubeconfig.iter().cloned().collect();
    if files.is_empty() {
        match (env("KUBECONFIG"), env("HOME")) {
            (Some(list), _) => files.extend(std::env::split_paths(list)),
            (None, Some(home)) => files.push(PathBuf::from(home).join(".kube/config")),
            (None, None) => {}
        }
    }
    files.push(PathBuf::from("/var/run/secrets/kubernetes.io/serviceaccount/token"));
    for file in files {
        // What cannot be read here is complained about where it is needed.
        if let Ok(content) = std::fs::read(&file) {
            for named in credential_files(&file, &content) {
                if let Ok(content) = std::fs::read(named) {
                    redactor.register(content);
                }
            }
            redactor.register(content);
        }
    }
    for name in ["HTTPS_PROXY", "https_proxy", "HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"] {
        if let Some(proxy) = env(name) {
            redactor.url(proxy);
        }
    }
}

/// The files with tokens and keys that a kubeconfig names instead of holding them.
fn credential_files(kubeconfig: &Path, content: &[u8]) -> Vec<PathBuf> {
    let beside = kubeconfig.parent().unwrap_or(Path::new("."));
    let text = String::from_utf8_lossy(content);
    let documents = config::documents(&kubeconfig.display().to_string(), &text).unwrap_or_default();
    let users = documents.iter().filter_map(|document| document["users"].as_array()).flatten();
    users
        .flat_map(|user| ["tokenFile", "client-key"].map(|key| user["user"][key].as_str()))
        .flatten()
        .map(|file| beside.join(file))
        .collect()
}

/// Which cluster it is, in one line, and what was odd on the way.
pub(crate) fn describe(info: &ClusterInfo) -> Vec<String> {
    let mut versions = format!("Kubernetes {}", info.version);
    if let Some(openshift) = &info.openshift_version {
        versions = format!("OpenShift {openshift}, {versions}");
    }
    let mut line = format!("cluster: {} ({versions})", info.server);
    if let Some(user) = &info.user {
        line = format!("{line}, user {user}");
    }
    if let Some(context) = &info.context {
        line = format!("{line}, context {context}");
    }
    line = format!("{line}, from {}", info.source);
    if let Some(proxy) = &info.proxy {
        line = format!("{line}, through proxy {proxy}");
    }
    let notes = info.notes.iter().map(|note| format!("note: {note}"));
    std::iter::once(line).chain(notes).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_kubeconfig_holds_and_what_it_names_is_hidden() {
        let dir = tempfile::tempdir().unwrap();
        let write = |name: &str, content: &str| std::fs::write(dir.path().join(name), content).unwrap();
        write("token.txt", "beside-0123456789\n");
        write("key.pem", "-----BEGIN PRIVATE KEY-----\nMIIEvQIBADANBgkqhkiG9w0BAQEFAASC\n-----END PRIVATE KEY-----\n");
        write(
            "config",
            "apiVersion: v1\nkind: Config\nclusters: []\nusers:\n- name: a\n  user:\n    token: inside-0123456789\n\
             - name: b\n  user:\n    tokenFile: token.txt\n    client-key: key.pem\n",
        );
        let options = ConnectOptions { kubeconfig: Some(dir.path().join("config")), ..ConnectOptions::default() };
        let redactor = Redactor::new();
        hide_credentials(&options, &redactor);
        let seen = "inside-0123456789 beside-0123456789 MIIEvQIBADANBgkqhkiG9w0BAQEFAASC";
        assert_eq!(redactor.text(seen), "*** *** ***");
    }

    #[test]
    fn the_line_says_server_user_context_and_source() {
        let info = ClusterInfo {
            server: "https://api.demo:6443".into(),
            version: "v1.24.17".into(),
            openshift_version: Some("4.11.27".into()),
            source: "KUBECONFIG=/k".into(),
            context: Some("demo".into()),
            user: Some("admin".into()),
            notes: vec!["/a does not exist and is left out".into()],
            ..ClusterInfo::default()
        };
        assert_eq!(
            describe(&info),
            [
                "cluster: https://api.demo:6443 (OpenShift 4.11.27, Kubernetes v1.24.17), user admin, context demo, from KUBECONFIG=/k",
                "note: /a does not exist and is left out",
            ]
        );
    }
}
