//! From block to block along the chain, over the borders of segments, to the first block that is
//! not there; then on to what follows it, and the verdict.

use super::scan::{ALIGN, Identity, Scanned, Scanner, mark_of};
use super::{CutReason, DamageKind, Evidence, Verdict, decide};
use crate::base::ids::{BlockSequence, Position};
use crate::env::sim::Bug;
use crate::journal::JournalError;
use crate::journal::format::{Header, SegmentMark};
use std::collections::BTreeSet;

/// Where the walk stands in the files.
#[derive(Clone, Copy, Debug)]
pub(in crate::journal) struct Place {
    /// Segment.
    pub segment: u64,
    /// Offset of the next block in it.
    pub offset: u64,
    /// Whose the segment is.
    pub identity: Identity,
}

/// What the next block must continue.
#[derive(Clone, Copy, Debug)]
pub(in crate::journal) struct Cursor {
    /// Where it may lie; `None` before the first segment.
    pub place: Option<Place>,
    /// The last block.
    pub sequence: BlockSequence,
    /// Its digest.
    pub digest: u32,
    /// Whether it holds nothing itself and vouches for all before it.
    pub sealed: bool,
    /// Most bytes its writer had in flight; 0 if unknown.
    pub window_bytes: u32,
}

/// Blocks that were acknowledged and whose headers are gone.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(in crate::journal) struct Lost {
    /// Where the first should start.
    pub from: Position,
    /// Where the next whole one starts.
    pub to: Position,
    /// The first.
    pub first: BlockSequence,
    /// The last.
    pub last: BlockSequence,
    /// Whether only a segment's mark is lost.
    pub only_mark: bool,
}

impl Lost {
    /// What is lost.
    pub(in crate::journal) fn damage_kind(&self) -> DamageKind {
        match self.only_mark {
            true => DamageKind::Bookkeeping,
            false => DamageKind::Blocks {
                first: self.first,
                last: self.last,
            },
        }
    }
}

/// One step of the walk.
#[derive(Debug)]
pub(in crate::journal) enum Step {
    /// The next block, whole.
    Block(Scanned),
    /// The next block: its header is whole, its bodies are not, and it had been acknowledged.
    Damaged(Scanned),
    /// Blocks that had been acknowledged are gone.
    Lost(Lost),
    /// Nothing more; `Some` if the tail must be cut here.
    End(Option<CutReason>),
}

/// A later block, found by looking on.
struct Found {
    place: Place,
    header: Header,
}

/// The walk along one journal, or a part of it.
pub(in crate::journal) struct Walk {
    pub(in crate::journal) scanner: Scanner,
    pub(in crate::journal) cursor: Cursor,
    /// Random id of the journal, once known.
    pub(in crate::journal) journal: Option<u64>,
    present: BTreeSet<u64>,
}

impl Walk {
    /// Starts behind `cursor`, in the segments `present`.
    pub(in crate::journal) fn new(
        scanner: Scanner,
        present: BTreeSet<u64>,
        cursor: Cursor,
        journal: Option<u64>,
    ) -> Self {
        assert!(!present.is_empty(), "a walk needs files");
        let inside = cursor
            .place
            .is_none_or(|place| present.contains(&place.segment));
        assert!(inside, "the walk starts in a file that is there");
        Self {
            scanner,
            cursor,
            journal,
            present,
        }
    }

    /// Segment and offset of the next block.
    pub(in crate::journal) fn place(&self) -> (u64, u64) {
        let first = *self.present.first().expect("a walk has files");
        self.cursor
            .place
            .map_or((first, 0), |place| (place.segment, place.offset))
    }

    /// Most bytes that one crash can have torn.
    pub(in crate::journal) fn window_bytes(&self) -> u64 {
        let ours = self.scanner.config.window_bytes();
        u64::from(ours.max(self.cursor.window_bytes))
    }

    /// Goes one step on.
    ///
    /// # Errors
    /// If the files contradict each other or the damage is wider than a crash: see `JournalError`.
    pub(in crate::journal) async fn step(&mut self) -> Result<Step, JournalError> {
        let invalid = BlockSequence(self.cursor.sequence.0 + 1);
        let here = self.expected_here(invalid).await?;
        if let Some(block) = here.as_ref().filter(|block| block.payload_valid) {
            self.pass(block.clone());
            return Ok(Step::Block(block.clone()));
        }
        if here.is_none()
            && let Some(block) = self.expected_mark(invalid).await?
        {
            let step = match block.payload_valid {
                true => Step::Block(block.clone()),
                false => Step::Damaged(block.clone()),
            };
            self.enter(&block);
            return Ok(step);
        }
        let (evidence, found) = self.look_on(invalid, here.as_ref()).await?;
        let mut verdict = decide(invalid, &evidence, self.window_bytes());
        if verdict == Verdict::Corruption && self.scanner.env.planted(Bug::CutAcknowledgedData) {
            verdict = Verdict::Cut(CutReason::Torn);
        }
        match verdict {
            Verdict::End => Ok(Step::End(None)),
            Verdict::Cut(reason) => Ok(Step::End(Some(reason))),
            Verdict::TooWide => Err(self.too_wide(invalid, &evidence)),
            Verdict::Corruption => match here {
                Some(block) => {
                    self.pass(block.clone());
                    Ok(Step::Damaged(block))
                }
                None => {
                    let found = found.expect("only a block vouches");
                    Ok(Step::Lost(self.resume(invalid, &found)))
                }
            },
        }
    }

    fn too_wide(&self, invalid: BlockSequence, evidence: &Evidence) -> JournalError {
        let place = self.cursor.place;
        let (segment, offset) = place.map_or((0, 0), |place| (place.segment, place.offset));
        let what = format!(
            "block {invalid} is not whole, no later block shows that it was acknowledged, and the \
             damage reaches {} bytes, more than the {} that one crash can tear",
            evidence.width_bytes,
            self.window_bytes()
        );
        let position = self.scanner.position(segment, offset);
        JournalError::corrupt(&self.scanner.path(segment), position, what)
    }

    /// The next block where it lies if its segment goes on, whole or with rotten bodies.
    async fn expected_here(
        &mut self,
        sequence: BlockSequence,
    ) -> Result<Option<Scanned>, JournalError> {
        let Some(place) = self.cursor.place else {
            return Ok(None);
        };
        if place.offset + ALIGN > self.scanner.config.segment_bytes {
            return Ok(None);
        }
        let nonce = Some(place.identity.incarnation);
        let header = self
            .scanner
            .header(place.segment, place.offset, nonce)
            .await?;
        let Some(header) = header.filter(|header| self.continues(header, sequence)) else {
            return Ok(None);
        };
        let block = self
            .scanner
            .block(place.segment, place.offset, header)
            .await?;
        if place.offset == 0 {
            self.check_mark(&block)?;
        }
        Ok(Some(block))
    }

    /// The next block if it opens the next segment.
    async fn expected_mark(
        &mut self,
        sequence: BlockSequence,
    ) -> Result<Option<Scanned>, JournalError> {
        let first = *self.present.first().expect("a walk has files");
        let next = self.cursor.place.map_or(first, |place| place.segment + 1);
        if self.identity(next).await?.is_none() {
            return Ok(None);
        }
        let header = self.scanner.header(next, 0, None).await?;
        let Some(header) = header.filter(|header| self.continues(header, sequence)) else {
            return Ok(None);
        };
        let block = self.scanner.block(next, 0, header).await?;
        self.check_mark(&block)?;
        Ok(Some(block))
    }

    fn continues(&self, header: &Header, sequence: BlockSequence) -> bool {
        let chained = header.previous_digest == self.cursor.digest
            || self.scanner.env.planted(Bug::ChainNotChecked);
        header.sequence == sequence && chained
    }

    async fn identity(&mut self, segment: u64) -> Result<Option<Identity>, JournalError> {
        if !self.present.contains(&segment) {
            return Ok(None);
        }
        let present = |number: u64| self.present.contains(&number);
        let identity = self.scanner.identity(segment, &present).await?;
        let mark = identity.and_then(|identity| identity.mark);
        if mark
            .zip(self.journal)
            .is_some_and(|(mark, journal)| mark.journal != journal)
        {
            let path = self.scanner.path(segment);
            return Err(JournalError::foreign(&path, "it belongs to another store"));
        }
        Ok(identity)
    }

    /// A mark that is whole must name this journal.
    fn check_mark(&mut self, block: &Scanned) -> Result<(), JournalError> {
        let path = self.scanner.path(block.segment);
        let Some(mark) = mark_of(block) else {
            return match block.payload_valid {
                true => Err(JournalError::corrupt(
                    &path,
                    block.header.position,
                    "the first block is not a segment mark",
                )),
                false => Ok(()),
            };
        };
        self.check_mark_content(block, &mark)?;
        let journal = *self.journal.get_or_insert(mark.journal);
        if journal != mark.journal {
            return Err(JournalError::foreign(&path, "it belongs to another store"));
        }
        Ok(())
    }

    fn check_mark_content(&self, block: &Scanned, mark: &SegmentMark) -> Result<(), JournalError> {
        let path = self.scanner.path(block.segment);
        let configured = self.scanner.config.segment_bytes;
        if mark.segment_bytes != configured {
            return Err(JournalError::Config(format!(
                "{} was made with segments of {} bytes, configured are {configured}",
                path.display(),
                mark.segment_bytes
            )));
        }
        let place = self
            .cursor
            .place
            .filter(|place| place.segment + 1 == block.segment);
        let follows =
            place.is_none_or(|place| place.identity.incarnation == mark.previous_incarnation);
        if mark.segment != block.segment || !follows {
            return Err(JournalError::foreign(
                &path,
                "it does not follow the segment before it",
            ));
        }
        Ok(())
    }

    /// Moves behind a block of the present segment.
    fn pass(&mut self, block: Scanned) {
        let place = self
            .cursor
            .place
            .as_mut()
            .expect("a block was found in a segment");
        assert_eq!(place.segment, block.segment);
        if place.offset == 0 {
            place.identity.mark = mark_of(&block);
        }
        place.offset += block.bytes.len() as u64;
        self.note(&block.header);
    }

    /// Moves behind the mark of the next segment.
    fn enter(&mut self, block: &Scanned) {
        let follows = self
            .cursor
            .place
            .is_none_or(|place| place.segment + 1 == block.segment);
        assert!(follows, "segments are contiguous");
        self.cursor.place = Some(Place {
            segment: block.segment,
            offset: block.bytes.len() as u64,
            identity: Identity {
                incarnation: block.header.incarnation,
                mark: mark_of(block),
            },
        });
        self.note(&block.header);
    }

    fn note(&mut self, header: &Header) {
        assert_eq!(
            header.sequence.0,
            self.cursor.sequence.0 + 1,
            "the walk skips nothing"
        );
        let vouches = header.durable == self.cursor.sequence;
        self.cursor.sequence = header.sequence;
        self.cursor.digest = header.digest;
        self.cursor.window_bytes = header.window_bytes;
        // Small and vouching: a seal or a mark. A small data block that vouches is not sealed, but
        // then the writer only seals it once more.
        self.cursor.sealed = vouches
            && header.payload_len as usize <= crate::journal::format::SEGMENT_MARK_BYTES
            && header.entry_count == 1;
    }

    /// Goes on at a block found behind lost ones.
    fn resume(&mut self, first: BlockSequence, found: &Found) -> Lost {
        let from = match self.cursor.place {
            Some(place) => self.scanner.position(place.segment, place.offset),
            None => self.scanner.position(found.place.segment, 0),
        };
        let last = BlockSequence(found.header.sequence.0 - 1);
        assert!(last >= first, "something is lost between");
        self.cursor.place = Some(found.place);
        self.cursor.sequence = last;
        self.cursor.digest = found.header.previous_digest;
        self.cursor.sealed = false;
        Lost {
            from,
            to: self
                .scanner
                .position(found.place.segment, found.place.offset),
            first,
            last,
            // The block behind a mark starts at a fixed place, so one lost block before it was it.
            only_mark: first == last && found.place.offset == ALIGN,
        }
    }

    /// Collects what lies behind the first invalid block, up to the first proof that it had been
    /// acknowledged.
    async fn look_on(
        &mut self,
        invalid: BlockSequence,
        here: Option<&Scanned>,
    ) -> Result<(Evidence, Option<Found>), JournalError> {
        let mut evidence = Evidence::default();
        let mut found = None;
        if let Some(block) = here {
            evidence.traces = true;
            evidence.width_bytes = block.bytes.len() as u64;
        }
        let start = self.cursor.place.map_or(0, |place| place.segment);
        let segments: Vec<u64> = self.present.range(start..).copied().collect();
        for segment in segments {
            let own = self.cursor.place.filter(|place| place.segment == segment);
            let range = match own {
                Some(place) => Range {
                    segment,
                    identity: Some(place.identity),
                    base: place.offset,
                    start: place.offset + here.map_or(0, |block| block.bytes.len() as u64),
                    end: self.scanner.config.segment_bytes,
                },
                None => self.later_segment(segment).await?,
            };
            self.look_through(range, invalid, &mut evidence, &mut found)
                .await?;
            if evidence.vouched >= invalid {
                break;
            }
        }
        Ok((evidence, found))
    }

    /// A later segment is read whole if it says whose it is. If it does not, only a torn beginning
    /// can be in it.
    async fn later_segment(&mut self, segment: u64) -> Result<Range, JournalError> {
        let identity = self.identity(segment).await?;
        let whole = self.scanner.config.segment_bytes;
        let end = match identity {
            Some(_) => whole,
            None => whole.min(self.window_bytes().next_multiple_of(ALIGN)),
        };
        Ok(Range {
            segment,
            identity,
            base: 0,
            start: 0,
            end,
        })
    }

    async fn look_through(
        &mut self,
        range: Range,
        invalid: BlockSequence,
        evidence: &mut Evidence,
        found: &mut Option<Found>,
    ) -> Result<(), JournalError> {
        let Range {
            segment, identity, ..
        } = range;
        let nonce = identity.map(|identity| identity.incarnation);
        let mut at = range.start;
        assert!(range.base <= range.start && range.end <= self.scanner.config.segment_bytes);
        while at + ALIGN <= range.end {
            let header = match nonce {
                Some(_) => self.scanner.header(segment, at, nonce).await?,
                None => None,
            };
            let mut step = ALIGN;
            if let (Some(header), Some(identity)) =
                (header.filter(|header| header.sequence >= invalid), identity)
            {
                step = header.block_len() as u64;
                evidence.later = true;
                evidence.traces = true;
                evidence.width_bytes = evidence.width_bytes.max(at + step - range.base);
                evidence.vouched = evidence.vouched.max(header.durable);
                let place = Place {
                    segment,
                    offset: at,
                    identity,
                };
                if header.sequence > invalid && found.is_none() {
                    *found = Some(Found { place, header });
                }
                if evidence.vouched >= invalid && found.is_some() {
                    return Ok(());
                }
            } else {
                let strict = at != range.base;
                let id = identity.as_ref();
                if self.scanner.is_trace(segment, at, id, strict).await? {
                    evidence.traces = true;
                    evidence.width_bytes = evidence.width_bytes.max(at + ALIGN - range.base);
                }
            }
            at += step;
        }
        Ok(())
    }
}

/// What is looked through of one segment.
struct Range {
    segment: u64,
    identity: Option<Identity>,
    /// From where widths count.
    base: u64,
    start: u64,
    end: u64,
}
