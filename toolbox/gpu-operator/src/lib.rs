//! tool-gpu-operator
