//! Figures of one thing over time: one line or two, the newest at the right.

use maud::Markup;
use plotters::prelude::*;

use super::{BAR, BOTTOM, GRID, LEFT, LETTERS, RIGHT, SECOND, SIZE, TEXT, TOP, picture, top};

pub(crate) struct Line<'a> {
    pub(crate) name: &'a str,
    pub(crate) values: &'a [f64],
}

pub(crate) struct Lines<'a> {
    pub(crate) title: &'a str,
    /// One or two, of the same length.
    pub(crate) lines: &'a [Line<'a>],
    /// The time between two values, in seconds.
    pub(crate) step_s: u64,
    pub(crate) print: fn(f64) -> String,
}

impl Lines<'_> {
    pub(crate) fn draw(&self) -> Markup {
        let mut sentence = format!("{}:", self.title);
        for line in self.lines {
            let now = line.values.last().copied().unwrap_or(0.0);
            let most = line.values.iter().copied().fold(0.0, f64::max);
            let (now, most) = ((self.print)(now), (self.print)(most));
            sentence.push_str(&format!(" {} is {now}, at most {most}.", line.name));
        }
        let points = self.lines.first().map_or(0, |line| line.values.len());
        let drawn = (points > 0).then(|| self.svg(points).ok()).flatten();
        picture(drawn, &sentence, &self.places(points))
    }

    /// The words of each moment.
    fn places(&self, points: usize) -> Vec<String> {
        let words = |at: usize| {
            let each = self.lines.iter().map(|line| {
                let value = line.values.get(at).copied().unwrap_or(0.0);
                format!("{} {}", line.name, (self.print)(value))
            });
            let when = ago((points - 1 - at) as u64 * self.step_s);
            format!("{when}: {}", each.collect::<Vec<_>>().join(", "))
        };
        let mut places: Vec<String> = (0..points).map(words).collect();
        if points == 1 {
            // One point alone is drawn at the right end.
            places.insert(0, "nothing is known yet".to_owned());
        }
        places
    }

    fn svg(&self, points: usize) -> Result<String, Box<dyn std::error::Error + '_>> {
        let mut out = String::new();
        {
            let area = SVGBackend::with_string(&mut out, SIZE).into_drawing_area();
            let largest = self.lines.iter().flat_map(|line| line.values).copied();
            let largest = largest.fold(0.0, f64::max);
            let last = points.max(2) as f64 - 1.0;
            let mut chart = ChartBuilder::on(&area)
                .margin_top(TOP)
                .margin_right(RIGHT)
                .y_label_area_size(LEFT)
                .x_label_area_size(BOTTOM)
                .build_cartesian_2d(0.0..last, 0.0..top(largest))?;
            let print = |value: &f64| (self.print)(value.max(0.0));
            let when = |at: &f64| ago((last - at).max(0.0).round() as u64 * self.step_s);
            chart
                .configure_mesh()
                .disable_x_mesh()
                .x_labels(4)
                .y_labels(5)
                .x_desc("time")
                .x_label_formatter(&when)
                .y_label_formatter(&print)
                .label_style(("sans-serif", LETTERS).into_font().color(&TEXT))
                .axis_style(GRID)
                .bold_line_style(GRID)
                .light_line_style(TRANSPARENT)
                .draw()?;
            for (line, colour) in self.lines.iter().zip([BAR, SECOND]) {
                // The newest value is at the right, however many there are yet.
                let first = last - (line.values.len() as f64 - 1.0);
                let at = |(at, value): (usize, &f64)| (first + at as f64, *value);
                let drawn = line.values.iter().enumerate().map(at);
                chart.draw_series(LineSeries::new(drawn, colour.stroke_width(2)))?;
            }
            area.present()?;
        }
        Ok(out)
    }
}

fn ago(seconds: u64) -> String {
    match seconds {
        0 => "now".to_owned(),
        1..60 => format!("{seconds} s ago"),
        60..3_600 => format!("{} min ago", seconds / 60),
        _ => format!("{} h ago", seconds / 3_600),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_line_has_its_colour_and_its_words() {
        let lines = [
            Line { name: "Reads", values: &[1.0, 5.0, 2.0] },
            Line { name: "Writes", values: &[0.0, 0.0, 0.0] },
        ];
        let print = |value: f64| format!("{value}/s");
        let svg =
            Lines { title: "Requests", lines: &lines, step_s: 10, print }.draw().into_string();
        for colour in ["#2F6FD6", "#0F8B8D"] {
            assert_eq!(svg.matches(&format!("stroke=\"{colour}\"")).count(), 1, "{svg}");
        }
        assert!(svg.contains("Requests: Reads is 2/s, at most 5/s. Writes is 0/s, at most 0/s."));
        assert!(svg.contains("<title>10 s ago: Reads 5/s, Writes 0/s</title>"), "{svg}");
        assert!(svg.contains("<title>now: Reads 2/s, Writes 0/s</title>"), "{svg}");
    }

    #[test]
    fn nothing_is_drawn_before_there_is_anything() {
        let lines = [Line { name: "Reads", values: &[] }];
        let none = Lines { title: "x", lines: &lines, step_s: 10, print: |_| String::new() };
        assert_eq!(none.draw().into_string(), "");
        let lines = [Line { name: "Reads", values: &[1.0] }];
        let one = Lines { title: "x", lines: &lines, step_s: 10, print: |_| String::new() };
        assert!(one.draw().into_string().contains("<svg"));
    }
}
