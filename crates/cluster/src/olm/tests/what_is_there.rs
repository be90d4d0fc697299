//! OperatorGroups, Subscriptions, CSVs and InstallPlans that are there already.

use super::*;

fn group(name: &str, targets: &[&str]) -> Object {
    Object::new(json!({
        "apiVersion": "operators.coreos.com/v1", "kind": "OperatorGroup",
        "metadata": {"name": name, "namespace": "nvidia-gpu-operator"},
        "spec": {"targetNamespaces": targets},
    }))
}

fn rule(groups: &[Object], version: &str) -> GroupRule {
    let chosen = choose(&package(), &wish(None, Some(version))).unwrap();
    let placement = place(&chosen, None, "gpu").unwrap();
    group_rule(groups, &placement, &chosen)
}

fn refusal(rule: GroupRule) -> OlmCause {
    match rule {
        GroupRule::Refuse(refusal) => refusal.1,
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_group_that_fits_is_used_and_no_second_one_is_made() {
    assert_eq!(rule(&[], "1.11.0"), GroupRule::Create(Scope::Own));
    let console = group("nvidia-gpu-operator-7k9xz", &["nvidia-gpu-operator"]);
    assert_eq!(rule(std::slice::from_ref(&console), "1.11.0"), GroupRule::Use(console.clone()));
    let second = group("mine", &["nvidia-gpu-operator"]);
    let cause = refusal(rule(&[console, second], "1.11.0"));
    assert!(cause.text().contains("mine, nvidia-gpu-operator-7k9xz"), "{}", cause.text());
}

#[test]
fn a_group_of_another_scope_is_refused() {
    let everything = group("all", &[]);
    let cause = refusal(rule(std::slice::from_ref(&everything), "1.11.0"));
    assert_eq!(cause.code(), "operator-group-mismatch");
    // The old version in the global namespace: only the cluster's own group, which is for everything.
    assert_eq!(rule(std::slice::from_ref(&everything), "1.8.2"), GroupRule::Use(everything));
    assert_eq!(refusal(rule(&[], "1.8.2")).code(), "no-fitting-scope");
    let several = group("several", &["nvidia-gpu-operator", "other"]);
    assert_eq!(refusal(rule(&[several], "1.11.0")).code(), "operator-group-mismatch");
}

fn subscription(namespace: &str, source: &str, channel: &str, installed: Option<&str>) -> Object {
    let mut object = json!({
        "apiVersion": "operators.coreos.com/v1alpha1", "kind": "Subscription",
        "metadata": {"name": "gpu-operator-certified", "namespace": namespace, "uid": "s1"},
        "spec": {"name": "gpu-operator-certified", "source": source, "channel": channel},
    });
    if let Some(installed) = installed {
        object["status"] = json!({"installedCSV": installed, "currentCSV": installed});
    }
    Object::new(object)
}

fn existing(there: &Object, wish: &Wish, namespace: Option<&str>) -> Existing {
    let chosen = choose(&package(), wish).unwrap();
    existing_rule(std::slice::from_ref(there), &gpu(), wish, &chosen, namespace)
}

#[test]
fn the_same_subscription_is_adopted() {
    let csv = "gpu-operator-certified.v1.11.0";
    let there = subscription("nvidia-gpu-operator", "certified-operators", "stable", Some(csv));
    let exact = wish(Some("stable"), Some("1.11.0"));
    assert!(matches!(existing(&there, &exact, None), Existing::Adopt(..)));
    // An older version is kept when no other was asked for.
    let old =
        subscription("nvidia-gpu-operator", "certified-operators", "v1.10", Some("gpu-operator-certified.v1.10.1"));
    assert!(matches!(existing(&old, &Wish::default(), None), Existing::Adopt(..)));
    // An earlier run made it and was stopped before anything was installed.
    let fresh = subscription("nvidia-gpu-operator", "certified-operators", "stable", None);
    assert!(matches!(existing(&fresh, &Wish::default(), None), Existing::Adopt(..)));
    let other = Object::new(json!({"spec": {"name": "something-else"}}));
    assert_eq!(existing(&other, &Wish::default(), None), Existing::None);
}

#[test]
fn a_newer_version_is_an_upgrade_and_everything_else_is_refused() {
    let old =
        subscription("nvidia-gpu-operator", "certified-operators", "v1.10", Some("gpu-operator-certified.v1.10.1"));
    match existing(&old, &wish(Some("stable"), None), None) {
        Existing::Upgrade(_, text) => {
            assert_eq!(text, "gpu-operator-certified.v1.10.1 is upgraded to gpu-operator-certified.v1.11.0");
        }
        other => panic!("{other:?}"),
    }
    let refused = |rule| match rule {
        Existing::Refuse(refusal) => refusal.1.text(),
        other => panic!("{other:?}"),
    };
    assert!(refused(existing(&old, &wish(None, Some("1.9.1")), None)).contains("newer than"));
    assert!(refused(existing(&old, &Wish::default(), Some("mine"))).contains("in nvidia-gpu-operator and not in mine"));
    let nightly = subscription("nvidia-gpu-operator", "team-nightly", "stable", None);
    assert!(refused(existing(&nightly, &Wish::default(), None)).contains("`team-nightly`"));
}

fn csv(name: &str, namespace: &str) -> Object {
    Object::new(json!({
        "apiVersion": "operators.coreos.com/v1alpha1", "kind": "ClusterServiceVersion",
        "metadata": {"name": name, "namespace": namespace},
    }))
}

#[test]
fn a_csv_that_no_subscription_refers_to_is_an_orphan() {
    let name = "gpu-operator-certified.v1.10.1";
    let left = csv(name, "nvidia-gpu-operator");
    let orphans = |subscriptions: &[Object]| orphan_csvs(std::slice::from_ref(&left), subscriptions, &gpu()).len();
    assert_eq!(orphans(&[]), 1);
    let own = subscription("nvidia-gpu-operator", "certified-operators", "v1.10", Some(name));
    assert_eq!(orphans(&[own]), 0);
    let elsewhere = subscription("other", "certified-operators", "v1.10", Some(name));
    assert_eq!(orphans(&[elsewhere]), 1);
    // Not yet decided: OLM has just got the Subscription.
    let fresh = subscription("nvidia-gpu-operator", "certified-operators", "v1.10", None);
    assert_eq!(orphans(&[fresh]), 0);
}

#[test]
fn the_packages_csvs_are_known_by_label_or_name_and_copies_do_not_count() {
    assert!(belongs_to(&csv("gpu-operator-certified.v1.10.1", "a"), &gpu()));
    assert!(!belongs_to(&csv("gpu-operator-certified-addon.v1.0.0", "a"), &gpu()));
    assert!(!belongs_to(&csv("gpu-operator-certified.addon", "a"), &gpu()));
    assert!(belongs_to(&csv("nfd.4.11.0-202212070335", "a"), &PackageRef::new("nfd", "redhat-operators")));
    let mut labelled = csv("renamed.v1", "a").value().clone();
    labelled["metadata"]["labels"] = json!({"operators.coreos.com/gpu-operator-certified.a": ""});
    assert!(belongs_to(&Object::new(labelled.clone()), &gpu()));
    labelled["metadata"]["labels"]["olm.copiedFrom"] = json!("b");
    assert!(!belongs_to(&Object::new(labelled), &gpu()));
}

fn plan(name: &str, generation: i64, csvs: &[&str]) -> Object {
    Object::new(json!({
        "apiVersion": "operators.coreos.com/v1alpha1", "kind": "InstallPlan",
        "metadata": {"name": name, "namespace": "openshift-operators", "uid": format!("uid-of-{name}"),
                     "ownerReferences": [{"kind": "Subscription", "name": "s", "uid": "uid-of-subscription"}]},
        "spec": {"generation": generation, "approved": false, "clusterServiceVersionNames": csvs},
        "status": {"phase": "RequiresApproval"},
    }))
}

#[test]
fn only_the_plan_with_the_version_asked_for_is_chosen() {
    let chosen = choose(&package(), &wish(Some("v1.10"), None)).unwrap();
    let wanted = chosen.published.csv.as_str();
    let mut there = subscription("openshift-operators", "certified-operators", "v1.10", None).value().clone();
    there["metadata"]["uid"] = json!("uid-of-subscription");
    there["status"] = json!({"state": "UpgradePending", "currentCSV": "gpu-operator-certified.v1.11.0",
                             "installPlanRef": {"name": "install-new"}});
    let there = Object::new(there);
    let old = plan("install-old", 1, &[wanted]);
    let again = plan("install-again", 2, &[wanted, "billing-operator.v5.1.0"]);
    let new = plan("install-new", 3, &["gpu-operator-certified.v1.11.0"]);
    let plans = [old, again.clone(), new.clone()];
    assert_eq!(choose_plan(&plans, &there, &chosen), planned(&again, wanted));
    assert!(matches!(choose_plan(&[new], &there, &chosen), PlanChoice::Other(..)));
    assert_eq!(choose_plan(&[], &there, &chosen), PlanChoice::None);
}

fn planned(plan: &Object, csv: &str) -> PlanChoice {
    PlanChoice::Plan(Planned { plan: plan.clone(), csv: csv.to_owned() })
}

#[test]
fn a_plan_for_a_version_between_leads_on_and_one_beyond_or_of_another_channel_does_not() {
    let csv = |version: &str| format!("gpu-operator-certified.v{version}");
    let stable = choose(&package(), &wish(Some("stable"), Some("1.10.1"))).unwrap();
    let choice = |chosen: &Chosen, installed: &str, offered: &str, starts: &str| {
        let mut there = subscription("nvidia-gpu-operator", "certified-operators", "stable", None).value().clone();
        there["metadata"]["uid"] = json!("uid-of-subscription");
        there["spec"]["startingCSV"] = json!(csv(starts));
        there["status"] = json!({"state": "UpgradePending", "currentCSV": csv(offered),
                                 "installPlanRef": {"name": "install-next"}});
        if !installed.is_empty() {
            there["status"]["installedCSV"] = json!(csv(installed));
        }
        let next = plan("install-next", 2, &[&csv(offered)]);
        match choose_plan(&[next], &Object::new(there), chosen) {
            PlanChoice::Plan(planned) => planned.csv,
            PlanChoice::Other(_, cause) => cause.code().to_owned(),
            PlanChoice::None => "none".to_owned(),
        }
    };
    assert_eq!(choice(&stable, "1.9.1", "1.10.0", "1.9.1"), csv("1.10.0"));
    assert_eq!(choice(&stable, "1.9.1", "1.10.1", "1.9.1"), csv("1.10.1"));
    // Not beyond what was asked for, and not by versions of another channel.
    assert_eq!(choice(&stable, "1.9.1", "1.11.0", "1.9.1"), "wrong-plan");
    assert_eq!(choice(&stable, "1.9.0", "1.9.5", "1.9.0"), "wrong-plan");
    // What an earlier run subscribed to comes first; for what this one subscribed to nothing else may.
    assert_eq!(choice(&stable, "", "1.9.1", "1.9.1"), csv("1.9.1"));
    assert_eq!(choice(&stable, "", "1.10.0", "1.10.1"), "wrong-plan");
    let unlisted = Chosen { older: None, ..stable };
    assert_eq!(choice(&unlisted, "1.9.0", "1.9.5", "1.9.0"), csv("1.9.5"));
    assert_eq!(choice(&unlisted, "1.9.0", "1.11.0", "1.9.0"), "wrong-plan");
}

#[test]
fn what_a_subscription_starts_at_is_not_called_installed() {
    let starting = |version: &str| {
        let mut there = subscription("nvidia-gpu-operator", "certified-operators", "stable", None).value().clone();
        there["spec"]["startingCSV"] = json!(format!("gpu-operator-certified.v{version}"));
        Object::new(there)
    };
    let text = |version: &str, wish: &Wish| match existing(&starting(version), wish, None) {
        Existing::Adopt(_, text) | Existing::Upgrade(_, text) => text,
        Existing::Refuse(refusal) => refusal.1.text(),
        Existing::None => panic!("there is one"),
    };
    let csv = |version: &str| format!("gpu-operator-certified.v{version}");
    let exact = |version: &str| wish(Some("stable"), Some(version));
    let starts =
        format!("its Subscription starts at {} from channel `stable`; nothing is installed yet", csv("1.10.1"));
    assert_eq!(text("1.10.1", &exact("1.10.1")), starts);
    assert_eq!(text("1.10.1", &Wish::default()), starts);
    assert_eq!(
        text("1.10.1", &exact("1.11.0")),
        format!("{}, which is not installed yet, is upgraded to {}", csv("1.10.1"), csv("1.11.0"))
    );
    assert_eq!(
        text("1.11.0", &exact("1.10.1")),
        format!("{} is what its Subscription starts at, which is newer than {}", csv("1.11.0"), csv("1.10.1"))
    );
}

#[test]
fn a_plan_of_another_subscription_or_of_an_earlier_life_is_not_ours() {
    let chosen = choose(&package(), &wish(Some("v1.10"), None)).unwrap();
    let wanted = chosen.published.csv.as_str();
    let mut there = subscription("openshift-operators", "certified-operators", "v1.10", None).value().clone();
    there["metadata"]["uid"] = json!("uid-of-another-life");
    let old = plan("install-old", 5, &[wanted]);
    let choice =
        |there: &serde_json::Value| choose_plan(std::slice::from_ref(&old), &Object::new(there.clone()), &chosen);
    assert_eq!(choice(&there), PlanChoice::None);
    there["status"] = json!({"installPlanRef": {"name": "install-old", "uid": "uid-of-an-older-plan"}});
    assert_eq!(choice(&there), PlanChoice::None);
    there["status"] = json!({"installPlanRef": {"name": "install-old", "uid": "uid-of-install-old"}});
    assert_eq!(choice(&there), planned(&old, wanted));
    there["status"] = json!({"installplan": {"name": "install-old"}});
    assert_eq!(choice(&there), planned(&old, wanted));
}

#[test]
fn strangers_in_a_plan_are_told_from_dependencies() {
    let wanted = "gpu-operator-certified.v22.9.0";
    let billing = "billing-operator.v5.1.0";
    let both = plan("install-q1w2e", 1, &[wanted, billing]);
    assert_eq!(strangers(&both, wanted, false, &[]), [billing]);
    // The version declares that it needs others, and nobody else asks for this one.
    assert!(strangers(&both, wanted, true, &[]).is_empty());
    let mut theirs = subscription("openshift-operators", "x", "y", None).value().clone();
    theirs["spec"]["name"] = json!("billing-operator");
    theirs["status"] = json!({"currentCSV": billing});
    assert_eq!(strangers(&both, wanted, true, &[Object::new(theirs)]), [billing]);
}
