//! Frames, seen whole: what each size shows is kept in `tests/data/top-frames.txt`, so that a
//! change of the picture is seen in review. `PENSTOCK_WRITE_FRAMES=1` writes it anew.

use super::figures::{Figures, Step};
use super::frame::{Frame, Size};
use super::number::Glyphs;
use super::source::Tape;
use super::story::Story;
use super::view::{Deed, Link, Tab, View};
use crate::admin::cli::TabArg;
use crate::base::ids::CoreId;
use crate::env::blocking::{Key, read_file, write_file};
use crate::metrics::{CoreMetrics, Dump, TopicFigures, Topics};
use serde_json::json;
use std::path::Path;
use std::rc::Rc;

/// A made-up broker whose load is the same in every run.
struct Broker {
    cores: Vec<Rc<CoreMetrics>>,
    unix_ms: i64,
    sent: u64,
}

impl Broker {
    fn new(cores: u16) -> Broker {
        let core = |core| CoreMetrics::new(CoreId(core), u32::from(core));
        Broker {
            cores: (0..cores).map(core).collect(),
            unix_ms: 1_796_040_000_000,
            sent: 0,
        }
    }

    /// A second goes by: core 0 has twice as much to do as the others, and more every second.
    fn pass(&mut self) {
        self.unix_ms += 1000;
        self.sent += 1;
        for (index, core) in self.cores.iter().enumerate() {
            let index = index as u64;
            let percent = match index {
                0 => (56 + 3 * self.sent).min(98),
                _ => 20 + (index * 37 + self.sent * 11) % 30,
            };
            core.runtime.wall.set(self.sent * 1_000_000_000);
            core.runtime.cpu.add(percent * 10_000_000);
            core.produce.records.add(percent * 2_160);
            core.produce.accepted.add(percent * 2_160_000);
            core.fetch.records.add(percent * 4_000);
            core.fetch.served.add(percent * 4_000_000);
            core.forward.sent.add(u64::from(index == 1) * 1_250);
            core.connections.open.set(128);
            core.admission.used.set(12_000_000);
            core.journal
                .cached
                .set(400_000_000 - index as i64 * 1_000_000);
            core.journal.blocks.add(1_480);
            core.journal.entries.add(percent * 2_160);
            for round in 0..100_u64 {
                let slow = round == 99 && self.sent.is_multiple_of(7) && index == 0;
                let ns = if slow {
                    18_200_000
                } else {
                    300_000 + round * 900
                };
                core.journal.write.record(ns);
                core.stages.write.record(ns);
                core.stages.append.record(60_000);
                core.stages.reply.record(50_000);
                core.stages.read.record(30_000);
            }
        }
    }

    fn dump(&self) -> Dump {
        let topic = |name: &str, share: u64| TopicFigures {
            name: name.to_owned(),
            id: name.to_owned(),
            partitions: share * 2,
            in_records: self.sent * share * 10_000,
            in_bytes: self.sent * share * 5_000_000,
            out_records: self.sent * share * 20_000,
            out_bytes: self.sent * share * 10_000_000,
            log_records: 1_000_000 * share,
            log_bytes: 700_000_000 * share,
            offsets: 1_000_000 * share,
        };
        Dump {
            version: "0.1.0".into(),
            unix_ms: self.unix_ms,
            uptime_ms: 273_600_000 + self.sent * 1000,
            process: json!({"pid": 7, "host": {"cpus_steal_us":
                self.sent * 30_000 * self.cores.len() as u64}}),
            cores: self.cores.iter().map(|core| core.snapshot()).collect(),
            topics: Topics::busiest(vec![topic("orders", 4), topic("audit.log", 1)]),
        }
    }
}

fn view(unicode: bool) -> View {
    let link = Link::Live("127.0.0.1:9080".into());
    View::new(TabArg::Cores, link, Glyphs { unicode }, 1000)
}

/// What is known after some seconds.
fn watched(cores: u16, seconds: usize, unicode: bool) -> (Dump, Figures, Story) {
    let mut broker = Broker::new(cores);
    let mut story = Story::default();
    let mut before = broker.dump();
    let mut figures = Figures::default();
    for _ in 0..seconds {
        broker.pass();
        let now = broker.dump();
        let step = Step::new(Some(&before), &now);
        figures = Figures::of(&step);
        story.take(&step, &figures, Glyphs { unicode });
        before = now;
    }
    (before, figures, story)
}

/// Goal: what a person sees is what was meant. Method: frames of each width for several numbers of
/// cores, the topics, a lost broker and ASCII, against those that were looked at and kept.
#[test]
fn frames_are_as_they_were_looked_at() {
    let mut all = String::new();
    let mut keep = |title: &str, frame: Frame| {
        all += &format!("== {title}\n{}", frame.text());
    };
    for cores in [1, 2, 24, 25, 128] {
        // Working out the figures of many cores takes its time without optimisation.
        let seconds = if cores > 2 { 8 } else { 20 };
        let (now, figures, story) = watched(cores, seconds, true);
        for columns in [40, 80, 120, 200] {
            let size = Size { columns, rows: 24 };
            let frame = Frame::of(&figures, Some(&now), &story, &view(true), size);
            keep(&format!("{cores} cores, {columns} columns"), frame);
        }
    }
    let (now, figures, story) = watched(2, 20, true);
    for columns in [40, 80, 120] {
        let mut topics = view(true);
        topics.tab = Tab::Topics;
        let size = Size { columns, rows: 10 };
        let frame = Frame::of(&figures, Some(&now), &story, &topics, size);
        keep(&format!("topics, {columns} columns"), frame);
    }
    let mut help = view(true);
    help.help = true;
    let size = Size {
        columns: 80,
        rows: 24,
    };
    keep("help", Frame::of(&figures, Some(&now), &story, &help, size));
    let mut lost = view(true);
    lost.link = Link::Lost {
        address: "127.0.0.1:9080".into(),
        for_ms: 12_000,
        why: "Connection refused".into(),
    };
    let frame = Frame::of(&figures, Some(&now), &story, &lost, size);
    keep("a lost broker", frame);
    keep(
        "nothing known",
        Frame::of(&Figures::default(), None, &story, &lost, size),
    );
    for cores in [2, 25] {
        let (now, figures, story) = watched(cores, 8, false);
        let frame = Frame::of(&figures, Some(&now), &story, &view(false), size);
        assert!(frame.text().is_ascii(), "{}", frame.text());
        keep(&format!("{cores} cores in ASCII"), frame);
    }
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/top-frames.txt");
    if std::env::var_os("PENSTOCK_WRITE_FRAMES").is_some() {
        write_file(&path, all.as_bytes()).expect("written");
    }
    let kept = String::from_utf8(read_file(&path, 1 << 20).expect("kept frames")).expect("text");
    for (index, (kept, now)) in kept.lines().zip(all.lines()).enumerate() {
        assert_eq!(now, kept, "line {} of {}", index + 1, path.display());
    }
    assert_eq!(kept.lines().count(), all.lines().count());
}

/// Goal: no frame is larger than its screen, whatever that is. Method: sizes up to 100 × 30 and
/// some beyond, on each tab, with the help and with a lost broker.
#[test]
fn a_frame_fits_every_screen() {
    for cores in [1, 24, 130] {
        let (now, figures, story) = watched(cores, 2, true);
        let mut views = vec![view(true); 5];
        views[1].tab = Tab::Topics;
        views[2].tab = Tab::Groups;
        views[3].help = true;
        views[4].scroll = 1000;
        views[4].filter = "1".into();
        for view in &views {
            for columns in (1..=100).step_by(3).chain([200, 500]) {
                for rows in [1, 2, 3, 4, 6, 9, 14, 24, 30] {
                    let size = Size { columns, rows };
                    let frame = Frame::of(&figures, Some(&now), &story, view, size);
                    assert!(frame.lines.len() <= rows, "{size:?}");
                    let widest = frame.lines.iter().map(|line| line.width()).max();
                    assert!(widest <= Some(columns), "{size:?}:\n{}", frame.text());
                }
            }
        }
    }
}

/// Goal: columns stand where they stood, whatever the numbers. Method: two frames of different
/// load; the ends of the titles' columns have the ends of numbers beneath them in both.
#[test]
fn columns_stand_still() {
    let size = Size {
        columns: 80,
        rows: 24,
    };
    let row = |seconds| {
        let (now, figures, story) = watched(2, seconds, true);
        let frame = Frame::of(&figures, Some(&now), &story, &view(true), size);
        let lines: Vec<Vec<char>> = frame
            .lines
            .iter()
            .map(|line| line.text().chars().collect())
            .collect();
        (lines[2].clone(), lines[3].clone())
    };
    let ((first, numbers), (second, other)) = (row(1), row(20));
    assert_eq!(first, second);
    for (index, letter) in first.iter().enumerate().skip(25) {
        let ends = *letter != ' ' && first.get(index + 1).is_none_or(|next| *next == ' ');
        // "fl p99" is two words.
        if ends && first[..=index].iter().rev().take(2).ne(['l', 'f'].iter()) {
            assert_ne!(numbers[index], ' ', "column {index}");
            assert_ne!(other[index], ' ', "column {index}");
        }
    }
}

/// Goal: the first frame, with one dump only, shows what is known and no invented rate.
#[test]
fn one_dump_has_no_rates() {
    let mut broker = Broker::new(2);
    broker.pass();
    let now = broker.dump();
    let figures = Figures::of(&Step::new(None, &now));
    assert!(figures.total.in_per_s.is_none() && figures.imbalance.is_none());
    assert_eq!(figures.total.connections, 256);
    let size = Size {
        columns: 80,
        rows: 24,
    };
    let frame = Frame::of(&figures, Some(&now), &Story::default(), &view(true), size);
    assert!(frame.text().contains("in -/s"), "{}", frame.text());
}

/// Goal: what happened is told once, with its size, and forgotten last. Method: a slow flush, an
/// error, a loss and a restart; then more than are kept.
#[test]
fn events_tell_what_happened() {
    let (_, _, mut story) = watched(1, 20, true);
    let told: Vec<String> = story.events(9).map(|event| event.text.clone()).collect();
    assert_eq!(told.len(), 2, "{told:?}");
    assert!(
        told[1].starts_with("core 0: one flush took 18."),
        "{told:?}"
    );
    story.lost(1_796_050_000_000, "Connection refused");
    story.lost(1_796_050_001_000, "Connection refused");
    story.found(1_796_050_009_000, true);
    let told: Vec<String> = story.events(2).map(|event| event.text.clone()).collect();
    assert_eq!(
        told,
        [
            "the broker does not answer: Connection refused",
            "the broker answers again, restarted"
        ]
    );
    assert_eq!(story.busy(0, 99).count(), 0, "another process");
    for at in 0..1000 {
        story.say(at * 10_000, format!("event {at}"));
    }
    assert_eq!(story.events(5000).count(), crate::limits::TOP_EVENTS_KEPT);
}

/// Goal: keys do what the screen says. Method: press them.
#[test]
fn keys_do_what_the_screen_says() {
    let mut view = view(true);
    assert_eq!(view.key(Key::Char('2')), Deed::Draw);
    assert_eq!(view.tab, Tab::Topics);
    view.key(Key::Char('/'));
    for letter in "qs1".chars() {
        assert_eq!(view.key(Key::Char(letter)), Deed::Draw);
    }
    view.key(Key::Backspace);
    view.key(Key::Enter);
    assert_eq!((view.filter.as_str(), view.typing), ("qs", false));
    view.key(Key::Escape);
    assert!(view.filter.is_empty());
    assert_eq!(view.key(Key::Char('n')), Deed::Nothing, "not frozen");
    view.key(Key::Char('f'));
    assert_eq!(view.key(Key::Char('n')), Deed::Step);
    view.key(Key::Char('?'));
    assert_eq!(view.key(Key::Char('d')), Deed::Draw, "leaves the help");
    assert_eq!(view.key(Key::Char('d')), Deed::WriteDump);
    view.key(Key::Char('?'));
    assert_eq!(view.key(Key::Char('q')), Deed::Quit);
    assert_eq!(view.key(Key::Hangup), Deed::Quit);
}

/// Goal: a tape gives what was recorded, one dump a line or one laid out, and names a bad line.
#[test]
fn tapes_are_played() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("tape");
    let mut broker = Broker::new(1);
    let mut text = String::new();
    for _ in 0..3 {
        broker.pass();
        text += &format!("{}\n", broker.dump().to_json());
    }
    write_file(&path, text.as_bytes()).expect("written");
    let mut tape = Tape::open(&path).expect("opened");
    let mut times = Vec::new();
    while let Some(dump) = tape.next().expect("a dump") {
        times.push(dump.unix_ms);
    }
    assert_eq!(times.len(), 3);
    assert_eq!(times[2] - times[0], 2000);
    let laid_out = format!("{:#}\n", broker.dump().to_json());
    write_file(&path, laid_out.as_bytes()).expect("written");
    let mut tape = Tape::open(&path).expect("opened");
    assert!(tape.next().expect("a dump").is_some());
    assert!(tape.next().expect("the end").is_none());
    write_file(&path, format!("{text}rubbish\n").as_bytes()).expect("written");
    let mut tape = Tape::open(&path).expect("opened");
    let error = loop {
        match tape.next() {
            Ok(dump) => assert!(dump.is_some(), "the rubbish was passed over"),
            Err(error) => break error.to_string(),
        }
    };
    assert!(error.contains("line 4"), "{error}");
}
