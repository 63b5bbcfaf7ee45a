//! What several tests of this crate need.

pub(crate) mod meddler;
