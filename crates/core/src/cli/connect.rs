//! From options and environment to a connection, and what is said about it.

use std::io::IsTerminal;
use std::path::PathBuf;

use toolbox_cluster::{ClusterInfo, ConnectOptions};
use toolbox_engine::Redactor;

use super::args::GlobalArgs;
use crate::EnvMap;
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
            redactor.register(content);
        }
    }
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
