//! What a CI tells about the job: from a map of variables that is passed in, each value with where it came from.

use serde_json::{Map, Value};
use toolbox_core::EnvMap;

/// A value and where it came from: `JOB_NAME`, `JOB_SPEC.job`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sourced<T> {
    /// The value.
    pub value: T,
    /// Where it came from.
    pub origin: String,
}

/// When a job runs, and for whom.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum JobType {
    /// For a pull request.
    Presubmit,
    /// For several pull requests that are to be merged together.
    Batch,
    /// After a merge.
    Postsubmit,
    /// By the clock.
    Periodic,
}

impl JobType {
    fn read(text: &str) -> Option<Self> {
        match text {
            "presubmit" => Some(JobType::Presubmit),
            "batch" => Some(JobType::Batch),
            "postsubmit" => Some(JobType::Postsubmit),
            "periodic" => Some(JobType::Periodic),
            _ => None,
        }
    }

    /// As Prow spells it.
    pub fn as_str(self) -> &'static str {
        match self {
            JobType::Presubmit => "presubmit",
            JobType::Batch => "batch",
            JobType::Postsubmit => "postsubmit",
            JobType::Periodic => "periodic",
        }
    }
}

/// A pull request under test.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pull {
    /// Its number.
    pub number: u64,
    /// The commit.
    pub sha: String,
}

/// The repository under test.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refs {
    /// The organisation.
    pub org: String,
    /// The repository.
    pub repo: String,
    /// The branch.
    pub base_ref: String,
    /// Its commit; empty for a periodic job that was given none.
    pub base_sha: String,
    /// The pull requests, in the order they are applied.
    pub pulls: Vec<Pull>,
}

/// What a CI tells about the job. Everything is optional: a laptop has none of it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CiContext {
    /// The job's name.
    pub job: Option<Sourced<String>>,
    /// The test's short name, the same in every job that runs it.
    pub test: Option<Sourced<String>>,
    /// When it runs.
    pub job_type: Option<Sourced<JobType>>,
    /// The build's number.
    pub build_id: Option<Sourced<String>>,
    /// The ProwJob.
    pub prow_job_id: Option<Sourced<String>>,
    /// The repository under test.
    pub refs: Option<Sourced<Refs>>,
    /// Where artifacts go.
    pub artifact_dir: Option<Sourced<String>>,
    /// The folder that the job's steps share; a Secret of limited size.
    pub shared_dir: Option<Sourced<String>>,
    /// The cloud account's credentials and settings.
    pub cluster_profile_dir: Option<Sourced<String>>,
    /// The lease that the job holds.
    pub leased_resource: Option<Sourced<String>>,
    /// The release under test.
    pub release_image: Option<Sourced<String>>,
    /// What was odd, one line each. Never a reason to stop.
    pub notes: Vec<String>,
}

fn variable(env: &EnvMap, names: &[&str]) -> Option<Sourced<String>> {
    env.first(names).map(|(name, value)| Sourced { value: value.to_owned(), origin: name.to_owned() })
}

impl CiContext {
    /// Reads a map of variables.
    pub fn read(env: &EnvMap) -> Self {
        let mut notes = Vec::new();
        let spec = job_spec(env, &mut notes);
        let field = |name: &str| {
            let value = spec.get(name)?;
            let text = value.as_str().map(str::to_owned).or_else(|| value.as_u64().map(|number| number.to_string()))?;
            Some(Sourced { value: text, origin: format!("JOB_SPEC.{name}") })
                .filter(|sourced| !sourced.value.is_empty())
        };
        let mut either = |name: &str, in_spec: &str| {
            let (outer, inner) = (variable(env, &[name]), field(in_spec));
            if let (Some(outer), Some(inner)) = (&outer, &inner)
                && outer.value != inner.value
            {
                notes.push(format!(
                    "{name} is `{}` and JOB_SPEC.{in_spec} is `{}`: {name} is believed",
                    outer.value, inner.value
                ));
            }
            outer.or(inner)
        };
        let job = either("JOB_NAME", "job");
        let build_id = either("BUILD_ID", "buildid");
        let prow_job_id = either("PROW_JOB_ID", "prowjobid");
        let job_type_text = either("JOB_TYPE", "type");
        let job_type = job_type_text.and_then(|text| {
            let Some(value) = JobType::read(&text.value) else {
                notes.push(format!("{} is `{}`, which is no type of job", text.origin, text.value));
                return None;
            };
            Some(Sourced { value, origin: text.origin })
        });
        let refs = refs_of(&spec, &mut notes).or_else(|| refs_of_variables(env, &mut notes));
        Self {
            job,
            test: variable(env, &["JOB_NAME_SAFE"]),
            job_type,
            build_id: build_id.or_else(|| variable(env, &["BUILD_NUMBER"])),
            prow_job_id,
            refs,
            artifact_dir: variable(env, &["ARTIFACT_DIR", "ARTIFACTS"]),
            shared_dir: variable(env, &["SHARED_DIR"]),
            cluster_profile_dir: variable(env, &["CLUSTER_PROFILE_DIR"]),
            leased_resource: variable(env, &["LEASED_RESOURCE"]),
            release_image: variable(env, &["RELEASE_IMAGE_LATEST"]),
            notes,
        }
    }

    /// What is known, one line each: name, value, origin.
    pub fn lines(&self) -> Vec<String> {
        let mut lines = Vec::new();
        let mut text = |name: &str, value: Option<(&str, &str)>| {
            if let Some((value, origin)) = value {
                lines.push(format!("{name}: {value} (from {origin})"));
            }
        };
        let of = |sourced: &'_ Option<Sourced<String>>| {
            sourced.as_ref().map(|sourced| (sourced.value.clone(), sourced.origin.clone()))
        };
        for (name, value) in [
            ("job", of(&self.job)),
            ("test", of(&self.test)),
            ("build", of(&self.build_id)),
            ("prow job", of(&self.prow_job_id)),
            ("lease", of(&self.leased_resource)),
            ("release image", of(&self.release_image)),
        ] {
            text(name, value.as_ref().map(|(value, origin)| (value.as_str(), origin.as_str())));
        }
        if let Some(kind) = &self.job_type {
            text("job type", Some((kind.value.as_str(), &kind.origin)));
        }
        if let Some(refs) = &self.refs {
            let pulls: Vec<String> =
                refs.value.pulls.iter().map(|pull| format!("#{} at {}", pull.number, pull.sha)).collect();
            let place = format!("{}/{} {}", refs.value.org, refs.value.repo, refs.value.base_ref);
            let whole = [vec![place], pulls].concat().join(", ");
            text("source", Some((&whole, &refs.origin)));
        }
        lines
    }
}

fn job_spec(env: &EnvMap, notes: &mut Vec<String>) -> Map<String, Value> {
    let Some(text) = env.get("JOB_SPEC") else {
        return Map::new();
    };
    match serde_json::from_str(text) {
        Ok(Value::Object(spec)) => spec,
        Ok(_) => {
            notes.push("JOB_SPEC is no JSON object and is passed over".to_owned());
            Map::new()
        }
        Err(error) => {
            notes.push(format!("JOB_SPEC is no JSON and is passed over: {error}"));
            Map::new()
        }
    }
}

/// `refs`, or the first of `extra_refs` for a job that belongs to no repository.
fn refs_of(spec: &Map<String, Value>, notes: &mut Vec<String>) -> Option<Sourced<Refs>> {
    let own = spec.get("refs").filter(|refs| refs.is_object()).map(|refs| (refs, "JOB_SPEC.refs"));
    let extra = || {
        let first = spec.get("extra_refs")?.as_array()?.first()?;
        Some((first, "JOB_SPEC.extra_refs[0]"))
    };
    let (refs, origin) = own.or_else(extra)?;
    let text = |key: &str| refs.get(key).and_then(Value::as_str).unwrap_or_default().to_owned();
    if text("repo").is_empty() {
        notes.push(format!("{origin} names no repository"));
        return None;
    }
    let pulls = refs.get("pulls").and_then(Value::as_array);
    let pulls = pulls.into_iter().flatten().filter_map(|pull| {
        Some(Pull {
            number: pull.get("number")?.as_u64()?,
            sha: pull.get("sha").and_then(Value::as_str).unwrap_or_default().to_owned(),
        })
    });
    Some(Sourced {
        value: Refs {
            org: text("org"),
            repo: text("repo"),
            base_ref: text("base_ref"),
            base_sha: text("base_sha"),
            pulls: pulls.collect(),
        },
        origin: origin.to_owned(),
    })
}

/// `PULL_REFS` is `branch:sha,number:sha,…`; the only list of a batch's pull requests besides `JOB_SPEC`.
fn refs_of_variables(env: &EnvMap, notes: &mut Vec<String>) -> Option<Sourced<Refs>> {
    let repo = env.get("REPO_NAME")?.to_owned();
    let owned = |name: &str| env.get(name).unwrap_or_default().to_owned();
    let (mut base_ref, mut base_sha, mut pulls) = (owned("PULL_BASE_REF"), owned("PULL_BASE_SHA"), Vec::new());
    let mut origin = "REPO_NAME".to_owned();
    if let Some(text) = env.get("PULL_REFS") {
        "PULL_REFS".clone_into(&mut origin);
        let mut parts = text.split(',');
        if let Some((name, sha)) = parts.next().and_then(|base| base.split_once(':')) {
            name.clone_into(&mut base_ref);
            sha.clone_into(&mut base_sha);
        }
        for part in parts {
            let mut fields = part.split(':');
            match (fields.next().and_then(|number| number.parse().ok()), fields.next()) {
                (Some(number), Some(sha)) => pulls.push(Pull { number, sha: sha.to_owned() }),
                _ => notes.push(format!("PULL_REFS has `{part}`, which is no pull request")),
            }
        }
    } else if let Some(number) = env.get("PULL_NUMBER").and_then(|text| text.parse().ok()) {
        pulls.push(Pull { number, sha: owned("PULL_PULL_SHA") });
    }
    Some(Sourced { value: Refs { org: owned("REPO_OWNER"), repo, base_ref, base_sha, pulls }, origin })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_laptop_has_no_context_and_nothing_to_complain_about() {
        assert_eq!(CiContext::read(&EnvMap::default()), CiContext::default());
    }

    #[test]
    fn every_value_says_where_it_came_from() {
        let spec = r#"{"type":"presubmit","job":"pull-ci-x","buildid":"17","refs":{"org":"o","repo":"r","base_ref":"main","base_sha":"abc","pulls":[{"number":5,"sha":"def","author":"a"}]},"extra":{"unknown":true}}"#;
        let env = EnvMap::new([
            ("JOB_SPEC", spec),
            ("JOB_NAME", "pull-ci-x"),
            ("JOB_NAME_SAFE", "e2e"),
            ("ARTIFACTS", "/logs/artifacts"),
        ]);
        let context = CiContext::read(&env);
        assert_eq!(
            context.lines(),
            [
                "job: pull-ci-x (from JOB_NAME)",
                "test: e2e (from JOB_NAME_SAFE)",
                "build: 17 (from JOB_SPEC.buildid)",
                "job type: presubmit (from JOB_SPEC.type)",
                "source: o/r main, #5 at def (from JOB_SPEC.refs)",
            ]
        );
        assert_eq!(context.artifact_dir.unwrap().origin, "ARTIFACTS");
        assert!(context.notes.is_empty());
    }

    #[test]
    fn a_broken_job_spec_is_a_note_and_the_variables_are_used() {
        let env = EnvMap::new([
            ("JOB_SPEC", "{not json"),
            ("JOB_TYPE", "batch"),
            ("REPO_OWNER", "o"),
            ("REPO_NAME", "r"),
            ("PULL_REFS", "main:abc,1:d1,2:d2,x"),
        ]);
        let context = CiContext::read(&env);
        let refs = context.refs.unwrap();
        assert_eq!((refs.value.base_sha.as_str(), refs.value.pulls.len()), ("abc", 2));
        assert_eq!(context.job_type.unwrap().value, JobType::Batch);
        assert_eq!(context.notes.len(), 2);
    }

    #[test]
    fn a_periodic_job_may_have_only_extra_refs() {
        let env = EnvMap::new([(
            "JOB_SPEC",
            r#"{"type":"periodic","refs":null,"extra_refs":[{"org":"o","repo":"r","base_ref":"main"}]}"#,
        )]);
        let refs = CiContext::read(&env).refs;
        // A null `refs` counts as absent.
        assert_eq!(refs.unwrap().origin, "JOB_SPEC.extra_refs[0]");
    }

    #[test]
    fn a_contradiction_is_noted() {
        let env = EnvMap::new([("JOB_NAME", "a"), ("JOB_SPEC", r#"{"job":"b","type":"odd"}"#)]);
        let context = CiContext::read(&env);
        assert_eq!(context.job.unwrap().value, "a");
        assert_eq!(context.notes.len(), 2);
    }
}
