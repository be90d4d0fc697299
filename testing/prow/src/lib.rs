//! testing-prow
