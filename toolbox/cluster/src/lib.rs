//! tool-cluster
