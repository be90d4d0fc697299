//! Shows again what was seen on a real cluster: the same objects, the same changes, at the same moments.

use std::collections::BTreeMap;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use kube::api::{Api, DeleteParams, Patch, PatchParams, PostParams};
use kube::core::{DynamicObject, GroupVersionKind};
use kube::discovery::Scope;
use serde_json::{Value, json};

use crate::controllers::Context;
use crate::controllers::seeds::Read;
use crate::scenario::Recording;

/// How often an object is tried again whose kind is not served yet.
const AGAIN: Duration = Duration::from_millis(100);
/// How often at most.
const TRIES: u32 = 50;

/// Something to do at a moment.
#[derive(Clone, Debug)]
struct Cue {
    at: f64,
    /// Place of the object in the recording.
    place: usize,
    act: Act,
}

#[derive(Clone, Debug)]
enum Act {
    Make,
    Set(Value),
    Remove,
}

/// Plays a recording.
pub(super) struct Player {
    context: Context,
    recording: Recording,
    /// From the recording's time to the world's.
    shift: SignedDuration,
    cues: Vec<Cue>,
    /// Uids of the recording's owners, as they are here.
    uids: BTreeMap<String, String>,
    /// Generation that each object had in the recording when it was last written.
    generations: BTreeMap<usize, i64>,
}

impl Player {
    /// A player with everything before it.
    pub(super) fn new(context: &Context, recording: Recording) -> Self {
        let mut cues = Vec::new();
        for (place, recorded) in recording.objects.iter().enumerate() {
            cues.push(Cue { at: recorded.at, place, act: Act::Make });
            for change in &recorded.changes {
                let act = if change.gone { Act::Remove } else { Act::Set(change.set.clone()) };
                cues.push(Cue { at: change.at, place, act });
            }
        }
        // Stable: what happens at one moment happens in the recording's order, owners first.
        cues.sort_by(|one, other| one.at.total_cmp(&other.at));
        let began = recording.began.as_deref().and_then(|began| began.parse::<Timestamp>().ok());
        let shift = began.map_or(SignedDuration::ZERO, |began| context.clock.now().duration_since(began));
        Self { context: context.clone(), recording, shift, cues, uids: BTreeMap::new(), generations: BTreeMap::new() }
    }

    /// Whether an object is there from the start, so that nobody else has to make it.
    pub(super) fn begins_with(recording: Option<&Recording>, kind: &str, namespace: &str, name: &str) -> bool {
        let Some(recording) = recording else { return false };
        recording.objects.iter().filter(|recorded| recorded.at <= 0.0).any(|recorded| {
            let meta = |key: &str| recorded.object["metadata"][key].as_str().unwrap_or_default();
            recorded.object["kind"] == kind && meta("namespace") == namespace && meta("name") == name
        })
    }

    /// Does what was so from the start.
    pub(super) async fn begin(&mut self) -> Result<(), kube::Error> {
        let first: Vec<Cue> = self.cues.iter().take_while(|cue| cue.at <= 0.0).cloned().collect();
        self.cues.drain(..first.len());
        for cue in first {
            self.play(&cue).await?;
        }
        Ok(())
    }

    /// Does the rest, each thing at its moment.
    pub(super) async fn go_on(mut self) {
        let clock = self.context.clock.clone();
        for cue in std::mem::take(&mut self.cues) {
            let moment = Duration::from_secs_f64(cue.at);
            clock.sleep(moment.saturating_sub(clock.elapsed())).await;
            if let Err(error) = self.play(&cue).await {
                tracing::warn!(%error, at = cue.at, "a moment of the recording is lost");
            }
        }
    }

    async fn play(&mut self, cue: &Cue) -> Result<(), kube::Error> {
        let recorded = self.recording.objects[cue.place].object.clone();
        let kind = recorded["kind"].as_str().unwrap_or_default().to_owned();
        let name = recorded["metadata"]["name"].as_str().unwrap_or_default().to_owned();
        let api = self.api(&recorded).await?;
        match &cue.act {
            Act::Make => {
                let made = self.make(cue.place, &api, &kind, recorded).await?;
                self.context.hands_off.hold(&kind, &made);
            }
            Act::Set(patch) => {
                let Some(present) = api.get_opt(&name).await? else { return Ok(()) };
                if present.is_deleted() {
                    return Ok(());
                }
                let made = self.set(cue.place, &api, &present, patch).await?;
                self.context.hands_off.hold(&kind, &made);
            }
            Act::Remove => {
                let Some(present) = api.get_opt(&name).await? else { return Ok(()) };
                self.context.hands_off.release(&kind, &present);
                if present.metadata.finalizers.is_some() {
                    let patch = json!({"metadata": {"finalizers": null}});
                    api.patch(&name, &PatchParams::default(), &Patch::Merge(patch)).await?;
                }
                api.delete(&name, &DeleteParams::default().grace_period(0)).await?;
            }
        }
        Ok(())
    }

    /// The API of an object's kind, which may need a moment until it is served.
    async fn api(&self, object: &Value) -> Result<Api<DynamicObject>, kube::Error> {
        let api_version = object["apiVersion"].as_str().unwrap_or_default();
        let (group, version) = api_version.rsplit_once('/').unwrap_or(("", api_version));
        let gvk = GroupVersionKind::gvk(group, version, object["kind"].as_str().unwrap_or_default());
        let client = self.context.client.clone();
        let mut tries = 0;
        let (resource, capabilities) = loop {
            match kube::discovery::pinned_kind(&client, &gvk).await {
                Ok(found) => break found,
                Err(error) if tries >= TRIES => return Err(error),
                Err(_) => {
                    tries += 1;
                    self.context.clock.sleep(AGAIN).await;
                }
            }
        };
        let namespace = object["metadata"]["namespace"].as_str();
        Ok(match namespace.filter(|_| capabilities.scope == Scope::Namespaced) {
            Some(namespace) => Api::namespaced_with(client, namespace, &resource),
            None => Api::all_with(client, &resource),
        })
    }

    async fn make(
        &mut self,
        place: usize,
        api: &Api<DynamicObject>,
        kind: &str,
        mut object: Value,
    ) -> Result<DynamicObject, kube::Error> {
        let uid = object["metadata"]["uid"].as_str().unwrap_or_default().to_owned();
        self.generations.insert(place, object["metadata"]["generation"].as_i64().unwrap_or(1));
        self.adapt(place, &mut object, 1);
        if let Some(metadata) = object["metadata"].as_object_mut() {
            for key in
                ["uid", "generation", "resourceVersion", "managedFields", "creationTimestamp", "deletionTimestamp"]
            {
                metadata.remove(key);
            }
        }
        self.own(&mut object);
        let status = object.get("status").cloned();
        let object: DynamicObject = serde_json::from_value(object).map_err(kube::Error::SerdeError)?;
        // Held before anybody can see it.
        self.context.hands_off.hold(kind, &held(&object));
        let made = match api.create(&PostParams::default(), &object).await {
            Err(kube::Error::Api(answer)) if answer.is_already_exists() => api.get(object.name()).await?,
            made => made?,
        };
        self.uids.insert(uid, made.uid().to_owned());
        match status {
            Some(status) => write_status(api, made, status).await,
            None => Ok(made),
        }
    }

    async fn set(
        &mut self,
        place: usize,
        api: &Api<DynamicObject>,
        present: &DynamicObject,
        patch: &Value,
    ) -> Result<DynamicObject, kube::Error> {
        let mut patch = patch.clone();
        if let Some(generation) = patch["metadata"]["generation"].as_i64() {
            self.generations.insert(place, generation);
        }
        let wants = ["spec", "data"].iter().any(|key| patch.get(key).is_some());
        self.adapt(place, &mut patch, present.generation() + i64::from(wants));
        if let Some(metadata) = patch["metadata"].as_object_mut() {
            for key in
                ["uid", "generation", "resourceVersion", "managedFields", "creationTimestamp", "deletionTimestamp"]
            {
                metadata.remove(key);
            }
        }
        self.own(&mut patch);
        let status = patch.get("status").cloned();
        let made = api.patch(present.name(), &PatchParams::default(), &Patch::Merge(patch)).await?;
        match status {
            Some(status) => write_status(api, made, status).await,
            None => Ok(made),
        }
    }

    /// Moves times into this world, and generations to what they are here.
    fn adapt(&self, place: usize, part: &mut Value, generation: i64) {
        let recorded = self.generations.get(&place).copied().unwrap_or(1);
        walk(part, &mut |key, value| {
            if key == "observedGeneration"
                && let Some(observed) = value.as_i64()
            {
                *value = (generation - (recorded - observed)).max(0).into();
            } else if let Some(moment) = value.as_str().and_then(moment) {
                *value = (moment + self.shift).strftime("%Y-%m-%dT%H:%M:%SZ").to_string().into();
            }
        });
    }

    /// Owners by the uids that they have here; one that is not in the recording is none.
    fn own(&self, object: &mut Value) {
        if let Some(owners) = object.pointer_mut("/metadata/ownerReferences").and_then(Value::as_array_mut) {
            owners.retain_mut(|owner| {
                let known = owner["uid"].as_str().and_then(|uid| self.uids.get(uid));
                known.map(|uid| owner["uid"] = uid.as_str().into()).is_some()
            });
        }
    }
}

/// The object as it will be: what it is held by before the server has answered.
fn held(object: &DynamicObject) -> DynamicObject {
    let mut object = object.clone();
    object.metadata.generation = Some(1);
    object
}

/// Kinds without a status of their own have taken it with the object.
async fn write_status(
    api: &Api<DynamicObject>,
    made: DynamicObject,
    status: Value,
) -> Result<DynamicObject, kube::Error> {
    let patch = json!({"status": status});
    match api.patch_status(made.name(), &PatchParams::default(), &Patch::Merge(patch)).await {
        Err(kube::Error::Api(answer)) if answer.code == 404 || answer.code == 405 => Ok(made),
        answer => answer,
    }
}

fn moment(text: &str) -> Option<Timestamp> {
    let looks = (20..=35).contains(&text.len()) && text.as_bytes().get(10) == Some(&b'T');
    looks.then(|| text.parse().ok()).flatten()
}

fn walk(value: &mut Value, change: &mut impl FnMut(&str, &mut Value)) {
    match value {
        Value::Object(map) => {
            for (key, value) in map {
                change(key, value);
                walk(value, change);
            }
        }
        Value::Array(items) => items.iter_mut().for_each(|item| walk(item, change)),
        _ => {}
    }
}
