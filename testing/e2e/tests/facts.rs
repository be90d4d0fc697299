//! The facts that the tools rely on, proved on real API servers.

use anyhow::Result;
use testing_e2e::{Target, facts};
use testing_stack::Version;

async fn prove(name: &str, version: Version) -> Result<()> {
    let target = Target::real(name, version).await?;
    let count = facts::prove(&target).await?;
    assert!(count > 0);
    target.finish().await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn facts_hold_on_kubernetes_1_24() -> Result<()> {
    prove("facts-1-24", Version::V1_24).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn facts_hold_on_kubernetes_1_34() -> Result<()> {
    prove("facts-1-34", Version::V1_34).await
}
