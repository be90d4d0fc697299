//! toolbox-core
