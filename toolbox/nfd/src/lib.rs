//! tool-nfd
