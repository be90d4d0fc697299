//! The API server, as clients see it.

mod apply;
mod common;
mod crd;
mod discovery;
mod gc;
mod objects;
mod pods;
mod watch;
