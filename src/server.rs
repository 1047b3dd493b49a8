//! Starts the cores, wires them together, stops them.
