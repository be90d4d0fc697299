//! A server for tests that answers by a function.

use std::sync::{Arc, Mutex};

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::{BodyExt as _, Full};
use kube::client::Body;
use serde_json::Value;
use toolbox_engine::Clock;

use crate::{Cluster, ClusterInfo};

/// What was asked.
pub(crate) struct Asked {
    pub(crate) method: String,
    pub(crate) path: String,
    body: Bytes,
}

impl Asked {
    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap()
    }
}

/// Status and body; an object's `retryAfter` becomes the header.
type Reply = Result<(u16, Value), String>;
type Answerer = Box<dyn Fn(&Asked) -> Reply + Send + Sync>;

#[derive(Clone, Default)]
pub(crate) struct Script {
    answer: Arc<Mutex<Option<Answerer>>>,
}

impl Script {
    pub(crate) fn new() -> Self {
        Self::default()
    }

    pub(crate) fn answer(&self, answer: impl Fn(&Asked) -> Reply + Send + Sync + 'static) {
        *self.answer.lock().unwrap() = Some(Box::new(answer));
    }
}

pub(crate) fn client(script: &Script) -> kube::Client {
    let script = script.clone();
    let service = tower::service_fn(move |request: Request<Body>| {
        let script = script.clone();
        async move {
            let (parts, body) = request.into_parts();
            let asked = Asked {
                method: parts.method.to_string(),
                path: parts.uri.to_string(),
                body: body.collect().await.unwrap().to_bytes(),
            };
            let answer = script.answer.lock().unwrap();
            let (status, value) = answer.as_ref().unwrap()(&asked).map_err(std::io::Error::other)?;
            let retry_after = value["retryAfter"].as_u64();
            let body = match value {
                Value::String(text) => text,
                value => value.to_string(),
            };
            let mut response = Response::builder().status(status);
            if let Some(seconds) = retry_after {
                response = response.header("Retry-After", seconds);
            }
            Ok::<_, std::io::Error>(response.body(Full::new(Bytes::from(body))).unwrap())
        }
    });
    kube::Client::new(service, "default")
}

pub(crate) fn cluster(script: &Script) -> Cluster {
    let info = ClusterInfo { server: "https://api.example.test:6443".to_owned(), ..ClusterInfo::default() };
    Cluster::from_client(client(script), info, Clock::starting_at(jiff::Timestamp::UNIX_EPOCH))
}
