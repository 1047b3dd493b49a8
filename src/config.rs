//! Every key of the configuration: value, default, meaning.
