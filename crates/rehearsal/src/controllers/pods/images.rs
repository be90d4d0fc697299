//! Image pulls on nodes: one at a time per image, cached afterwards, failing where the scenario says so.

use std::collections::BTreeSet;
use std::time::Duration;

use crate::controllers::kit::{Context, Timers};
use crate::scenario::Image;

/// What has been pulled where.
#[derive(Debug, Default)]
pub(super) struct Images {
    present: BTreeSet<(String, String)>,
}

impl Images {
    /// Whether the image is on the node; asking starts the pull. A second pod waits for the same pull.
    pub(super) fn pulled(&mut self, context: &Context, timers: &mut Timers, node: &str, reference: &str) -> bool {
        let place = (node.to_owned(), reference.to_owned());
        if self.present.contains(&place) {
            return true;
        }
        if !timers.passed(format!("pull/{node}/{reference}"), pull_time(context, reference)) {
            return false;
        }
        self.present.insert(place);
        true
    }

    /// Whether the image is on the node already.
    pub(super) fn has(&self, node: &str, reference: &str) -> bool {
        self.present.contains(&(node.to_owned(), reference.to_owned()))
    }
}

/// The scenario's image of a reference, with its short name. Tags and digests do not matter.
pub(crate) fn known<'a>(context: &'a Context, reference: &str) -> Option<(&'a str, &'a Image)> {
    let images = &context.scenario.images;
    let exact = images.iter().find(|(_, image)| image.reference == reference);
    let found =
        exact.or_else(|| images.iter().find(|(_, image)| repository(&image.reference) == repository(reference)));
    found.map(|(name, image)| (name.as_str(), image))
}

fn repository(reference: &str) -> &str {
    let reference = reference.split_once('@').map_or(reference, |(name, _)| name);
    match reference.rsplit_once(':') {
        Some((name, tag)) if !tag.contains('/') => name,
        _ => reference,
    }
}

/// Time of a pull: by image, the same on every node.
pub(crate) fn pull_time(context: &Context, reference: &str) -> Duration {
    match known(context, reference) {
        Some((name, image)) => context.draw(image.pull, "pull", name),
        None => context.draw(context.scenario.timings.image_pull, "imagePull", reference),
    }
}

/// Message of a pull that cannot succeed.
pub(super) fn trouble(context: &Context, reference: &str) -> Option<String> {
    let (_, image) = known(context, reference)?;
    (!image.trouble.is_empty()).then(|| {
        format!(
            "rpc error: code = Unknown desc = reading manifest {} in {}: {}",
            reference.rsplit_once('@').map_or("latest", |(_, digest)| digest),
            repository(reference),
            image.trouble,
        )
    })
}
