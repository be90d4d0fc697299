//! The floor against arithmetic by hand, and against what the cluster does.

use toolbox_rehearsal::scenario::Scenario;
use toolbox_rehearsal::{FloorRequest, World};

use crate::support::*;

/// Every time fixed, and round enough to add up by hand.
const ROUND: &str = "
name: round
timings: {machineProvision: 10, nodeBoot: 200, nodeReady: 20, podSandbox: 1, containerStart: 0.5, containerReady: 2,
  subscriptionResolve: 1, bundleUnpack: 2, planWritten: 0.5, planInstall: 1, csvRequirements: 1, csvInstall: 1, operatorReconcile: 1,
  nfdLabel: 1, driverBuild: 100, validation: 1, workloadValidation: 6, devicePluginRegister: 1, gfdLabel: 1, burnCompile: 20}
images:
  nfd-operator: {pull: 5}
  nfd: {pull: 5}
  gpu-operator: {pull: 5}
  driver: {pull: 20}
  validator: {pull: 7}
  toolkit: {pull: 7}
  device-plugin: {pull: 5}
  dcgm: {pull: 9}
  dcgm-exporter: {pull: 9}
  gfd: {pull: 5}
  burn: {pull: 60}
";

#[tokio::test(start_paused = true)]
async fn the_floor_is_what_a_hand_adds_up() {
    let world = World::start(Scenario::from_yaml("round.yaml", ROUND).unwrap(), 1, clock()).await.unwrap();
    let request = FloorRequest { burn_seconds: 30, ..FloorRequest::default() };
    let floor = world.floor_parts(&request);
    let operator = 1.0 + 2.0 + 0.5 + 1.0 + 1.0 + 1.0 + (1.0 + 5.0 + 0.5 + 2.0) + 1.0;
    assert_eq!((floor.nfd_deployed, floor.gpu_operator_deployed), (operator, operator));
    let node = 10.0 + 200.0 + 20.0;
    assert_eq!(floor.node_ready, node);
    let label = node + (1.0 + 5.0 + 0.5 + 2.0) + 1.0;
    assert_eq!(floor.gpu_label, label);
    // The driver's init container needs the validator's image and one look.
    let driver = label + (1.0 + 7.0 + 0.5 + 1.0) + (20.0 + 0.5 + 100.0);
    assert_eq!(floor.driver_ready, driver);
    let toolkit = driver + 1.0 + (7.0 + 0.5 + 2.0);
    let announced = toolkit + 1.0 + (5.0 + 0.5 + 2.0) + 1.0;
    let cuda = toolkit + 1.0 + (0.5 + 6.0);
    let plugin = (cuda + 0.5).max(announced) + 6.0;
    let validated = plugin + 0.5 + 2.0;
    assert_eq!(floor.validated, validated);
    assert_eq!(floor.total(), validated + (1.0 + 60.0 + 0.5 + 20.0) + 30.0);
    assert_eq!(world.floor(&request), 509.5);
}

#[tokio::test(start_paused = true)]
async fn a_node_that_is_there_leaves_only_the_operators() {
    let text =
        format!("{ROUND}\nmachineSets: [{{name: gpu, zone: us-test-1a, instanceType: g4dn.xlarge, replicas: 1}}]");
    let world = World::start(Scenario::from_yaml("there.yaml", &text).unwrap(), 1, clock()).await.unwrap();
    let floor = world.floor_parts(&FloorRequest::default());
    assert_eq!((floor.node_ready, floor.gpu_label), (0.0, 16.0 + 9.5));
}
