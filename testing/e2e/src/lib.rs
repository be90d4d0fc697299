//! testing-e2e
