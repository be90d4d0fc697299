//! OpenShift gives every service account a pull secret for the cluster's own registry; operators wait for it.

use anyhow::{Context, Result};
use k8s_openapi::api::core::v1::{Secret, ServiceAccount};
use kube::api::{Api, Patch, PatchParams, PostParams};
use kube::{Client, ResourceExt};
use serde_json::json;

use super::cloud::{is_conflict, is_missing};
use super::watch::{Change, watch};
use crate::supervise::say;

pub(super) async fn run(client: Client) {
    let mut changes = watch(Api::<ServiceAccount>::all(client.clone()), "service accounts");
    while let Some(change) = changes.recv().await {
        let Change::Seen(account) = change else { continue };
        if let Err(error) = equip(&client, &account).await {
            say(&format!("service account {}: {error:#}", account.name_any()));
        }
    }
}

async fn equip(client: &Client, account: &ServiceAccount) -> Result<()> {
    let namespace = account.namespace().unwrap_or_default();
    let prefix = format!("{}-dockercfg-", account.name_any());
    let has = account
        .secrets
        .iter()
        .flatten()
        .any(|secret| secret.name.as_deref().is_some_and(|name| name.starts_with(&prefix)));
    if has || namespace.starts_with("kube-") || account.metadata.deletion_timestamp.is_some() {
        return Ok(());
    }
    let uid = account.uid().context("an account without a uid")?;
    let name = format!("{prefix}{}", uid.get(..5).unwrap_or("00000"));
    let secret: Secret = serde_json::from_value(json!({
        "metadata": {
            "name": name,
            "ownerReferences": [{
                "apiVersion": "v1", "kind": "ServiceAccount", "name": account.name_any(), "uid": uid,
            }],
        },
        "type": "kubernetes.io/dockercfg",
        // `{}` in base64.
        "data": { ".dockercfg": "e30=" },
    }))?;
    let secrets: Api<Secret> = Api::namespaced(client.clone(), &namespace);
    match secrets.create(&PostParams::default(), &secret).await {
        Err(error) if !is_conflict(&error) && !is_missing(&error) && !is_forbidden(&error) => {
            return Err(error).context("cannot make its pull secret");
        }
        _ => {}
    }
    let accounts: Api<ServiceAccount> = Api::namespaced(client.clone(), &namespace);
    let patch = json!({ "secrets": [{ "name": name }], "imagePullSecrets": [{ "name": name }] });
    match accounts.patch(&account.name_any(), &PatchParams::default(), &Patch::Strategic(&patch)).await {
        Err(error) if !is_missing(&error) => Err(error).context("cannot refer to its pull secret"),
        _ => Ok(()),
    }
}

/// A namespace on its way out takes no new objects.
fn is_forbidden(error: &kube::Error) -> bool {
    matches!(error, kube::Error::Api(status) if status.code == 403)
}
