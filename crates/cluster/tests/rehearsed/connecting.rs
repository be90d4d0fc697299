//! Connecting for real: TLS, tokens, contexts, against the rehearsal served on loopback.

use std::collections::BTreeMap;
use std::path::PathBuf;

use toolbox_cluster::{Cluster, ClusterInfo, ConnectOptions, Query, kinds};
use toolbox_engine::{Clock, Exit, Why};
use toolbox_rehearsal::serve::{ServeOptions, Served, serve};

use crate::common::Stage;

struct Place {
    dir: tempfile::TempDir,
    served: Served,
}

impl Place {
    async fn new() -> Self {
        let stage = Stage::new();
        let options = ServeOptions { users: vec!["jane".into()], ..ServeOptions::default() };
        Self { dir: tempfile::tempdir().unwrap(), served: serve(stage.api, options).await.unwrap() }
    }

    fn options(&self, kubeconfig: &str) -> ConnectOptions {
        let file: PathBuf = self.dir.path().join("kubeconfig");
        std::fs::write(&file, kubeconfig).unwrap();
        ConnectOptions {
            environment: BTreeMap::from([("KUBECONFIG".to_owned(), file.to_str().unwrap().to_owned())]),
            retry_budget: Some(std::time::Duration::from_millis(500)),
            ..ConnectOptions::default()
        }
    }

    async fn connect(&self, kubeconfig: &str) -> Result<Cluster, Why> {
        Cluster::connect(&self.options(kubeconfig), Clock::real()).await
    }
}

#[tokio::test]
async fn a_cluster_is_found_and_says_what_it_is() {
    let place = Place::new().await;
    let cluster = place.connect(&place.served.kubeconfig()).await.unwrap();
    let ClusterInfo { server, version, source, context, .. } = cluster.info().clone();
    assert!(server.starts_with("https://127.0.0.1:"), "{server}");
    assert_eq!(version, "v1.34.4");
    assert!(source.starts_with("KUBECONFIG="), "{source}");
    assert_eq!(context.as_deref(), Some("rehearsal"));
    assert_eq!(cluster.list(&Query::all(&kinds::NAMESPACE)).await.unwrap().len(), 4);
    let mut options = place.options(&place.served.kubeconfig());
    options.context = Some("jane".to_owned());
    let cluster = Cluster::connect(&options, Clock::real()).await.unwrap();
    assert_eq!(cluster.info().user.as_deref(), Some("jane"));
}

#[tokio::test]
async fn a_certificate_of_a_stranger_is_named_as_the_trouble_at_once() {
    let (one, other) = (Place::new().await, Place::new().await);
    let authority = |text: &str| {
        let line = text.lines().find(|line| line.contains("certificate-authority-data")).unwrap();
        line.split_once(": ").unwrap().1.to_owned()
    };
    let (own, foreign) = (one.served.kubeconfig(), other.served.kubeconfig());
    let wrong = own.replace(&authority(&own), &authority(&foreign));
    let why = one.connect(&wrong).await.unwrap_err();
    assert_eq!((why.exit, &*why.code), (Exit::Access, "certificate-not-trusted"), "{why:?}");
    assert!(why.next.contains("certificate-authority-data"));
}

#[tokio::test]
async fn a_token_that_is_not_known_is_an_error_with_the_next_step() {
    let place = Place::new().await;
    let wrong = place.served.kubeconfig().replace("token: \"", "token: \"not-");
    let why = place.connect(&wrong).await.unwrap_err();
    assert_eq!((why.exit, &*why.code), (Exit::Access, "not-authenticated"), "{why:?}");
    assert!(!format!("{why:?}").contains("not-rehearsal"));
}
