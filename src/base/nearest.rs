//! The known name nearest to a mistyped one.

/// The candidate with the smallest edit distance to `name`, if it is near enough to be meant.
#[must_use]
pub fn nearest<'a>(name: &str, candidates: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    candidates
        .map(|candidate| (distance(name, candidate), candidate))
        .min()
        .filter(|(edits, candidate)| *edits * 2 <= candidate.len().max(name.len()))
        .map(|(_, candidate)| candidate)
}

/// Edits (insert, remove, replace, swap of neighbours) that turn `a` into `b`.
fn distance(a: &str, b: &str) -> usize {
    let a: Vec<char> = a.chars().collect();
    let b: Vec<char> = b.chars().collect();
    let mut rows = vec![vec![0usize; b.len() + 1]; a.len() + 1];
    for (i, row) in rows.iter_mut().enumerate() {
        row[0] = i;
    }
    for (j, cell) in rows[0].iter_mut().enumerate() {
        *cell = j;
    }
    for i in 1..=a.len() {
        for j in 1..=b.len() {
            let replaced = rows[i - 1][j - 1] + usize::from(a[i - 1] != b[j - 1]);
            let mut best = replaced.min(rows[i - 1][j] + 1).min(rows[i][j - 1] + 1);
            if i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] {
                best = best.min(rows[i - 2][j - 2] + 1);
            }
            rows[i][j] = best;
        }
    }
    rows[a.len()][b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: a slip finds its key and noise finds none. Method: typical slips.
    #[test]
    fn slips_are_understood() {
        let keys = ["commit_depth", "commit_mode", "cores", "data"];
        let find = |name| nearest(name, keys.iter().copied());
        assert_eq!(find("comit_depth"), Some("commit_depth"));
        assert_eq!(find("commit-mode"), Some("commit_mode"));
        assert_eq!(find("croes"), Some("cores"));
        assert_eq!(find("zookeeper"), None);
    }
}
