//! toolbox-testkit
