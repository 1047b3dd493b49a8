//! A view of a record batch (magic 2).
