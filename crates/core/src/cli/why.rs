//! `why`: what holds an object up, on the live cluster.

use toolbox_cluster::Cluster;
use toolbox_engine::{Report, Why};

use super::display::Paint;
use super::own::WhyArgs;

/// Looks at the object and at everything around it.
pub(crate) async fn why(_: &Cluster, args: &WhyArgs, _: Paint) -> Result<Report, Why> {
    Err(super::wrong_flag("why", format!("`{}` cannot be looked at yet", args.object), "use kubectl describe"))
}
