//! `penstock produce`: lines, files or JSON records to a topic, and an exact account of what was
//! acknowledged.

use super::cli::{AcksArg, CompressionArg, ProduceArgs};
use super::client::Client;
use super::error::AdminError;
use super::output::{self, Output};
use super::record::{Header, Record, json};
use super::sender::{Options, Sender};
use crate::base::record_batch::Codec;
use crate::env::{blocking, process};
use crate::limits;
use flume::{Receiver, TryRecvError};
use serde_json::json;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

/// Bytes read at once, and chunks that may wait while a batch is on its way.
const CHUNK_BYTES: usize = 64 << 10;
const CHUNKS_MAX: usize = 32;

/// Runs the verb.
///
/// # Errors
/// The broker cannot be reached, an input cannot be read, or not everything was acknowledged.
pub fn run(args: &ProduceArgs, out: &mut Output) -> Result<(), AdminError> {
    let parser = Parser::new(args)?;
    let acks = match args.acks {
        AcksArg::Zero => 0,
        AcksArg::One => 1,
        AcksArg::All => -1,
    };
    let codec = match args.compression {
        CompressionArg::None => Codec::None,
        CompressionArg::Gzip => Codec::Gzip,
        CompressionArg::Snappy => Codec::Snappy,
        CompressionArg::Lz4 => Codec::Lz4,
        CompressionArg::Zstd => Codec::Zstd,
    };
    let idempotent = acks == -1 && !args.no_idempotence;
    let options = Options {
        topic: args.topic.clone(),
        acks,
        codec,
        idempotent,
    };
    let sender = Sender::open(Client::new(&args.broker), options)?;
    let mut job = Job {
        parser,
        sender,
        out,
        report: args.report,
        acks,
        next: 0,
        acknowledged: 0,
        origins: Vec::new(),
        refused: None,
    };
    let dash = vec!["-".to_owned()];
    let inputs = if args.inputs.is_empty() {
        &dash
    } else {
        &args.inputs
    };
    for name in inputs {
        job.origins.push((job.next, name.clone()));
        if let Err(error) = job.input(name, args.raw) {
            job.finish().ok();
            return Err(error);
        }
        if job.stopped() {
            break;
        }
    }
    job.finish()
}

/// How a line becomes a record.
struct Parser {
    json: bool,
    repartition: bool,
    separator: Option<String>,
    key: Option<Vec<u8>>,
    partition: Option<i32>,
    headers: Vec<Header>,
}

impl Parser {
    fn new(args: &ProduceArgs) -> Result<Parser, AdminError> {
        if args.key_separator.as_deref() == Some("") {
            return Err(AdminError::Usage(
                "--key-separator must not be empty".into(),
            ));
        }
        if let Some(partition) = args.partition.filter(|partition| *partition < 0) {
            return Err(AdminError::Usage(format!(
                "--partition {partition}: they count from 0"
            )));
        }
        let headers = args.headers.iter().map(|text| match text.split_once('=') {
            Some((key, value)) => Ok((key.to_owned(), Some(value.as_bytes().to_vec()))),
            None => Err(AdminError::Usage(format!(
                "--header {text}: write it as key=value"
            ))),
        });
        Ok(Parser {
            json: args.json,
            repartition: args.repartition,
            separator: args.key_separator.as_ref().map(|text| unescape(text)),
            key: args.key.as_ref().map(|key| key.as_bytes().to_vec()),
            partition: args.partition,
            headers: headers.collect::<Result<_, _>>()?,
        })
    }

    fn record(&self, line: &[u8]) -> Result<Record, String> {
        if self.json {
            let mut record = json::read(line)?;
            if self.repartition {
                record.partition = None;
            }
            record.partition = self.partition.or(record.partition);
            return Ok(record);
        }
        let (key, value) = match &self.separator {
            None => (self.key.clone(), line),
            Some(separator) => {
                let at = find(line, separator.as_bytes())
                    .ok_or_else(|| format!("it has no \"{separator}\" between key and value"))?;
                (Some(line[..at].to_vec()), &line[at + separator.len()..])
            }
        };
        Ok(Record {
            partition: self.partition,
            timestamp_ms: None,
            key,
            value: Some(value.to_vec()),
            headers: self.headers.clone(),
        })
    }
}

/// `\t` is hard to type in a shell.
fn unescape(text: &str) -> String {
    text.replace("\\t", "\t").replace("\\0", "\0")
}

fn find(bytes: &[u8], wanted: &[u8]) -> Option<usize> {
    bytes
        .windows(wanted.len())
        .position(|window| window == wanted)
}

/// One run of the verb.
struct Job<'a> {
    parser: Parser,
    sender: Sender,
    out: &'a mut Output,
    report: bool,
    acks: i16,
    /// Number of the next record, over all inputs.
    next: u64,
    acknowledged: u64,
    /// The number of each input's first record, and its name.
    origins: Vec<(u64, String)>,
    /// A line that is no record: its number, and why.
    refused: Option<(u64, String)>,
}

impl Job<'_> {
    fn stopped(&self) -> bool {
        self.refused.is_some() || self.sender.failed()
    }

    fn input(&mut self, name: &str, raw: bool) -> Result<(), AdminError> {
        let shown = if name == "-" {
            "standard input".to_owned()
        } else {
            name.to_owned()
        };
        let failed = |error| AdminError::Input(shown.clone(), error);
        if raw {
            let mut whole = Vec::new();
            let limit = u64::try_from(limits::FRAME_BYTES_MAX).unwrap_or(u64::MAX) + 1;
            let source = blocking::Input::open(Path::new(name)).map_err(failed)?;
            source.take(limit).read_to_end(&mut whole).map_err(failed)?;
            return self.line(&whole);
        }
        let chunks = chunks(name).map_err(failed)?;
        let mut rest = Vec::new();
        while !self.stopped() {
            let chunk = match chunks.try_recv() {
                Ok(chunk) => chunk,
                Err(TryRecvError::Disconnected) => break,
                Err(TryRecvError::Empty) => {
                    // The input pauses: what is gathered need not wait for more.
                    self.sender.flush();
                    self.take_acknowledged()?;
                    match chunks.recv() {
                        Ok(chunk) => chunk,
                        Err(_) => break,
                    }
                }
            };
            self.lines(&mut rest, &chunk.map_err(failed)?)?;
        }
        if !rest.is_empty() && !self.stopped() {
            self.line(&rest)?;
        }
        Ok(())
    }

    /// Takes the whole lines of a chunk; `rest` is what began before it.
    fn lines(&mut self, rest: &mut Vec<u8>, chunk: &[u8]) -> Result<(), AdminError> {
        let mut left = chunk;
        while let Some(end) = left.iter().position(|byte| *byte == b'\n') {
            if rest.is_empty() {
                self.line(&left[..end])?;
            } else {
                rest.extend_from_slice(&left[..end]);
                let whole = std::mem::take(rest);
                self.line(&whole)?;
            }
            if self.stopped() {
                return Ok(());
            }
            left = &left[end + 1..];
        }
        rest.extend_from_slice(left);
        if rest.len() > limits::FRAME_BYTES_MAX {
            let reason = format!("it has more than {} bytes", limits::FRAME_BYTES_MAX);
            self.refused = Some((self.next, reason));
        }
        Ok(())
    }

    fn line(&mut self, line: &[u8]) -> Result<(), AdminError> {
        let number = self.next;
        self.next += 1;
        let record = self.parser.record(line);
        if let Err(reason) = record.and_then(|record| self.sender.add(number, record)) {
            self.refused = Some((number, reason));
        }
        self.take_acknowledged()
    }

    fn take_acknowledged(&mut self) -> Result<(), AdminError> {
        let taken = self.sender.take_acknowledged();
        if taken.is_empty() {
            return Ok(());
        }
        self.acknowledged += taken.len() as u64;
        if self.report {
            for done in &taken {
                let (input, line) = self.origin(done.number);
                let offset = if done.offset < 0 {
                    None
                } else {
                    Some(done.offset)
                };
                let item = json!({
                    "input": input,
                    "line": line,
                    "partition": done.partition,
                    "offset": offset,
                });
                self.out.line(&item.to_string())?;
            }
            self.out.flush()?;
        }
        Ok(())
    }

    /// The input and line, from 1, of a record.
    fn origin(&self, number: u64) -> (&str, u64) {
        let origin = self
            .origins
            .iter()
            .rev()
            .find(|(first, _)| *first <= number);
        let (first, name) = origin.expect("every record came from an input");
        (name, number - first + 1)
    }

    /// Sends the rest and gives account.
    fn finish(mut self) -> Result<(), AdminError> {
        self.sender.flush();
        self.take_acknowledged()?;
        self.out.flush()?;
        let count = |count: u64| format!("{count} record{}", if count == 1 { "" } else { "s" });
        let done = match self.acks {
            0 => format!(
                "{} sent, none acknowledged (acks=0)",
                count(self.acknowledged)
            ),
            _ => format!("{} acknowledged", count(self.acknowledged)),
        };
        let missing = self.sender.unacknowledged();
        let refused = self.refused.as_ref();
        let first = match (&missing, refused) {
            (Some(missing), Some((number, _))) if missing.first < *number => {
                Some((missing.first, &missing.reason))
            }
            (_, Some((number, reason))) => Some((*number, reason)),
            (Some(missing), None) => Some((missing.first, &missing.reason)),
            (None, None) => None,
        };
        let Some((number, reason)) = first else {
            output::note(&done);
            return Ok(());
        };
        let (input, line) = self.origin(number);
        let place = if input == "-" {
            String::new()
        } else {
            format!(" of {input}")
        };
        let waiting = missing.as_ref().map_or(0, |missing| missing.count);
        let others = waiting + u64::from(refused.is_some());
        Err(AdminError::Failed(format!(
            "line {line}{place} was not acknowledged: {reason}\n{done}; {} read and not \
             acknowledged, that line the first; nothing after was read",
            count(others)
        )))
    }
}

/// Reads on a thread of its own, so that records gather while a batch is on its way, and so that a
/// pause of the input is noticed.
fn chunks(name: &str) -> io::Result<Receiver<io::Result<Vec<u8>>>> {
    let (sender, receiver) = flume::bounded(CHUNKS_MAX);
    let path = PathBuf::from(name);
    process::spawn_thread("input", move || {
        // When the receiver is gone, the job stopped early, and there is nobody to tell.
        let told = read_chunks(&path, |chunk| sender.send(Ok(chunk)).is_ok());
        if let Err(error) = told {
            let _ = sender.send(Err(error));
        }
    })?;
    Ok(receiver)
}

/// Hands over an input piece by piece, as it comes, while `take` wants more.
fn read_chunks(path: &Path, mut take: impl FnMut(Vec<u8>) -> bool) -> io::Result<()> {
    let mut source = blocking::Input::open(path)?;
    loop {
        let mut chunk = vec![0; CHUNK_BYTES];
        match source.read(&mut chunk) {
            Ok(0) => return Ok(()),
            Ok(length) => {
                chunk.truncate(length);
                if !take(chunk) {
                    return Ok(());
                }
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
}
