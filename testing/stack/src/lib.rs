//! testing-stack
