//! The real side: glommio.
pub(super) struct RealEnv;
