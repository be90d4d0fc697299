//! Who may do what, and how a refusal reads.

use anyhow::{Result, ensure};
use http::Method;
use serde_json::json;

use super::roles::{GROUP, bind, rbac, role, user};
use super::{Fact, fact, maps};
use crate::{Answer, Ask, Target};

pub(super) const FACTS: &[Fact] = &[
    fact!("a review says what one may do", "access reviews before anything changes", review),
    fact!("a refusal names user, verb, resource, group and place", "exit code 4", refusal),
    fact!("rights come from roles that are bound", "access reviews before anything changes", bound),
    fact!("who cannot grant a right cannot make a role with it", "operators' roles", escalation),
];

const REVIEWS: &str = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews";

/// The question whether one may do something with config maps.
fn asked(user: Option<&str>, namespace: &str, verb: &str) -> Ask {
    let review = json!({
        "apiVersion": "authorization.k8s.io/v1", "kind": "SelfSubjectAccessReview",
        "spec": {"resourceAttributes": {"namespace": namespace, "verb": verb, "resource": "configmaps"}},
    });
    let ask = Ask::new(Method::POST, REVIEWS).json(&review);
    match user {
        Some(user) => ask.header("impersonate-user", user),
        None => ask,
    }
}

fn is_allowed(answer: &Answer) -> bool {
    answer.body["status"]["allowed"] == true
}

async fn allowed(target: &Target, user: Option<&str>, namespace: &str, verb: &str) -> Result<bool> {
    let answer = target.ask(asked(user, namespace, verb)).await?;
    answer.expect(201)?;
    Ok(is_allowed(&answer))
}

async fn review(target: &Target, namespace: &str) -> Result<()> {
    ensure!(allowed(target, None, namespace, "create").await?, "an administrator may do everything");
    ensure!(!allowed(target, Some("nobody"), namespace, "create").await?, "nobody may do nothing");
    Ok(())
}

async fn refusal(target: &Target, namespace: &str) -> Result<()> {
    let answer = target.ask(Ask::get(&maps(namespace)).header("impersonate-user", "nobody")).await?;
    let message = format!(
        "configmaps is forbidden: User \"nobody\" cannot list resource \"configmaps\" in API group \"\" in the namespace \
         \"{namespace}\""
    );
    ensure!(answer.refusal() == (403, "Forbidden", message.as_str()), "{answer:?}");
    let deployments = "/apis/apps/v1/deployments";
    let answer = target.ask(Ask::get(deployments).header("impersonate-user", "nobody")).await?;
    let message = "deployments.apps is forbidden: User \"nobody\" cannot list resource \"deployments\" in API group \
                   \"apps\" at the cluster scope";
    ensure!(answer.refusal() == (403, "Forbidden", message), "{answer:?}");
    Ok(())
}

async fn bound(target: &Target, namespace: &str) -> Result<()> {
    let who = format!("reader-{namespace}");
    let rules = json!([{"apiGroups": [""], "resources": ["configmaps"], "verbs": ["get", "list"]}]);
    role(target, namespace, "reader", rules).await?;
    ensure!(!allowed(target, Some(&who), namespace, "list").await?, "a role alone gives nothing");
    bind(target, namespace, "Role", "reader", &user(&who)).await?;
    target.ask_until(&asked(Some(&who), namespace, "list"), "allowed by the binding", is_allowed).await?;
    ensure!(!allowed(target, Some(&who), namespace, "create").await?, "more than the role says");
    target.ask(Ask::get(&maps(namespace)).header("impersonate-user", &who)).await?.expect(200)?;
    let other = target.ask(Ask::get(&maps("default")).header("impersonate-user", &who)).await?;
    ensure!(other.code == 403, "the role reaches beyond its namespace");
    Ok(())
}

async fn escalation(target: &Target, namespace: &str) -> Result<()> {
    let who = format!("maker-{namespace}");
    let rules = json!([{"apiGroups": [GROUP], "resources": ["roles"], "verbs": ["create"]}]);
    role(target, namespace, "maker", rules).await?;
    bind(target, namespace, "Role", "maker", &user(&who)).await?;
    let more = json!({
        "apiVersion": format!("{GROUP}/v1"), "kind": "Role", "metadata": {"name": "more"},
        "rules": [{"apiGroups": [""], "resources": ["secrets"], "verbs": ["get"]}],
    });
    let ask = Ask::new(Method::POST, &format!("{}/roles", rbac(namespace))).json(&more);
    // Until the binding counts the refusal is another one.
    let refused = |answer: &Answer| answer.text("/message").contains("attempting to grant");
    let answer = target.ask_until(&ask.header("impersonate-user", &who), "refused as an escalation", refused).await?;
    ensure!(answer.code == 403, "{answer:?}");
    let message = format!(
        "user \"{who}\" (groups=[\"system:authenticated\"]) is attempting to grant RBAC permissions not currently held"
    );
    ensure!(answer.text("/message").contains(&message), "{answer:?}");
    Ok(())
}
