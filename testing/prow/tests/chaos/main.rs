//! The main job while the API is in trouble: whatever the API server, the network, credentials and clocks do to it, the
//! job ends with the cluster in the state that it would have had anyway, or says why it could not.

#![expect(clippy::unwrap_used, reason = "helpers of tests fail by panicking")]
#![expect(clippy::print_stderr, reason = "what the seeds met is for whoever reads the test's output")]

mod dice;
mod lasting;
mod named;
mod random;
mod support;
