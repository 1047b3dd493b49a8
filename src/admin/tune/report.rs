//! The findings for a person (a table of 80 columns, then what to do and why) and for a program.

use super::finding::{Effect, Finding, State};
use crate::admin::error::AdminError;
use crate::admin::output::Output;
use serde_json::{Value, json};

/// Columns of the table: state, check, what is, what should be. With the gaps, 80.
const WIDTHS: [usize; 4] = [7, 14, 30, 23];
const COLUMNS: usize = 80;

/// What the findings are about.
#[derive(Clone, Debug)]
pub struct Subject {
    /// Name of the host.
    pub host: String,
    /// Its kernel.
    pub kernel: String,
    /// The broker's data directory.
    pub data: String,
    /// The CPUs of its cores, as a list.
    pub cpus: String,
}

/// Prints everything for a person; with `explain`, also why what is right is right.
///
/// # Errors
/// Standard output.
pub fn print(
    subject: &Subject,
    findings: &[Finding],
    explain: bool,
    out: &mut Output,
) -> Result<(), AdminError> {
    let title = format!(
        "{}, Linux {}: for a broker on CPUs {} with its data in {}",
        subject.host, subject.kernel, subject.cpus, subject.data
    );
    for line in wrapped(&title, COLUMNS) {
        out.line(&line)?;
    }
    out.line("")?;
    for line in row(["STATE", "CHECK", "IS", "SHOULD BE"]) {
        out.line(&line)?;
    }
    for finding in findings {
        let cells = [
            finding.state.text(),
            finding.name,
            &finding.now,
            &finding.wanted,
        ];
        // What is not there needs no column of its own.
        let lines = match finding.state {
            State::Absent => hanging(
                &[cells[0], cells[1], cells[2]],
                COLUMNS - WIDTHS[0] - WIDTHS[1] - 4,
            ),
            _ if finding.wanted.is_empty() => hanging(
                &[cells[0], cells[1], cells[2]],
                COLUMNS - WIDTHS[0] - WIDTHS[1] - 4,
            ),
            _ => row(cells),
        };
        for line in lines {
            out.line(&line)?;
        }
    }
    details(findings, explain, out)?;
    out.line("")?;
    for line in wrapped(&summary(findings), COLUMNS) {
        out.line(&line)?;
    }
    Ok(())
}

/// A line of the table, or several where a cell is too long for one.
fn row(cells: [&str; 4]) -> Vec<String> {
    let columns: Vec<Vec<String>> = cells
        .iter()
        .zip(WIDTHS)
        .map(|(text, width)| wrapped(text, width))
        .collect();
    let height = columns.iter().map(Vec::len).max().unwrap_or(0);
    let lines = (0..height).map(|index| {
        let mut line = String::new();
        for (column, width) in columns.iter().zip(WIDTHS) {
            let text = column.get(index).map_or("", String::as_str);
            line.push_str(&format!("{text:width$}  "));
        }
        line.trim_end().to_owned()
    });
    lines.collect()
}

/// State, check, and one long cell.
fn hanging(cells: &[&str; 3], width: usize) -> Vec<String> {
    let lines = wrapped(cells[2], width);
    let lines = lines.iter().enumerate().map(|(index, text)| {
        let (state, check) = if index == 0 {
            (cells[0], cells[1])
        } else {
            ("", "")
        };
        let line = format!("{state:0$}  {check:1$}  {text}", WIDTHS[0], WIDTHS[1]);
        line.trim_end().to_owned()
    });
    lines.collect()
}

/// Reason, gain and fix of everything that is not as it should be.
fn details(findings: &[Finding], explain: bool, out: &mut Output) -> Result<(), AdminError> {
    let parts = [
        (State::Fine, "As it should be"),
        (State::ByHand, "To do by hand"),
        (
            State::Change,
            "To change (as root: `penstock tune --apply`, or look first: `--script`)",
        ),
        (State::Note, "Worth knowing"),
    ];
    for (state, title) in parts {
        let mut found = findings
            .iter()
            .filter(|finding| finding.state == state)
            .filter(|finding| state != State::Fine || explain && !finding.why.is_empty())
            .peekable();
        if found.peek().is_none() {
            continue;
        }
        out.line("")?;
        out.line(title)?;
        for finding in found {
            out.line("")?;
            detail(finding, out)?;
        }
    }
    Ok(())
}

fn detail(finding: &Finding, out: &mut Output) -> Result<(), AdminError> {
    let mut title = format!("{}: {}", finding.name, finding.now);
    if !finding.wanted.is_empty() {
        title.push_str(&format!(", should be {}", finding.wanted));
    }
    let effect = match finding.effect {
        Effect::Unsaid => None,
        Effect::Expected(text) => Some(("expect", format!("{text} (not measured here)"))),
        Effect::Measured(text) => Some(("measured", text.to_owned())),
    };
    let why = (!finding.why.is_empty()).then(|| ("why", finding.why.clone()));
    for line in wrapped(&title, COLUMNS - 2) {
        out.line(&format!("  {line}"))?;
    }
    for (label, text) in [why, effect].into_iter().flatten() {
        for (index, line) in wrapped(&text, COLUMNS - 14).iter().enumerate() {
            let label = if index == 0 { label } else { "" };
            out.line(&format!("    {label:8}  {line}"))?;
        }
    }
    // A line to be copied is not broken.
    if let Some(fix) = &finding.fix {
        out.line(&format!("    {:8}  {fix}", "fix"))?;
    }
    Ok(())
}

fn count(findings: &[Finding], state: State) -> usize {
    findings
        .iter()
        .filter(|finding| finding.state == state)
        .count()
}

fn summary(findings: &[Finding]) -> String {
    let [fine, change, by_hand, note, absent] = State::ALL.map(|state| count(findings, state));
    format!(
        "{} checks: {fine} ok, {change} to change, {by_hand} by hand, {note} to know, {absent} not \
         on this host",
        findings.len()
    )
}

/// The stable form.
#[must_use]
pub fn document(subject: &Subject, findings: &[Finding]) -> Value {
    let counts: serde_json::Map<String, Value> = State::ALL
        .iter()
        .map(|state| (state.key().to_owned(), json!(count(findings, *state))))
        .collect();
    json!({
        "schema_version": 1,
        "host": subject.host,
        "kernel": subject.kernel,
        "data": subject.data,
        "cpus": subject.cpus,
        "counts": counts,
        "checks": findings.iter().map(Finding::json).collect::<Vec<_>>(),
    })
}

/// A text in lines of at most so many columns, broken between words; a word that is too long for
/// one is broken inside.
#[must_use]
pub fn wrapped(text: &str, columns: usize) -> Vec<String> {
    let mut lines = Vec::new();
    let mut line = String::new();
    let mut used = 0;
    for word in text.split_whitespace() {
        let mut word: Vec<char> = word.chars().collect();
        if used > 0 && used + 1 + word.len() > columns {
            lines.push(std::mem::take(&mut line));
            used = 0;
        }
        while word.len() > columns {
            lines.push(word.drain(..columns).collect());
        }
        if used > 0 {
            line.push(' ');
            used += 1;
        }
        used += word.len();
        line.extend(word);
    }
    if !line.is_empty() {
        lines.push(line);
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: no line is wider than asked, no letter is lost. Method: words around the edge.
    #[test]
    fn lines_are_wrapped() {
        assert_eq!(wrapped("ab cd ef", 5), ["ab cd", "ef"]);
        assert_eq!(wrapped("abcdefgh i", 3), ["abc", "def", "gh", "i"]);
        assert_eq!(wrapped("", 3), Vec::<String>::new());
        let table = row([
            "CHANGE",
            "scheduler",
            &"mq-deadline on sda, ".repeat(4),
            "none",
        ]);
        assert!(table.len() > 1);
        assert!(table.iter().all(|line| line.chars().count() <= COLUMNS));
    }
}
