//! What more than one bench needs: [`median`], [`raise_descriptors`].

#![allow(dead_code, reason = "every bench uses its own part of this")]

/// The middle value; the mean of the two in the middle. There must be one.
pub fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    let middle = values.len() / 2;
    if values.len() % 2 == 1 {
        values[middle]
    } else {
        f64::midpoint(values[middle - 1], values[middle])
    }
}

/// As many descriptors as this process may have.
pub fn raise_descriptors() {
    // SAFETY: plain structs in, plain structs out.
    unsafe {
        let mut limit = libc::rlimit {
            rlim_cur: 0,
            rlim_max: 0,
        };
        libc::getrlimit(libc::RLIMIT_NOFILE, &raw mut limit);
        limit.rlim_cur = limit.rlim_max;
        libc::setrlimit(libc::RLIMIT_NOFILE, &raw const limit);
    }
}
