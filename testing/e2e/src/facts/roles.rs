//! Rights that come from roles: the default ones, those that collect others, names, paths, and who may give them.

use anyhow::{Result, ensure};
use http::Method;
use serde_json::{Value, json};

use super::{Fact, fact};
use crate::{Answer, Ask, Target};

pub(super) const FACTS: &[Fact] = &[
    fact!("view, edit and admin give what they are named for", "users without an administrator's rights", defaults),
    fact!("a role with names gives those objects, and a list of one of them", "operators' leases", names),
    fact!("a service account has its own rights and those of its namespace's accounts", "operators", accounts),
    fact!("paths that are no resources are rights too", "cluster::connect", paths),
    fact!("a binding to a role that is not there is named in the refusal", "exit code 4", absent),
    fact!("who may neither bind a role nor has its rights cannot give it", "operators' roles", binding),
    fact!("a role that collects others has their rules", "OLM's roles for its users", aggregated),
    fact!("a review of rules tells all that one may do", "kubectl auth can-i --list", rules),
    fact!("a review of another user needs the right to ask", "kube-rbac-proxy", others),
];

/// The group of roles and bindings.
pub(super) const GROUP: &str = "rbac.authorization.k8s.io";

/// Where the roles and bindings of a namespace are.
pub(super) fn rbac(namespace: &str) -> String {
    format!("/apis/{GROUP}/v1/namespaces/{namespace}")
}

/// Binds a role.
pub(super) async fn bind(target: &Target, namespace: &str, kind: &str, role: &str, subject: &Value) -> Result<()> {
    let name = format!("{role}-{}", subject["name"].as_str().unwrap_or_default().replace(':', "-"));
    let binding = json!({
        "apiVersion": format!("{GROUP}/v1"), "kind": "RoleBinding", "metadata": {"name": name},
        "roleRef": {"apiGroup": GROUP, "kind": kind, "name": role}, "subjects": [subject],
    });
    target.create(&format!("{}/rolebindings", rbac(namespace)), &binding).await?.expect(201)?;
    Ok(())
}

/// Makes a role.
pub(super) async fn role(target: &Target, namespace: &str, name: &str, rules: Value) -> Result<()> {
    let role = json!({
        "apiVersion": format!("{GROUP}/v1"), "kind": "Role", "metadata": {"name": name}, "rules": rules,
    });
    target.create(&format!("{}/roles", rbac(namespace)), &role).await?.expect(201)?;
    Ok(())
}

/// A user, as a binding names it.
pub(super) fn user(name: &str) -> Value {
    json!({"kind": "User", "apiGroup": GROUP, "name": name})
}

/// The question what a server says of somebody's rights.
fn asked(name: &str, groups: &[&str], attributes: &Value) -> Ask {
    let review = json!({
        "apiVersion": "authorization.k8s.io/v1", "kind": "SubjectAccessReview",
        "spec": {"user": name, "groups": groups, "resourceAttributes": attributes},
    });
    Ask::new(Method::POST, "/apis/authorization.k8s.io/v1/subjectaccessreviews").json(&review)
}

/// What a server says of somebody's rights.
async fn review(target: &Target, name: &str, groups: &[&str], attributes: &Value) -> Result<Value> {
    let answer = target.ask(asked(name, groups, attributes)).await?;
    Ok(answer.expect(201)?["status"].clone())
}

fn on(namespace: &str, verb: &str, group: &str, resource: &str) -> Value {
    json!({"namespace": namespace, "verb": verb, "group": group, "resource": resource})
}

/// Asks until something is allowed: a binding takes a moment to count.
async fn granted(target: &Target, name: &str, attributes: &Value) -> Result<Value> {
    let allowed = |answer: &Answer| answer.body["status"]["allowed"] == true;
    let answer = target.ask_until(&asked(name, &[], attributes), "allowed", allowed).await?;
    let status = answer.expect(201)?["status"].clone();
    ensure!(status["allowed"] == true, "{name} may not {attributes}: {status}");
    Ok(status)
}

async fn denied(target: &Target, name: &str, attributes: &Value) -> Result<()> {
    let status = review(target, name, &[], attributes).await?;
    ensure!(status == json!({"allowed": false}), "{name} may {attributes}: {status}");
    Ok(())
}

async fn defaults(target: &Target, namespace: &str) -> Result<()> {
    let who = |role: &str| format!("{role}-{namespace}");
    for role in ["view", "edit", "admin"] {
        bind(target, namespace, "ClusterRole", role, &user(&who(role))).await?;
    }
    for (role, verb, group, resource) in [
        ("view", "list", "", "pods"),
        ("view", "watch", "apps", "deployments"),
        ("edit", "create", "apps", "deployments"),
        ("edit", "get", "", "secrets"),
        ("edit", "list", "", "pods"),
        ("admin", "create", GROUP, "rolebindings"),
        ("admin", "delete", "", "configmaps"),
    ] {
        granted(target, &who(role), &on(namespace, verb, group, resource)).await?;
    }
    for (role, verb, group, resource) in [
        ("view", "get", "", "secrets"),
        ("view", "create", "", "configmaps"),
        ("edit", "create", GROUP, "rolebindings"),
        ("edit", "create", "", "resourcequotas"),
        ("admin", "create", "", "resourcequotas"),
        ("admin", "update", "", "nodes"),
    ] {
        denied(target, &who(role), &on(namespace, verb, group, resource)).await?;
    }
    let view = who("view");
    denied(target, &view, &on("default", "list", "", "pods")).await?;
    let status = review(target, &view, &[], &on(namespace, "list", "", "pods")).await?;
    let reason =
        format!("RBAC: allowed by RoleBinding \"view-{view}/{namespace}\" of ClusterRole \"view\" to User \"{view}\"");
    ensure!(status["reason"] == reason.as_str(), "{status}");
    Ok(())
}

async fn names(target: &Target, namespace: &str) -> Result<()> {
    let who = format!("named-{namespace}");
    let rule = json!({
        "apiGroups": [""], "resources": ["configmaps"], "resourceNames": ["mine"], "verbs": ["get", "list", "watch"],
    });
    role(target, namespace, "named", json!([rule])).await?;
    bind(target, namespace, "Role", "named", &user(&who)).await?;
    let mut mine = on(namespace, "get", "", "configmaps");
    mine["name"] = "mine".into();
    granted(target, &who, &mine).await?;
    denied(target, &who, &on(namespace, "list", "", "configmaps")).await?;
    let maps = super::maps(namespace);
    let ask = |path: String| target.ask(Ask::get(&path).header("impersonate-user", &who));
    ensure!(ask(format!("{maps}/mine")).await?.code == 404, "what one may read is looked for");
    ensure!(ask(format!("{maps}/other")).await?.code == 403, "another name is refused");
    ensure!(ask(maps.clone()).await?.code == 403, "a list of all is refused");
    ask(format!("{maps}?fieldSelector=metadata.name=mine")).await?.expect(200)?;
    Ok(())
}

async fn accounts(target: &Target, namespace: &str) -> Result<()> {
    let rule = |resource: &str| json!([{"apiGroups": [""], "resources": [resource], "verbs": ["get"]}]);
    role(target, namespace, "own", rule("pods")).await?;
    role(target, namespace, "all", rule("services")).await?;
    let subject = json!({"kind": "ServiceAccount", "name": "one", "namespace": namespace});
    bind(target, namespace, "Role", "own", &subject).await?;
    let group = format!("system:serviceaccounts:{namespace}");
    bind(target, namespace, "Role", "all", &json!({"kind": "Group", "apiGroup": GROUP, "name": group})).await?;
    let one = format!("system:serviceaccount:{namespace}:one");
    granted(target, &one, &on(namespace, "get", "", "pods")).await?;
    let services = format!("/api/v1/namespaces/{namespace}/services/none");
    let ask = |who: &str| Ask::get(&services).header("impersonate-user", who);
    target.ask_until(&ask(&one), "read by the group's right", |answer| answer.code == 404).await?;
    let other = target.ask(ask("system:serviceaccount:default:one")).await?;
    ensure!(other.code == 403, "an account of elsewhere may as well");
    Ok(())
}

async fn paths(target: &Target, _: &str) -> Result<()> {
    let ask = |path: &str| target.ask(Ask::get(path).header("impersonate-user", "walker"));
    for path in ["/version", "/api", "/apis/apps/v1", "/readyz"] {
        ask(path).await?.expect(200)?;
    }
    let answer = ask("/metrics").await?;
    ensure!(answer.refusal() == (403, "Forbidden", "forbidden: User \"walker\" cannot get path \"/metrics\""));
    ensure!(answer.body["details"] == json!({}), "{answer:?}");
    Ok(())
}

async fn absent(target: &Target, namespace: &str) -> Result<()> {
    let who = format!("lost-{namespace}");
    bind(target, namespace, "ClusterRole", "never-made", &user(&who)).await?;
    let missing = "RBAC: clusterrole.rbac.authorization.k8s.io \"never-made\" not found";
    let maps = super::maps(namespace);
    let ask = Ask::get(&maps).header("impersonate-user", &who);
    let named = |answer: &Answer| answer.text("/message").contains(missing);
    let answer = target.ask_until(&ask, "refused with the role's name", named).await?;
    let message = format!(
        "configmaps is forbidden: User \"{who}\" cannot list resource \"configmaps\" in API group \"\" in the \
         namespace \"{namespace}\": {missing}"
    );
    ensure!(answer.refusal() == (403, "Forbidden", message.as_str()), "{answer:?}");
    Ok(())
}

async fn binding(target: &Target, namespace: &str) -> Result<()> {
    let who = format!("giver-{namespace}");
    let rules = json!([
        {"apiGroups": [GROUP], "resources": ["rolebindings"], "verbs": ["create"]},
        {"apiGroups": [GROUP], "resources": ["clusterroles"], "resourceNames": ["edit"], "verbs": ["bind"]},
    ]);
    role(target, namespace, "giver", rules).await?;
    bind(target, namespace, "Role", "giver", &user(&who)).await?;
    let give = async |role: &str| -> Result<Answer> {
        let binding = json!({
            "apiVersion": format!("{GROUP}/v1"), "kind": "RoleBinding", "metadata": {"name": format!("gives-{role}")},
            "roleRef": {"apiGroup": GROUP, "kind": "ClusterRole", "name": role}, "subjects": [user("friend")],
        });
        let path = format!("{}/rolebindings", rbac(namespace));
        target.ask(Ask::new(Method::POST, &path).json(&binding).header("impersonate-user", &who)).await
    };
    granted(target, &who, &on(namespace, "create", GROUP, "rolebindings")).await?;
    let refused = give("system:auth-delegator").await?;
    let message = format!(
        "rolebindings.rbac.authorization.k8s.io \"gives-system:auth-delegator\" is forbidden: user \"{who}\" \
         (groups=[\"system:authenticated\"]) is attempting to grant RBAC permissions not currently held:\n\
         {{APIGroups:[\"authentication.k8s.io\"], Resources:[\"tokenreviews\"], Verbs:[\"create\"]}}\n\
         {{APIGroups:[\"authorization.k8s.io\"], Resources:[\"subjectaccessreviews\"], Verbs:[\"create\"]}}"
    );
    ensure!(refused.refusal() == (403, "Forbidden", message.as_str()), "{refused:?}");
    give("edit").await?.expect(201)?;
    let nothing = give("never-made").await?;
    // Newer servers name the binding's kind with the role's name.
    let kind = if target.minor >= 30 { "rolebindings" } else { "clusterroles" };
    let message = format!("{kind}.rbac.authorization.k8s.io \"never-made\" not found");
    ensure!(nothing.refusal() == (404, "NotFound", message.as_str()), "{nothing:?}");
    Ok(())
}

async fn aggregated(target: &Target, namespace: &str) -> Result<()> {
    let roles = format!("/apis/{GROUP}/v1/clusterroles");
    let rules = json!([{"apiGroups": ["example.com"], "resources": ["things"], "verbs": ["get"]}]);
    let label = format!("collect-{namespace}");
    let collecting = json!({
        "apiVersion": format!("{GROUP}/v1"), "kind": "ClusterRole", "metadata": {"name": format!("all-{namespace}")},
        "aggregationRule": {"clusterRoleSelectors": [{"matchLabels": {label.clone(): "true"}}]},
    });
    let part = json!({
        "apiVersion": format!("{GROUP}/v1"), "kind": "ClusterRole", "rules": rules,
        "metadata": {"name": format!("part-{namespace}"), "labels": {label: "true"}},
    });
    target.create(&roles, &collecting).await?.expect(201)?;
    target.create(&roles, &part).await?.expect(201)?;
    let path = format!("{roles}/all-{namespace}");
    target.until(&path, "filled", |answer| answer.body["rules"] == rules).await?;
    target.delete(&format!("{roles}/part-{namespace}"), None).await?.expect(200)?;
    let empty = |answer: &Answer| answer.body["rules"].as_array().is_none_or(Vec::is_empty);
    target.until(&path, "empty", empty).await?;
    target.delete(&path, None).await?.expect(200)?;
    Ok(())
}

async fn rules(target: &Target, namespace: &str) -> Result<()> {
    let who = format!("lister-{namespace}");
    let rule = json!({"apiGroups": ["apps"], "resources": ["deployments/scale"], "verbs": ["patch"]});
    role(target, namespace, "lister", json!([rule])).await?;
    bind(target, namespace, "Role", "lister", &user(&who)).await?;
    let mut attributes = on(namespace, "patch", "apps", "deployments");
    attributes["subresource"] = "scale".into();
    granted(target, &who, &attributes).await?;
    denied(target, &who, &on(namespace, "patch", "apps", "deployments")).await?;
    let review = json!({
        "apiVersion": "authorization.k8s.io/v1", "kind": "SelfSubjectRulesReview", "spec": {"namespace": namespace},
    });
    let ask = Ask::new(Method::POST, "/apis/authorization.k8s.io/v1/selfsubjectrulesreviews").json(&review);
    let answer = target.ask(ask.header("impersonate-user", &who)).await?;
    let status = &answer.expect(201)?["status"];
    let resources = status["resourceRules"].as_array().cloned().unwrap_or_default();
    ensure!(resources.contains(&rule), "{status}");
    ensure!(resources[0]["resources"] == json!(["selfsubjectaccessreviews", "selfsubjectrulesreviews"]), "{status}");
    let paths = status["nonResourceRules"].as_array().cloned().unwrap_or_default();
    ensure!(paths.len() == 2 && status["incomplete"] == false, "{status}");
    Ok(())
}

async fn others(target: &Target, namespace: &str) -> Result<()> {
    let review = json!({
        "apiVersion": "authorization.k8s.io/v1", "kind": "SubjectAccessReview",
        "spec": {"user": "other", "resourceAttributes": on(namespace, "get", "", "pods")},
    });
    let ask = Ask::new(Method::POST, "/apis/authorization.k8s.io/v1/subjectaccessreviews").json(&review);
    let answer = target.ask(ask.header("impersonate-user", "curious")).await?;
    let message = "subjectaccessreviews.authorization.k8s.io is forbidden: User \"curious\" cannot create resource \
                   \"subjectaccessreviews\" in API group \"authorization.k8s.io\" at the cluster scope";
    ensure!(answer.refusal() == (403, "Forbidden", message), "{answer:?}");
    Ok(())
}
