//! The facts that the tools rely on, proved on the rehearsal.

use anyhow::Result;
use testing_e2e::{Target, facts};
use testing_stack::Version;

async fn prove(version: Version) -> Result<()> {
    let target = Target::rehearsal(version).await?;
    let count = facts::prove(&target).await?;
    assert!(count > 0);
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn facts_hold_in_the_rehearsal_as_1_24() -> Result<()> {
    prove(Version::V1_24).await
}

#[tokio::test(start_paused = true)]
async fn facts_hold_in_the_rehearsal_as_1_34() -> Result<()> {
    prove(Version::V1_34).await
}
