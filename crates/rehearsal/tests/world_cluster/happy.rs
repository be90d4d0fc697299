//! The whole job without any fault, and its floor.

use toolbox_rehearsal::{FloorRequest, World};

use crate::support::*;

/// The job of a plan without idle time: when it was done.
async fn run(world: &World, request: &FloorRequest) -> f64 {
    let nodes = deploy_all(world, request).await;
    let mut pods = Vec::new();
    for node in &nodes {
        pods.push(burn(world, node, request.burn_seconds).await);
    }
    for pod in &pods {
        until(world, POD, "default", pod, |pod| phase(pod) == "Succeeded").await;
        let text = world.api().logs().text("default", pod, "gpu-burn-ctr");
        assert!(text.contains("Tested 1 GPUs:\n\tGPU 0: OK"), "{text}");
    }
    elapsed(world)
}

#[tokio::test(start_paused = true)]
async fn the_best_plan_takes_just_the_floor() {
    for (seed, replicas) in [(1, 1), (2, 1), (3, 2)] {
        let world = world("default", &[], seed).await;
        let request = FloorRequest { replicas, ..FloorRequest::default() };
        let floor = world.floor(&request);
        let took = run(&world, &request).await;
        assert!(took >= floor - 0.001, "seed {seed}: took {took}, floor {floor}");
        assert!(took <= floor * 1.01, "seed {seed}: took {took}, floor {floor}\n{:#?}", world.floor_parts(&request));
    }
}
