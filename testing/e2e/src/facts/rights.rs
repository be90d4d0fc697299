//! Who may do what, and how a refusal reads.

use anyhow::{Result, ensure};
use http::Method;
use serde_json::json;

use super::{Fact, fact, maps};
use crate::{Ask, Target};

pub(super) const FACTS: &[Fact] = &[
    fact!("a review says what one may do", "access reviews before anything changes", review),
    fact!("a refusal names user, verb, resource, group and place", "exit code 4", refusal),
    fact!("rights come from roles that are bound", "access reviews before anything changes", bound),
    fact!("who cannot grant a right cannot make a role with it", "operators' roles", escalation),
];

const REVIEWS: &str = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews";

async fn allowed(target: &Target, user: Option<&str>, namespace: &str, verb: &str) -> Result<bool> {
    let review = json!({
        "apiVersion": "authorization.k8s.io/v1", "kind": "SelfSubjectAccessReview",
        "spec": {"resourceAttributes": {"namespace": namespace, "verb": verb, "resource": "configmaps"}},
    });
    let mut ask = Ask::new(Method::POST, REVIEWS).json(&review);
    if let Some(user) = user {
        ask = ask.header("impersonate-user", user);
    }
    let answer = target.ask(ask).await?;
    Ok(answer.expect(201)?["status"]["allowed"] == true)
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
    let rbac = format!("/apis/rbac.authorization.k8s.io/v1/namespaces/{namespace}");
    let user = format!("reader-{namespace}");
    let role = json!({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "Role", "metadata": {"name": "reader"},
        "rules": [{"apiGroups": [""], "resources": ["configmaps"], "verbs": ["get", "list"]}],
    });
    target.create(&format!("{rbac}/roles"), &role).await?.expect(201)?;
    ensure!(!allowed(target, Some(&user), namespace, "list").await?, "a role alone gives nothing");
    let binding = json!({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "RoleBinding", "metadata": {"name": "reader"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "reader"},
        "subjects": [{"kind": "User", "apiGroup": "rbac.authorization.k8s.io", "name": user}],
    });
    target.create(&format!("{rbac}/rolebindings"), &binding).await?.expect(201)?;
    for _ in 0..100 {
        if allowed(target, Some(&user), namespace, "list").await? {
            break;
        }
        tokio::time::sleep(std::time::Duration::from_millis(100)).await;
    }
    ensure!(allowed(target, Some(&user), namespace, "list").await?, "the binding gives nothing");
    ensure!(!allowed(target, Some(&user), namespace, "create").await?, "more than the role says");
    target.ask(Ask::get(&maps(namespace)).header("impersonate-user", &user)).await?.expect(200)?;
    let other = target.ask(Ask::get(&maps("default")).header("impersonate-user", &user)).await?;
    ensure!(other.code == 403, "the role reaches beyond its namespace");
    Ok(())
}

async fn escalation(target: &Target, namespace: &str) -> Result<()> {
    let rbac = format!("/apis/rbac.authorization.k8s.io/v1/namespaces/{namespace}");
    let user = format!("maker-{namespace}");
    let rule = json!({"apiGroups": ["rbac.authorization.k8s.io"], "resources": ["roles"], "verbs": ["create"]});
    let role = |name: &str, rules: serde_json::Value| {
        json!({
            "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "Role", "metadata": {"name": name}, "rules": rules,
        })
    };
    target.create(&format!("{rbac}/roles"), &role("maker", json!([rule]))).await?.expect(201)?;
    let binding = json!({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "RoleBinding", "metadata": {"name": "maker"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "maker"},
        "subjects": [{"kind": "User", "apiGroup": "rbac.authorization.k8s.io", "name": user}],
    });
    target.create(&format!("{rbac}/rolebindings"), &binding).await?.expect(201)?;
    let more = role("more", json!([{"apiGroups": [""], "resources": ["secrets"], "verbs": ["get"]}]));
    let ask = Ask::new(Method::POST, &format!("{rbac}/roles")).json(&more).header("impersonate-user", &user);
    // The binding may take a moment to count; until then the refusal is another one.
    let mut answer = target.ask(ask.clone()).await?;
    for _ in 0..100 {
        if answer.text("/message").contains("attempting to grant") {
            break;
        }
        tokio::time::sleep(std::time::Duration::from_millis(100)).await;
        answer = target.ask(ask.clone()).await?;
    }
    ensure!(answer.code == 403, "{answer:?}");
    let message = format!(
        "user \"{user}\" (groups=[\"system:authenticated\"]) is attempting to grant RBAC permissions not currently held"
    );
    ensure!(answer.text("/message").contains(&message), "{answer:?}");
    Ok(())
}
