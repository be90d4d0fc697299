//! Namespaces: when one is deleted, so is all it holds, and then it goes.

use std::collections::BTreeMap;
use std::time::Duration;

use kube::Client;
use kube::api::{Api, DeleteParams, ListParams};
use kube::core::DynamicObject;
use kube::discovery::{Discovery, Scope, verbs};
use serde_json::json;

use super::kit::{Cache, Context, Controller, Kind, NAMESPACE, Read, Timers, with_condition};

/// The namespace controller.
#[derive(Default)]
pub(crate) struct Namespaces {
    /// How often content was still there, by uid of the namespace.
    looks: BTreeMap<String, u32>,
}

impl Controller for Namespaces {
    const KINDS: &'static [Kind] = &[NAMESPACE];

    async fn reconcile(
        &mut self,
        context: &Context,
        cache: &mut Cache,
        timers: &mut Timers,
    ) -> Result<(), kube::Error> {
        for namespace in cache.all(NAMESPACE) {
            if !namespace.is_deleted() || namespace.list("/spec/finalizers").is_empty() {
                continue;
            }
            let uid = namespace.uid().to_owned();
            let first = context.draw(context.scenario.timings.namespace_delete, "namespaceDelete", namespace.name());
            let looks = self.looks.entry(uid.clone()).or_default();
            let wait = if *looks == 0 { first } else { Duration::from_secs(1 << (*looks).min(6)) };
            if !timers.passed(format!("{uid}/{looks}"), wait) {
                continue;
            }
            *looks += 1;
            let left = empty(&context.client, namespace.name()).await?;
            if left.is_empty() {
                cache.finalize_namespace(&namespace).await?;
                self.looks.remove(&uid);
            } else {
                // Ask for the next look at once, so that its time is known.
                timers.passed(format!("{uid}/{looks}"), Duration::from_secs(1 << (*looks).min(6)));
                let message = format!("Some resources are remaining: {}", left.join(", "));
                let present = namespace.list("/status/conditions");
                let conditions = with_condition(
                    present,
                    "NamespaceContentRemaining",
                    true,
                    "SomeResourcesRemain",
                    &message,
                    &context.stamp(),
                );
                cache.status(NAMESPACE, &namespace, json!({"conditions": conditions})).await?;
            }
        }
        Ok(())
    }
}

/// Deletes what a namespace holds, and says what is still there.
async fn empty(client: &Client, namespace: &str) -> Result<Vec<String>, kube::Error> {
    let discovery = Discovery::new(client.clone()).run().await?;
    let mut left = Vec::new();
    let mut groups: Vec<_> = discovery.groups().collect();
    groups.sort_by_key(|group| group.name().to_owned());
    for group in groups {
        // A kind may be served in a version that is not its group's preferred one only.
        let mut resources = group.resources_by_stability();
        resources.sort_by(|a, b| a.0.plural.cmp(&b.0.plural));
        for (resource, capabilities) in resources {
            let deletable =
                capabilities.supports_operation(verbs::DELETE) && capabilities.supports_operation(verbs::LIST);
            if capabilities.scope != Scope::Namespaced || !deletable || resource.kind == "Event" {
                continue;
            }
            let api: Api<DynamicObject> = Api::namespaced_with(client.clone(), namespace, &resource);
            let objects = match api.list(&ListParams::default()).await {
                Ok(objects) => objects,
                Err(kube::Error::Api(status)) if status.code < 500 => continue,
                Err(error) => return Err(error),
            };
            for object in objects.items.iter().filter(|object| !object.is_deleted()) {
                match api.delete(object.name(), &DeleteParams::default()).await {
                    Err(kube::Error::Api(status)) if status.code < 500 => {}
                    other => drop(other?),
                }
            }
            let remaining = api.list(&ListParams::default()).await?.items.len();
            if remaining > 0 {
                left.push(format!("{}.{} has {remaining} resource instances", resource.plural, resource.group));
            }
        }
    }
    Ok(left)
}
