//! Where a run's directory goes.

use std::path::{Path, PathBuf};

use jiff::Timestamp;
use toolbox_engine::{Cause, Exit, FailureVerdict, ObjectRef, Why};

use super::verb::VerbName;
use crate::EnvMap;
use crate::config::plain;
use crate::settings::Settings;

/// Causes about the artifact directory.
#[derive(Debug)]
enum ArtifactCause {
    UnsetInCi(&'static str),
    Empty(String),
    CannotCreate(String),
}

impl Cause for ArtifactCause {
    fn code(&self) -> &'static str {
        match self {
            ArtifactCause::UnsetInCi(_) => "artifact-dir-unset",
            ArtifactCause::Empty(_) => "artifact-dir-empty",
            ArtifactCause::CannotCreate(_) => "artifact-dir-not-writable",
        }
    }
    fn text(&self) -> String {
        match self {
            ArtifactCause::UnsetInCi(variable) => {
                format!("is not set, although this is a CI ({variable} is set): nothing would be kept")
            }
            ArtifactCause::Empty(origin) => format!("{origin} is empty"),
            ArtifactCause::CannotCreate(error) => format!("cannot be created: {error}"),
        }
    }
    fn next(&self) -> String {
        "set ARTIFACT_DIR or --artifact-dir to a directory that can be written; the cluster was not touched".to_owned()
    }
    fn verdict(&self) -> FailureVerdict {
        FailureVerdict::Configuration
    }
    fn exit(&self) -> Exit {
        Exit::Configuration
    }
}

fn wrong(name: &str, cause: &ArtifactCause) -> Why {
    Why::new(ObjectRef::thing("artifact-dir", name), cause)
}

/// The directory that run directories are made in. Made now, so that a wrong one is found before anything is touched.
pub(crate) fn choose(settings: &Settings, env: &EnvMap, name: &VerbName, now: Timestamp) -> Result<PathBuf, Why> {
    if let Some(setting) = settings.setting("artifact-dir") {
        let text = setting.values.first().map_or("", String::as_str);
        if text.trim().is_empty() {
            let origin = setting.origin.to_string();
            return Err(wrong("\"\"", &ArtifactCause::Empty(origin)));
        }
        let path = std::path::absolute(text).unwrap_or_else(|_| PathBuf::from(text));
        create(&path)?;
        return Ok(path);
    }
    if let Some((variable, _)) = env.first(&["OPENSHIFT_CI", "PROW_JOB_ID"]) {
        let variable = if variable == "OPENSHIFT_CI" { "OPENSHIFT_CI" } else { "PROW_JOB_ID" };
        return Err(wrong("ARTIFACT_DIR", &ArtifactCause::UnsetInCi(variable)));
    }
    fresh(env, name, now)
}

fn create(path: &Path) -> Result<(), Why> {
    std::fs::create_dir_all(path)
        .map_err(|error| wrong(&path.display().to_string(), &ArtifactCause::CannotCreate(plain(&error))))
}

/// A new directory `tbx-<verb>-<stamp>` in the temporary directory.
fn fresh(env: &EnvMap, name: &VerbName, now: Timestamp) -> Result<PathBuf, Why> {
    let parent = PathBuf::from(env.get("TMPDIR").unwrap_or("/tmp"));
    create(&parent)?;
    let verb = format!("{}-{}", name.group, name.command).replace('_', "-");
    let stamp = now.strftime("%Y%m%d-%H%M%S");
    for attempt in 0..1000 {
        let suffix = if attempt == 0 { String::new() } else { format!("-{attempt}") };
        let path = parent.join(format!("tbx-{verb}-{stamp}{suffix}"));
        match std::fs::create_dir(&path) {
            Ok(()) => return Ok(path),
            Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {}
            Err(error) => {
                return Err(wrong(&path.display().to_string(), &ArtifactCause::CannotCreate(plain(&error))));
            }
        }
    }
    let cause = ArtifactCause::CannotCreate("too many of this name are there".to_owned());
    Err(wrong(&parent.display().to_string(), &cause))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings::{Origin, Setting};

    fn settings(dir: &str) -> Settings {
        Settings::new([Setting {
            key: "artifact-dir".into(),
            values: vec![dir.into()],
            origin: Origin::Env("ARTIFACT_DIR".into()),
            secret: false,
        }])
    }

    fn name() -> VerbName {
        VerbName::new("cluster", "set_scale")
    }

    #[test]
    fn a_named_directory_is_created_and_a_fresh_one_is_never_shared() {
        let temporary = tempfile::tempdir().unwrap();
        let wanted = temporary.path().join("a/b");
        let env = EnvMap::new([("TMPDIR", temporary.path().display().to_string())]);
        let now: Timestamp = "2026-01-02T03:04:05Z".parse().unwrap();
        let found = choose(&settings(&wanted.display().to_string()), &env, &name(), now).unwrap();
        assert_eq!(found, wanted);
        assert!(wanted.is_dir());
        let names: Vec<String> = (0..2)
            .map(|_| choose(&Settings::default(), &env, &name(), now).unwrap())
            .map(|path| path.file_name().unwrap().to_string_lossy().into_owned())
            .collect();
        assert_eq!(names, ["tbx-cluster-set-scale-20260102-030405", "tbx-cluster-set-scale-20260102-030405-1"]);
    }

    #[test]
    fn unset_in_a_ci_empty_or_unusable_is_refused() {
        let now = Timestamp::UNIX_EPOCH;
        let ci = EnvMap::new([("OPENSHIFT_CI", "true")]);
        let why = choose(&Settings::default(), &ci, &name(), now).unwrap_err();
        assert_eq!(why.exit, Exit::Configuration);
        let why = choose(&settings(" "), &EnvMap::default(), &name(), now).unwrap_err();
        assert_eq!(why.to_string(), "artifact-dir/\"\": $ARTIFACT_DIR is empty");
        let file = tempfile::NamedTempFile::new().unwrap();
        let below = file.path().join("x").display().to_string();
        let why = choose(&settings(&below), &EnvMap::default(), &name(), now).unwrap_err();
        assert!(why.cause.starts_with("cannot be created: not a directory"), "{why}");
    }
}
