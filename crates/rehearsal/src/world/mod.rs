//! A running simulated cluster: the API server, what the scenario puts there, and all controllers.

mod faults;
mod floor;
mod replay;
mod seed;
mod strike;

use std::sync::Arc;

use kube::Client;
use thiserror::Error;
use tokio::task::JoinSet;
use toolbox_engine::Clock;

pub use floor::{Floor, FloorRequest};
pub use strike::Witness;

use crate::api::{ApiOptions, ApiServer, KubeVersion};
use crate::controllers::{self, Context, HandsOff, Live, PackageManifests};
use crate::scenario::{Dice, Scenario};
use replay::Player;

/// Why a world cannot be started.
#[derive(Debug, Error)]
pub enum WorldError {
    /// The scenario's Kubernetes version is none.
    #[error("scenario field `kubernetes`: {reason}")]
    Version {
        /// What is wrong with it.
        reason: String,
    },
    /// The scenario's objects cannot be created.
    #[error("cannot create `{object}` of the scenario")]
    Seed {
        /// Kind and name.
        object: String,
        /// The API's answer.
        #[source]
        source: kube::Error,
    },
}

/// A simulated cluster. Dropping it stops its controllers.
pub struct World {
    api: ApiServer,
    context: Context,
    witness: Witness,
    _controllers: JoinSet<()>,
    _faults: JoinSet<()>,
}

impl World {
    /// Starts a cluster on the current runtime, which should be single-threaded for runs that repeat. Everything that the
    /// scenario says was there before is there when this returns, and no time has passed.
    pub async fn start(scenario: Scenario, seed: u64, clock: Clock) -> Result<Self, WorldError> {
        let version: KubeVersion = scenario.kubernetes.parse().map_err(|reason| WorldError::Version { reason })?;
        let openshift = !scenario.openshift.is_empty();
        // Everything that belongs to the cluster lives by the cluster's own clock.
        let clock = clock.ahead_by(faults::skew(&scenario));
        let api = ApiServer::new(ApiOptions { clock: clock.clone(), seed, version, openshift });
        let scenario = Arc::new(scenario);
        let live = Live::new(scenario.clone());
        let hands_off = HandsOff::default();
        let context =
            Context { client: api.client_inside(USER), clock, scenario, live, hands_off, dice: Dice::new(seed) };
        let packages = PackageManifests::default();
        seed::seed(&api, &context, &packages).await?;
        let mut player = context.scenario.recorded.clone().map(|recording| Player::new(&context, recording));
        if let Some(player) = &mut player {
            let failed = |source| WorldError::Seed { object: "what was recorded".to_owned(), source };
            player.begin().await.map_err(failed)?;
        }
        let mut faults = faults::start(&api, &context);
        strike::start(&api, &context, &mut faults);
        if let Some(player) = player {
            faults.spawn(player.go_on());
        }
        let witness = Witness::new(&api, &context);
        let controllers = controllers::start(&context, api.logs().clone(), packages);
        Ok(Self { api, context, witness, _controllers: controllers, _faults: faults })
    }

    /// A client of the cluster's administrator.
    pub fn client(&self) -> Client {
        self.api.client()
    }

    /// The API server, for faults, logs and counts.
    pub fn api(&self) -> &ApiServer {
        &self.api
    }

    /// The scenario that this world was made from.
    pub fn scenario(&self) -> &Scenario {
        &self.context.scenario
    }

    /// Takes in what happens in the run that this world serves, for faults that wait for it.
    pub fn witness(&self) -> Witness {
        self.witness.clone()
    }

    /// The least time in which the scenario's own causes allow a job to be done, in seconds.
    pub fn floor(&self, request: &FloorRequest) -> f64 {
        Floor::of(&self.context, request).total()
    }

    /// The floor with its parts.
    pub fn floor_parts(&self, request: &FloorRequest) -> Floor {
        Floor::of(&self.context, request)
    }
}

/// Whom the simulated controllers act as: faults of the API that are meant for tools spare it.
pub const USER: &str = "system:rehearsal";
