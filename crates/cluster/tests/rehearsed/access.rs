//! Missing rights are found before anything changes, all at once.

use toolbox_cluster::kinds;
use toolbox_engine::Exit;
use toolbox_engine::plan::{Act, Effect};
use toolbox_rehearsal::api::Deny;

use crate::common::Stage;

#[tokio::test(start_paused = true)]
async fn all_gaps_are_listed_at_once() {
    let stage = Stage::new();
    stage.api.deny("tbx", Deny::verb("create", "operators.coreos.com", "subscriptions"));
    stage.api.deny("tbx", Deny::verb("get", "", "pods/log"));
    let effects = [
        Effect::on(Act::Apply, &kinds::SUBSCRIPTION, Some("openshift-nfd"), "nfd"),
        Effect::any(Act::Logs, &kinds::POD, Some("openshift-nfd")),
        Effect::any(Act::Watch, &kinds::NODE, None),
    ];
    let gaps = stage.cluster.access_gaps(&effects).await.unwrap();
    let why = stage.cluster.access_why(&gaps).unwrap();
    assert_eq!(why.exit, Exit::Access);
    assert_eq!(why.to_string(), "user/tbx: 2 rights are missing");
    assert_eq!(
        why.evidence[0].text,
        "create subscriptions.operators.coreos.com in openshift-nfd\nget pods/log in openshift-nfd"
    );
    assert_eq!(stage.cluster.access_gaps(&effects[2..]).await.unwrap(), []);
    assert_eq!(stage.cluster.access_why(&[]), None);
}
