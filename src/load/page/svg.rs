//! Drawing: shapes as SVG text, scales that turn values into places, and axes with their ticks. No
//! shape has a colour; classes have, so that one style sheet serves light, dark and paper.

use crate::base::units::escape;
use std::fmt::Write as _;

/// Every picture is drawn twice, and the style sheet shows the one that fits the screen: letters
/// keep their size that way.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Size {
    /// From about 760 px on.
    Wide,
    /// A telephone, or half a screen.
    Narrow,
}

impl Size {
    /// Width of a picture.
    #[must_use]
    pub fn width(self) -> f64 {
        self.pick(1080.0, 380.0)
    }

    /// One value or the other.
    #[must_use]
    pub fn pick<T>(self, wide: T, narrow: T) -> T {
        match self {
            Size::Wide => wide,
            Size::Narrow => narrow,
        }
    }
}

/// Both sizes of one picture.
pub fn both(draw: impl Fn(Size) -> String) -> String {
    let (wide, narrow) = (draw(Size::Wide), draw(Size::Narrow));
    format!("<div class=\"wide\">{wide}</div><div class=\"narrow\">{narrow}</div>")
}

/// Where a text is held.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Anchor {
    /// At its first letter.
    Start,
    /// In its middle.
    Middle,
    /// At its last letter.
    End,
}

/// A rectangle of the picture that values are drawn in.
#[derive(Clone, Copy, Debug)]
pub struct Frame {
    /// Least x.
    pub left: f64,
    /// Largest x.
    pub right: f64,
    /// Least y.
    pub top: f64,
    /// Largest y.
    pub bottom: f64,
}

/// A picture in the making.
#[derive(Debug)]
pub struct Svg {
    width: f64,
    height: f64,
    title: String,
    body: String,
}

impl Svg {
    /// An empty one. The title is for those who do not see it.
    #[must_use]
    pub fn new(width: f64, height: f64, title: &str) -> Svg {
        Svg {
            width,
            height,
            title: escape(title),
            body: String::new(),
        }
    }

    /// A straight line.
    pub fn line(&mut self, from: (f64, f64), to: (f64, f64), class: &str) {
        let ((x1, y1), (x2, y2)) = (from, to);
        let _ = write!(
            self.body,
            "<line class=\"{class}\" x1=\"{x1:.1}\" y1=\"{y1:.1}\" x2=\"{x2:.1}\" y2=\"{y2:.1}\"/>"
        );
    }

    /// A rectangle; with a `hint`, what it says when pointed at.
    pub fn rect(&mut self, frame: Frame, class: &str, hint: &str) {
        let (x, y) = (frame.left, frame.top);
        let width = (frame.right - frame.left).max(0.0);
        let height = (frame.bottom - frame.top).max(0.0);
        let _ = write!(
            self.body,
            "<rect class=\"{class}\" x=\"{x:.1}\" y=\"{y:.1}\" width=\"{width:.1}\" \
             height=\"{height:.1}\""
        );
        if hint.is_empty() {
            self.body.push_str("/>");
        } else {
            let _ = write!(self.body, "><title>{}</title></rect>", escape(hint));
        }
    }

    /// Any path.
    pub fn path(&mut self, data: &str, class: &str) {
        if !data.is_empty() {
            let _ = write!(self.body, "<path class=\"{class}\" d=\"{data}\"/>");
        }
    }

    /// A line through points.
    pub fn polyline(&mut self, points: &[(f64, f64)], class: &str) {
        let data = through(points);
        self.path(&data, class);
    }

    /// A filled shape along points.
    pub fn polygon(&mut self, points: &[(f64, f64)], class: &str) {
        if points.len() > 2 {
            let data = format!("{}z", through(points));
            self.path(&data, class);
        }
    }

    /// A disc or ring.
    pub fn circle(&mut self, (x, y): (f64, f64), radius: f64, class: &str) {
        let _ = write!(
            self.body,
            "<circle class=\"{class}\" cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"{radius:.1}\"/>"
        );
    }

    /// Words.
    pub fn text(&mut self, (x, y): (f64, f64), anchor: Anchor, class: &str, text: &str) {
        let anchor = match anchor {
            Anchor::Start => "start",
            Anchor::Middle => "middle",
            Anchor::End => "end",
        };
        let _ = write!(
            self.body,
            "<text class=\"{class}\" x=\"{x:.1}\" y=\"{y:.1}\" text-anchor=\"{anchor}\">{}</text>",
            escape(text)
        );
    }

    /// The picture.
    #[must_use]
    pub fn finish(self) -> String {
        let Svg {
            width,
            height,
            title,
            body,
        } = self;
        format!(
            "<svg viewBox=\"0 0 {width:.0} {height:.0}\" role=\"img\" aria-label=\"{title}\">\
             {body}</svg>"
        )
    }
}

fn through(points: &[(f64, f64)]) -> String {
    let mut data = String::new();
    for (index, (x, y)) in points.iter().enumerate() {
        let letter = if index == 0 { 'M' } else { 'L' };
        let _ = write!(data, "{letter}{x:.1} {y:.1}");
    }
    data
}

/// Values to places along one direction.
#[derive(Clone, Copy, Debug)]
pub struct Scale {
    from: f64,
    to: f64,
    start: f64,
    end: f64,
    log: bool,
}

impl Scale {
    /// Equal steps are equal lengths.
    #[must_use]
    pub fn linear(from: f64, to: f64, start: f64, end: f64) -> Scale {
        let to = if to > from { to } else { from + 1.0 };
        Scale {
            from,
            to,
            start,
            end,
            log: false,
        }
    }

    /// Equal ratios are equal lengths. The ends are moved out to 1, 2 or 5.
    #[must_use]
    pub fn log(from: f64, to: f64, start: f64, end: f64) -> Scale {
        let from = step_down(from.max(1e-3));
        let to = step_up(to.max(from * 2.0));
        Scale {
            from,
            to,
            start,
            end,
            log: true,
        }
    }

    /// The place of a value; what lies outside lies on the edge.
    #[must_use]
    pub fn at(&self, value: f64) -> f64 {
        let value = value.clamp(self.from, self.to);
        let share = if self.log {
            (value / self.from).ln() / (self.to / self.from).ln()
        } else {
            (value - self.from) / (self.to - self.from)
        };
        self.start + share * (self.end - self.start)
    }

    /// Whether a value lies on the scale.
    #[must_use]
    pub fn holds(&self, value: f64) -> bool {
        (self.from..=self.to).contains(&value)
    }

    /// The ends.
    #[must_use]
    pub fn ends(&self) -> (f64, f64) {
        (self.from, self.to)
    }

    /// Values worth a line, and whether they are worth a label too; about one label in `apart` px.
    #[must_use]
    pub fn ticks(&self, apart: f64) -> Vec<(f64, bool)> {
        let length = (self.end - self.start).abs();
        if !self.log {
            let wanted = (self.to - self.from) * apart / length.max(1.0);
            // One label tells no scale.
            let step = nice_step(wanted).min(step_down((self.to - self.from) / 1.05));
            let first = (self.from / step).ceil() as i64;
            let last = (self.to / step + 1e-9).floor() as i64;
            return (first..=last).map(|n| (n as f64 * step, true)).collect();
        }
        let decades = (self.to / self.from).log10().max(1e-9);
        let per_decade = length / decades;
        let mut ticks = Vec::new();
        let mut exponent = self.from.log10().floor() as i32 - 1;
        while 10f64.powi(exponent) <= self.to {
            let skip = (apart / per_decade).ceil().max(1.0) as i32;
            for lead in [1.0, 2.0, 5.0] {
                let value = lead * 10f64.powi(exponent);
                let inside = value >= self.from * (1.0 - 1e-9) && value <= self.to * (1.0 + 1e-9);
                let shown =
                    per_decade * 0.3 >= apart || lead == 1.0 && exponent.rem_euclid(skip) == 0;
                if inside {
                    ticks.push((value, shown));
                }
            }
            exponent += 1;
        }
        // A short scale may hold no power of ten: then its ends are labelled.
        if !ticks.iter().any(|(_, shown)| *shown) {
            let last = ticks.len().saturating_sub(1);
            for (index, tick) in ticks.iter_mut().enumerate() {
                tick.1 = index == 0 || index == last;
            }
        }
        ticks
    }
}

/// 1, 2 or 5 times a power of ten, not below `least`.
fn nice_step(least: f64) -> f64 {
    step_up(least.max(1e-9))
}

fn step_up(value: f64) -> f64 {
    let power = 10f64.powf(value.log10().floor());
    let lead = [1.0, 2.0, 5.0, 10.0].into_iter();
    lead.map(|lead| lead * power)
        .find(|step| *step >= value * (1.0 - 1e-9))
        .unwrap_or(value)
}

fn step_down(value: f64) -> f64 {
    let power = 10f64.powf(value.log10().floor());
    let lead = [5.0, 2.0, 1.0].into_iter();
    lead.map(|lead| lead * power)
        .find(|step| *step <= value * (1.0 + 1e-9))
        .unwrap_or(value)
}

/// Draws a vertical axis at the left of a frame: a line across for each tick, a label for some.
pub fn axis_left(
    svg: &mut Svg,
    frame: Frame,
    scale: &Scale,
    apart: f64,
    label: impl Fn(f64) -> String,
) {
    for (value, shown) in scale.ticks(apart) {
        let y = scale.at(value);
        let class = if shown { "grid" } else { "grid faint" };
        svg.line((frame.left, y), (frame.right, y), class);
        if shown {
            svg.text(
                (frame.left - 8.0, y + 4.0),
                Anchor::End,
                "tick",
                &label(value),
            );
        }
    }
}

/// Draws a horizontal axis below a frame.
pub fn axis_below(
    svg: &mut Svg,
    frame: Frame,
    scale: &Scale,
    apart: f64,
    label: impl Fn(f64) -> String,
) {
    for (value, shown) in scale.ticks(apart) {
        let x = scale.at(value);
        let class = if shown { "grid" } else { "grid faint" };
        svg.line((x, frame.top), (x, frame.bottom), class);
        if shown {
            svg.text(
                (x, frame.bottom + 16.0),
                Anchor::Middle,
                "tick",
                &label(value),
            );
        }
    }
}

/// A label at the end of a line: where it would like to stand, its class and its words.
pub type EndLabel = (f64, String, String);

/// Writes labels beside a frame's right edge, moved apart so that none covers another.
pub fn end_labels(svg: &mut Svg, frame: Frame, mut labels: Vec<EndLabel>) {
    const APART: f64 = 14.0;
    labels.sort_by(|left, right| left.0.total_cmp(&right.0));
    let lowest = frame.bottom;
    let mut places: Vec<f64> = labels.iter().map(|label| label.0).collect();
    for index in 1..places.len() {
        places[index] = places[index].max(places[index - 1] + APART);
    }
    for index in (0..places.len()).rev() {
        let below = places.get(index + 1).map_or(lowest, |next| next - APART);
        places[index] = places[index].min(below);
    }
    for (place, (wanted, class, text)) in places.into_iter().zip(labels) {
        let x = frame.right;
        svg.line((x + 1.0, wanted), (x + 8.0, place), "leader");
        svg.text(
            (x + 11.0, place + 4.0),
            Anchor::Start,
            &format!("label {class}"),
            &text,
        );
    }
}

/// The picture of nothing.
#[must_use]
pub fn empty(text: &str, size: Size) -> String {
    let mut svg = Svg::new(size.width(), 64.0, text);
    svg.text((size.width() / 2.0, 36.0), Anchor::Middle, "empty", text);
    svg.finish()
}

/// A name cut to what fits.
#[must_use]
pub fn cut(text: &str, letters_max: usize) -> String {
    if text.chars().count() <= letters_max {
        return text.to_owned();
    }
    let kept: String = text.chars().take(letters_max.saturating_sub(1)).collect();
    format!("{kept}…")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: ticks are round, lie on the scale, and values never leave it. Method: scales of many
    /// sizes, also the empty one.
    #[test]
    fn scales_hold_their_ticks() {
        for (from, to) in [
            (1.0, 1.0),
            (0.0, 0.0),
            (37.0, 41.0),
            (3.0, 8e9),
            (f64::MIN_POSITIVE, 1.0),
        ] {
            for scale in [
                Scale::log(from, to, 300.0, 0.0),
                Scale::linear(from, to, 300.0, 0.0),
            ] {
                let ticks = scale.ticks(30.0);
                assert!(ticks.iter().any(|(_, shown)| *shown), "{scale:?}");
                for (value, _) in ticks {
                    assert!(
                        (-0.1..=300.1).contains(&scale.at(value)),
                        "{scale:?} {value}"
                    );
                }
                assert!((-0.1..=300.1).contains(&scale.at(1e12)));
                assert!((-0.1..=300.1).contains(&scale.at(0.0)));
            }
        }
    }
}
