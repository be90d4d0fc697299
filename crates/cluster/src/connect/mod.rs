//! Finding the cluster: kubeconfig, context, proxy, credentials.

mod credentials;

pub(crate) use credentials::credentials_trouble;
