//! Whether OpenShift has a driver-toolkit image for the nodes' operating system; without one a driver is built from the
//! entitled packages, if there are any.

use toolbox_core::cluster::{Cluster, Object, Query, kinds};
use toolbox_core::engine::plan::{Act, Effect, Out};
use toolbox_core::engine::{Plan, Step, Why};

use super::cause::StackCause;
use crate::burn::is_gpu_node;
use crate::locate::Operator;

const NAMESPACE: &str = "openshift";
const STREAM: &str = "driver-toolkit";
/// NFD's label with the version of a node's operating system.
const OS_VERSION: &str = "feature.node.kubernetes.io/system-os_release.OSTREE_VERSION";

/// Adds the step that looks. What it finds is a warning; should the driver crash for want of packages, it is the cause.
pub(super) fn step(
    plan: &mut Plan,
    cluster: &Cluster,
    operator: Out<Operator>,
    nodes: Out<Vec<String>>,
) -> Out<Option<StackCause>> {
    let describe = crate::asking("gpu-operator.driver-toolkit", "an image to build the driver in").does(Effect::on(
        Act::Read,
        &kinds::IMAGE_STREAM,
        Some(NAMESPACE),
        STREAM,
    ));
    let cluster = cluster.clone();
    plan.step(describe, (operator, nodes), |cx, (operator, _)| async move {
        if !operator.version.has_own_namespace() {
            return Ok(Step::Skipped(None, format!("version {} does not use it", operator.version)));
        }
        let stream = match cluster.get(&kinds::IMAGE_STREAM, Some(NAMESPACE), STREAM).await {
            Ok(Some(stream)) => stream,
            Ok(None) => return Ok(Step::Skipped(None, "the cluster has no driver toolkit".to_owned())),
            Err(error) if error.is_about_access() || error.is_absent() => {
                return Ok(Step::Skipped(None, format!("it cannot be looked at: {error}")));
            }
            Err(error) => return Err(error.into()),
        };
        let nodes = cluster.list(&Query::all(&kinds::NODE)).await?;
        let Some(cause) = missing_tag(&stream, &nodes) else {
            return Ok(Step::AlreadySo(None, "the nodes' version has its tag".to_owned()));
        };
        let why = Why::new(stream.refer(), &cause);
        cx.warn("dtk_image_not_valid", why.cause.clone());
        Ok(Step::AlreadySo(Some(cause), why.cause))
    })
}

/// The first operating system of a GPU node that has no tag.
fn missing_tag(stream: &Object, nodes: &[Object]) -> Option<StackCause> {
    let mut tags: Vec<&str> = ["/spec/tags", "/status/tags"]
        .iter()
        .flat_map(|list| stream.list(list))
        .filter_map(|tag| tag.get("name").or_else(|| tag.get("tag"))?.as_str())
        .collect();
    tags.sort_unstable();
    tags.dedup();
    let os = nodes
        .iter()
        .filter(|node| is_gpu_node(node))
        .filter_map(|node| node.label(OS_VERSION))
        .find(|os| !tags.contains(os))?;
    Some(StackCause::NoToolkitTag { os: os.to_owned(), tags: tags.into_iter().map(str::to_owned).collect() })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;
    use toolbox_core::engine::Cause as _;

    #[test]
    fn a_node_whose_system_has_no_tag_is_reported_with_the_tags_there_are() {
        let stream = Object::new(json!({
            "spec": {"tags": [{"name": "413.92.202307000000-0"}, {"name": "latest"}]},
            "status": {"tags": [{"tag": "latest"}]},
        }));
        let node =
            |os: &str| Object::new(json!({"metadata": {"labels": {"nvidia.com/gpu.present": "true", OS_VERSION: os}}}));
        assert_eq!(missing_tag(&stream, &[node("413.92.202307000000-0")]), None);
        let cause = missing_tag(&stream, &[node("413.92.202309030000-0")]).unwrap();
        assert!(
            cause.text().starts_with(
                "no driver-toolkit tag for 413.92.202309030000-0 (there is 413.92.202307000000-0, latest)"
            ),
            "{}",
            cause.text()
        );
    }
}
