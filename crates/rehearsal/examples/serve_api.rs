//! Serves an empty cluster on loopback and prints the kubeconfig: `cargo run --example serve_api > kubeconfig`.

#![expect(clippy::print_stdout, reason = "the kubeconfig is this example's result")]

use toolbox_engine::Clock;
use toolbox_rehearsal::{
    ApiOptions, ApiServer, KubeVersion,
    serve::{ServeError, ServeOptions, serve},
};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), ServeError> {
    let version = KubeVersion::new(1, 32, 0);
    let api = ApiServer::new(ApiOptions { clock: Clock::real(), seed: 1, version, openshift: true });
    let served = serve(api, ServeOptions { users: vec!["jane".into()], ..ServeOptions::default() }).await?;
    println!("{}", served.kubeconfig());
    std::future::pending().await
}
