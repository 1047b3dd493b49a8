//! Reads the outputs back as a stranger would: from their text alone.

use penstock::base::units::Micro;
use penstock::load::page;
use penstock::load::report::{Summary, csv, hgrm, json, table};
use penstock::load::run::Run;
use serde_json::Value;
use std::collections::BTreeMap;

/// Every output of a run, as text.
pub struct Told {
    pub table: String,
    pub json: String,
    pub hgrm: String,
    pub csv: String,
    pub page: String,
}

impl Told {
    pub fn of(run: &Run) -> Told {
        let summary = Summary::of(run);
        Told {
            table: table::text(run, &summary, Micro::Ascii),
            json: json::document(run, &summary).to_string(),
            hgrm: hgrm::text(&summary.totals.response),
            csv: csv::text(run),
            page: page::single(run, &summary),
        }
    }

    pub fn document(&self) -> Value {
        serde_json::from_str(&self.json).expect("JSON")
    }

    /// The data that the page carries.
    pub fn embedded(&self) -> Value {
        let (_, rest) = self.page.split_once("id=\"data\">").expect("embedded");
        let (data, _) = rest.split_once("</script>").expect("ends");
        serde_json::from_str(data).expect("JSON")
    }

    /// Everything of the page that is drawn.
    pub fn drawn(&self) -> &str {
        let (_, body) = self.page.split_once("<body>").expect("a body");
        body.split_once("<script").expect("data").0
    }

    /// A row of the terminal's table by its first word: the cells behind it.
    pub fn row(&self, name: &str) -> Option<Vec<String>> {
        let line = self.table.lines().find(|line| {
            let rest = line.strip_prefix(name).unwrap_or("x");
            rest.starts_with("  ") || rest.starts_with(' ') && !rest.trim().is_empty()
        })?;
        let cells = line[name.len()..].split("  ").map(str::trim);
        Some(
            cells
                .filter(|cell| !cell.is_empty())
                .map(ToOwned::to_owned)
                .collect(),
        )
    }

    /// The lines of the CSV by column.
    pub fn columns(&self) -> BTreeMap<String, Vec<String>> {
        let mut lines = self.csv.lines();
        let names: Vec<&str> = lines.next().expect("a header").split(',').collect();
        let mut columns: BTreeMap<String, Vec<String>> = BTreeMap::new();
        for line in lines {
            let cells: Vec<&str> = line.split(',').collect();
            assert_eq!(cells.len(), names.len(), "{line}");
            for (name, cell) in names.iter().zip(cells) {
                columns
                    .entry((*name).to_owned())
                    .or_default()
                    .push(cell.to_owned());
            }
        }
        columns
    }

    /// Value in microseconds, quantile and count of each line of the percentile text.
    pub fn percentiles(&self) -> Vec<(f64, f64, u64)> {
        let lines = self
            .hgrm
            .lines()
            .skip(2)
            .filter(|line| !line.starts_with('#'));
        let parsed = lines.map(|line| {
            let cells: Vec<&str> = line.split_whitespace().collect();
            let number = |index: usize| cells[index].parse::<f64>().expect("a number");
            (number(0) * 1e3, number(1), number(2) as u64)
        });
        parsed.collect()
    }
}

/// A latency as the table writes it, in microseconds.
pub fn latency_us(cell: &str) -> f64 {
    let cell = cell.trim_start_matches(">= ").trim_end_matches('*');
    let (number, unit) = cell.split_once(' ').expect(cell);
    let factor = match unit {
        "us" => 1.0,
        "ms" => 1e3,
        "s" => 1e6,
        other => panic!("no unit of time: {other}"),
    };
    number.parse::<f64>().expect(cell) * factor
}

/// A count as the table writes it.
pub fn count(cell: &str) -> u64 {
    cell.replace(',', "").parse().expect(cell)
}

/// Calls with every number of a document.
pub fn numbers(value: &Value, see: &mut dyn FnMut(f64)) {
    match value {
        Value::Number(number) => see(number.as_f64().expect("a number")),
        Value::Array(parts) => parts.iter().for_each(|part| numbers(part, see)),
        Value::Object(parts) => parts.values().for_each(|part| numbers(part, see)),
        _ => {}
    }
}
