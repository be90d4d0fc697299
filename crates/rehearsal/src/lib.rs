//! toolbox-rehearsal
