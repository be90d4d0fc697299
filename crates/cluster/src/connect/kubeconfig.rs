//! Which kubeconfig, which context.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use kube::config::{
    AuthInfo, Cluster, ExecAuthCluster, Kubeconfig, KubeconfigError, NamedAuthInfo, NamedCluster, NamedContext,
};
use toolbox_engine::{ObjectRef, Why};

use super::ConnectOptions;
use super::cause::ConnectCause;

/// Everything the configuration says about the cluster to be used.
pub(super) struct Chosen {
    pub(super) cluster: Cluster,
    pub(super) user: AuthInfo,
    pub(super) user_name: Option<String>,
    pub(super) context: Option<String>,
    pub(super) namespace: String,
    /// In words.
    pub(super) source: String,
    /// What causes name: the file, the variable.
    pub(super) object: ObjectRef,
    pub(super) notes: Vec<String>,
}

/// Where pods find their account.
const SERVICE_ACCOUNT: &str = "/var/run/secrets/kubernetes.io/serviceaccount";

/// Decides on the source and reads it. A source that is named is the only one: trouble with it is an error, and never
/// a reason to try the next.
pub(super) fn choose(options: &ConnectOptions) -> Result<Chosen, Why> {
    let environment = |key: &str| options.environment.get(key).filter(|value| !value.is_empty());
    if options.in_cluster {
        return in_cluster(options);
    }
    if let Some(path) = &options.kubeconfig {
        let object = ObjectRef::thing("file", path.display().to_string());
        let source = format!("--kubeconfig {}", path.display());
        return read(std::slice::from_ref(path), source, object, options);
    }
    if let Some(value) = environment("KUBECONFIG") {
        let files: Vec<PathBuf> = std::env::split_paths(value).filter(|path| !path.as_os_str().is_empty()).collect();
        let object = ObjectRef::thing("variable", "KUBECONFIG");
        return read(&files, format!("KUBECONFIG={value}"), object, options);
    }
    let home = environment("HOME").map(|home| Path::new(home).join(".kube/config"));
    if let Some(file) = home.as_ref().filter(|file| file.exists()) {
        let object = ObjectRef::thing("file", file.display().to_string());
        return read(std::slice::from_ref(file), file.display().to_string(), object, options);
    }
    if environment("KUBERNETES_SERVICE_HOST").is_some() {
        return in_cluster(options);
    }
    let mut looked_at = vec!["--kubeconfig".to_owned(), "KUBECONFIG".to_owned()];
    looked_at.extend(home.map(|file| file.display().to_string()));
    let cause = ConnectCause::Nothing { looked_at };
    Err(Why::new(ObjectRef::thing("kubeconfig", "any"), &cause))
}

fn read(files: &[PathBuf], source: String, object: ObjectRef, options: &ConnectOptions) -> Result<Chosen, Why> {
    let mut notes = Vec::new();
    let mut merged: Option<Kubeconfig> = None;
    for file in files {
        let at = || ObjectRef::thing("file", file.display().to_string());
        // As kubectl does it: one of several may be missing, but what is there must be good.
        let missing = std::fs::metadata(file).is_err_and(|error| error.kind() == ErrorKind::NotFound);
        if missing {
            notes.push(format!("{} does not exist and is left out", file.display()));
            continue;
        }
        let next = Kubeconfig::read_from(file).map_err(|error| Why::new(at(), &problem(&error)))?;
        merged = Some(match merged {
            None => next,
            Some(merged) => merged.merge(next).map_err(|error| Why::new(at(), &problem(&error)))?,
        });
    }
    let Some(config) = merged else {
        let files = files.iter().map(|file| file.display().to_string());
        let cause = ConnectCause::NoneThere { files: files.collect() };
        return Err(Why::new(object, &cause));
    };
    select(config, source, object, notes, options)
}

/// What is wrong with a file. The parser's own text quotes lines of the file, which may hold a token: only where and
/// what kind of trouble is kept.
fn problem(error: &KubeconfigError) -> ConnectCause {
    match error {
        KubeconfigError::ReadConfig(error, _) => ConnectCause::Unreadable { problem: error.to_string() },
        KubeconfigError::Parse(error) => ConnectCause::Malformed {
            problem: match error.location() {
                Some(at) => format!("it is not valid in line {}, column {}", at.line(), at.column()),
                None => "it is not valid YAML, or its fields have other types".to_owned(),
            },
        },
        other => ConnectCause::Malformed { problem: other.to_string() },
    }
}

fn select(
    config: Kubeconfig,
    source: String,
    object: ObjectRef,
    notes: Vec<String>,
    options: &ConnectOptions,
) -> Result<Chosen, Why> {
    let known = || -> Vec<String> { config.contexts.iter().map(|c| c.name.clone()).collect() };
    let asked = options.context.clone();
    let current = config.current_context.clone().filter(|name| !name.is_empty());
    let Some(name) = asked.clone().or(current) else {
        return Err(Why::new(object, &ConnectCause::NoContext { known: known() }));
    };
    let find = |context: &&NamedContext| context.name == name;
    let Some(context) = config.contexts.iter().find(find).and_then(|c| c.context.clone()) else {
        let cause = ConnectCause::UnknownContext { known: known() };
        return Err(Why::new(ObjectRef::thing("context", name), &cause).with("configuration", source));
    };
    let dangling = |what, name: &str| {
        let cause = ConnectCause::Dangling { what, name: name.to_owned() };
        Why::new(object.clone(), &cause)
    };
    let find = |cluster: &&NamedCluster| cluster.name == context.cluster;
    let cluster = config.clusters.iter().find(find).and_then(|c| c.cluster.clone());
    let cluster = cluster.ok_or_else(|| dangling("cluster", &context.cluster))?;
    let user_name = context.user.clone().filter(|user| !user.is_empty());
    let mut user = match &user_name {
        None => AuthInfo::default(),
        Some(name) => {
            let find = |user: &&NamedAuthInfo| user.name == *name;
            let user = config.auth_infos.iter().find(find);
            let user = user.ok_or_else(|| dangling("user", name))?;
            user.auth_info.clone().unwrap_or_default()
        }
    };
    if let Some(exec) = user.exec.as_mut().filter(|exec| exec.provide_cluster_info) {
        let cluster = ExecAuthCluster::try_from(&cluster);
        exec.cluster = Some(cluster.map_err(|error| Why::new(object.clone(), &problem(&error)))?);
    }
    Ok(Chosen {
        cluster,
        user,
        user_name,
        context: Some(name),
        namespace: context.namespace.filter(|n| !n.is_empty()).unwrap_or_else(|| "default".to_owned()),
        source,
        object,
        notes,
    })
}

/// The account of the pod that we run in.
fn in_cluster(options: &ConnectOptions) -> Result<Chosen, Why> {
    let object = ObjectRef::thing("service account", SERVICE_ACCOUNT);
    let environment = |key: &str| options.environment.get(key).filter(|value| !value.is_empty());
    let fail = |problem: String| Why::new(object.clone(), &ConnectCause::NotInCluster { problem });
    let host =
        environment("KUBERNETES_SERVICE_HOST").ok_or_else(|| fail("KUBERNETES_SERVICE_HOST is not set".to_owned()))?;
    let port = environment("KUBERNETES_SERVICE_PORT").map_or("443", String::as_str);
    let host = if host.contains(':') { format!("[{host}]") } else { host.clone() };
    let file = |name: &str| format!("{SERVICE_ACCOUNT}/{name}");
    for name in ["token", "ca.crt"] {
        std::fs::metadata(file(name)).map_err(|error| fail(format!("{}: {error}", file(name))))?;
    }
    let cluster = Cluster {
        server: Some(format!("https://{host}:{port}")),
        certificate_authority: Some(file("ca.crt")),
        ..Cluster::default()
    };
    let user = AuthInfo { token_file: Some(file("token")), ..AuthInfo::default() };
    let namespace = std::fs::read_to_string(file("namespace")).unwrap_or_default();
    Ok(Chosen {
        cluster,
        user,
        user_name: None,
        context: None,
        namespace: Some(namespace.trim().to_owned())
            .filter(|name| !name.is_empty())
            .unwrap_or_else(|| "default".to_owned()),
        source: "the pod's service account".to_owned(),
        object,
        notes: Vec::new(),
    })
}
