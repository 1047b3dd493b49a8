//! The fault plan of a simulated disk: which operation fails, and how.
//!
//! Two uses. A *rule* hits the n-th operation of a kind (SQLite's style: for every n until a run
//! ends without a hit). Rules are counted per plan, so the same plan on the same seed hits the same
//! operation.

/// What an operation does, as the plan counts them.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum OpKind {
    /// Any operation below.
    Any,
    /// Opening or listing.
    Open,
    /// Reading file contents.
    Read,
    /// Writing file contents.
    Write,
    /// Flushing a file.
    Sync,
    /// Making a file or folder, or setting a new file's length.
    Create,
    /// Renaming.
    Rename,
    /// Removing.
    Remove,
    /// Flushing a directory.
    SyncDir,
}

impl OpKind {
    pub(super) fn verb(self) -> &'static str {
        match self {
            OpKind::Any => "use",
            OpKind::Open => "open",
            OpKind::Read => "read",
            OpKind::Write => "write",
            OpKind::Sync => "flush",
            OpKind::Create => "create",
            OpKind::Rename => "rename",
            OpKind::Remove => "remove",
            OpKind::SyncDir => "flush directory",
        }
    }
}

/// How an operation goes wrong.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Fault {
    /// Fails with this error number. A write lands as some prefix; a flush forgets: what it should
    /// have made durable never will be, though a later flush answers `Ok` (Linux since 4.13).
    Errno(i32),
    /// Answers `Ok` and makes nothing durable (a lying flush). Only for `Sync` and `SyncDir`.
    Lie,
    /// A read returns fewer bytes than the file has; a write lands as a prefix and fails with
    /// `EIO`.
    Short,
    /// A read returns its bytes with one bit turned, chosen by the seed.
    BitFlip,
}

/// The n-th operation of a kind goes wrong.
#[derive(Clone, Debug)]
pub struct Rule {
    /// Which operations are counted.
    pub kind: OpKind,
    /// Counted only if the path contains this text.
    pub path_contains: Option<String>,
    /// The first operation that is hit, from 1.
    pub nth: u64,
    /// How many operations in a row are hit.
    pub times: u64,
    /// What happens.
    pub fault: Fault,
}

/// All rules of one run.
#[derive(Clone, Debug, Default)]
pub struct FaultPlan {
    rules: Vec<(Rule, u64)>,
    hits: u64,
}

impl FaultPlan {
    /// A plan without faults.
    #[must_use]
    pub fn none() -> Self {
        Self::default()
    }

    /// A plan where the `nth` operation of `kind` (from 1) meets `fault`, once.
    #[must_use]
    pub fn nth(kind: OpKind, nth: u64, fault: Fault) -> Self {
        Self::none().and(Rule {
            kind,
            path_contains: None,
            nth,
            times: 1,
            fault,
        })
    }

    /// This plan and one more rule.
    #[must_use]
    pub fn and(mut self, rule: Rule) -> Self {
        assert!(rule.nth > 0, "operations are counted from 1");
        self.rules.push((rule, 0));
        self
    }

    /// Whether the plan has no rule.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.rules.is_empty()
    }

    /// How many operations were hit so far.
    #[must_use]
    pub fn hits(&self) -> u64 {
        self.hits
    }

    /// Counts one operation; the fault it meets, if any.
    pub(super) fn count(&mut self, kind: OpKind, path: &str) -> Option<Fault> {
        let mut found = None;
        for (rule, seen) in &mut self.rules {
            let counted = rule.kind == OpKind::Any || rule.kind == kind;
            let here = rule
                .path_contains
                .as_ref()
                .is_none_or(|text| path.contains(text.as_str()));
            if !counted || !here {
                continue;
            }
            *seen += 1;
            if *seen >= rule.nth && *seen - rule.nth < rule.times {
                found = found.or(Some(rule.fault));
            }
        }
        self.hits += u64::from(found.is_some());
        found
    }
}
