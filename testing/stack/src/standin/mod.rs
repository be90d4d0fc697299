//! What is played here because it needs a cloud, a kubelet or hardware. All of them are ordinary clients of
//! the API server, and run as long as the stack does.

mod accounts;
mod burn;
mod cloud;
mod faults;
mod hardware;
mod kubelet;
mod nfd;
mod watch;

use std::time::Duration;

use anyhow::Result;
use k8s_openapi::api::core::v1::Node;
use kube::Client;
use kube::api::{Api, ListParams};

use crate::control::Fault;
use crate::supervise::{Shared, until};

/// Starts the stand-ins.
pub(crate) fn start(shared: &Shared, client: &Client) {
    tokio::spawn(cloud::run(shared.clone(), client.clone()));
    tokio::spawn(accounts::run(client.clone()));
    tokio::spawn(kubelet::run(shared.clone(), client.clone()));
}

/// Waits until the machine sets that are there from the start have their nodes.
pub(crate) async fn workers_ready(client: &Client) -> Result<()> {
    let nodes: Api<Node> = Api::all(client.clone());
    until("three worker nodes to be Ready", Duration::from_secs(60), async || {
        let list = nodes.list(&ListParams::default()).await?;
        let ready = list.items.iter().filter(|node| hardware::is_ready(node)).count();
        Ok((ready >= 3).then_some(()))
    })
    .await
}

/// Makes something go wrong from now on.
pub(crate) async fn set_fault(shared: &Shared, fault: Fault) -> Result<()> {
    let client = crate::client::connect(&shared.dir.kubeconfig_inside()).await?;
    faults::set(&client, &fault).await?;
    shared.faults.set(fault);
    Ok(())
}

/// Takes a fault back.
pub(crate) async fn clear_fault(shared: &Shared, fault: &Fault) -> Result<()> {
    let client = crate::client::connect(&shared.dir.kubeconfig_inside()).await?;
    shared.faults.clear(fault);
    faults::clear(&client, fault).await
}
