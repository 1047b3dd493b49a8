//! Frames, seen whole.
