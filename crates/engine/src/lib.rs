//! toolbox-engine
