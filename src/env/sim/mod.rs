//! The simulated side.
/// Simulated environment.
pub struct SimEnv;
