//! toolbox-cluster
