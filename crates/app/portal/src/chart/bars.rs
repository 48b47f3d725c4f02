//! One bar for each partition, in the order of routes, with the even share as a line: what is above it has more than
//! its part. When there are more partitions than a screen has room for, a bar stands for several neighbours and shows
//! the largest of them, so that a hot one is never averaged away.

use maud::Markup;
use plotters::prelude::*;

use super::{
    BAR, BOTTOM, COLOURS, EVEN, GRID, HOT, LEFT, LETTERS, RIGHT, SHARDS, SIZE, TEXT, TOP, picture,
    top,
};

/// The most bars of a chart.
pub(crate) const COLUMNS_MAX: usize = 240;
/// From this many times the even share on a bar is drawn as a hot one.
const HOT_TIMES: f64 = 2.0;
/// The part of its place that a bar leaves free where there is room, and from how many bars on there is none.
const GAP: f64 = 0.12;
const GAPS_BELOW: usize = 80;

pub(crate) struct Bars<'a> {
    /// What is measured, such as "Storage per partition".
    pub(crate) title: &'a str,
    /// What the bars are, under the axis.
    pub(crate) axis: &'a str,
    pub(crate) values: &'a [u64],
    /// What each bar is called.
    pub(crate) names: &'a [String],
    /// The colours of shards, where bars are shards; none where the hot ones are to stand out.
    pub(crate) colours: Option<&'a [usize]>,
    /// How a value is written.
    pub(crate) print: fn(u64) -> String,
}

impl Bars<'_> {
    pub(crate) fn draw(&self) -> Markup {
        let total: u64 = self.values.iter().sum();
        let even = total as f64 / self.values.len().max(1) as f64;
        let columns = columns(self.values);
        let largest = self.values.iter().max().copied().unwrap_or(0);
        let sentence = format!(
            "{}: {} bars, {}. The largest is {}, the even share is {}.",
            self.title,
            columns.len(),
            self.axis,
            (self.print)(largest),
            (self.print)(even.round() as u64)
        );
        let drawn = (!columns.is_empty()).then(|| self.svg(&columns, even).ok()).flatten();
        let words = |(at, value): &(usize, u64)| {
            let name = self.names.get(*at).map_or("", String::as_str);
            format!("{name}: {}", (self.print)(*value))
        };
        let places: Vec<String> = columns.iter().map(words).collect();
        picture(drawn, &sentence, &places)
    }

    fn svg(
        &self,
        columns: &[(usize, u64)],
        even: f64,
    ) -> Result<String, Box<dyn std::error::Error + '_>> {
        let mut out = String::new();
        {
            let area = SVGBackend::with_string(&mut out, SIZE).into_drawing_area();
            let largest = columns.iter().map(|(_, value)| *value).max().unwrap_or(0) as f64;
            let width = columns.len() as f64;
            let mut chart = ChartBuilder::on(&area)
                .margin_top(TOP)
                .margin_right(RIGHT)
                .y_label_area_size(LEFT)
                .x_label_area_size(BOTTOM)
                .build_cartesian_2d(0.0..width, 0.0..top(largest.max(even)))?;
            let print = |value: &f64| (self.print)(value.max(0.0).round() as u64);
            chart
                .configure_mesh()
                .disable_x_mesh()
                .x_labels(0)
                .x_desc(self.axis)
                .y_labels(5)
                .y_label_formatter(&print)
                .label_style(("sans-serif", LETTERS).into_font().color(&TEXT))
                .axis_style(GRID)
                .bold_line_style(GRID)
                .light_line_style(TRANSPARENT)
                .draw()?;
            let gap = if columns.len() < GAPS_BELOW { GAP } else { 0.0 };
            chart.draw_series(columns.iter().enumerate().map(|(at, (first, value))| {
                let corners = [(at as f64 + gap, 0.0), ((at + 1) as f64 - gap, *value as f64)];
                Rectangle::new(corners, self.colour(*first, *value, even, columns.len()).filled())
            }))?;
            let line = [(0.0, even), (width, even)];
            chart.draw_series(LineSeries::new(line, EVEN.stroke_width(2)))?;
            area.present()?;
        }
        Ok(out)
    }

    fn colour(&self, first: usize, value: u64, even: f64, columns: usize) -> RGBColor {
        match self.colours {
            Some(colours) => SHARDS[colours.get(first).copied().unwrap_or(0) % COLOURS],
            None if value as f64 > even * HOT_TIMES && columns > 1 => HOT,
            None => BAR,
        }
    }
}

/// The values with their places, or of each few neighbours the largest.
fn columns(values: &[u64]) -> Vec<(usize, u64)> {
    let each = values.len().div_ceil(COLUMNS_MAX).max(1);
    let largest = |(group, few): (usize, &[u64])| {
        let most = few.iter().enumerate().max_by_key(|(at, value)| (**value, usize::MAX - at));
        most.map(|(at, value)| (group * each + at, *value))
    };
    values.chunks(each).enumerate().filter_map(largest).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn draw(values: &[u64]) -> String {
        let names: Vec<String> = (0..values.len()).map(|at| format!("<{at}>")).collect();
        let (title, axis) = ("Storage <per> partition", "in the order of keys");
        let print = |value: u64| value.to_string();
        Bars { title, axis, values, names: &names, colours: None, print }.draw().into_string()
    }

    #[test]
    fn a_hot_partition_stands_out_and_the_sentence_says_by_how_much() {
        let svg = draw(&[10, 10, 100, 10]);
        assert_eq!(svg.matches("fill=\"#2F6FD6\"").count(), 3, "{svg}");
        assert_eq!(svg.matches("fill=\"#C2410C\"").count(), 1);
        assert_eq!(svg.matches("stroke=\"#7A2E00\"").count(), 1, "the even share");
        let sentence = "Storage &lt;per&gt; partition: 4 bars, in the order of keys. \
                        The largest is 100, the even share is 33.";
        assert!(svg.contains(&format!("role=\"img\" aria-label=\"{sentence}\"")), "{svg}");
        assert!(svg.contains("<title>&lt;2&gt;: 100</title>"), "each bar has its value: {svg}");
    }

    #[test]
    fn bars_of_shards_have_the_colours_of_their_shards() {
        let (names, colours) = (["a", "b"].map(str::to_owned), [1, 9]);
        let print = |value: u64| value.to_string();
        let (title, axis, values) = ("Storage", "shards", &[1, 9][..]);
        let bars = Bars { title, axis, values, names: &names, colours: Some(&colours), print };
        let svg = bars.draw().into_string();
        assert_eq!(svg.matches("fill=\"#0F8B8D\"").count(), 2, "{svg}");
        assert!(!svg.contains("#C2410C"), "{svg}");
    }

    #[test]
    fn many_partitions_make_few_bars_and_the_hot_one_is_still_there() {
        let mut values = vec![1; 10_000];
        values[4_321] = 1_000;
        let columns = columns(&values);
        assert!(columns.len() <= COLUMNS_MAX);
        assert_eq!(columns.iter().filter(|(_, value)| *value == 1_000).count(), 1);
        let svg = draw(&values);
        assert_eq!(svg.matches("fill=\"#C2410C\"").count(), 1);
        assert!(svg.contains("<title>&lt;4321&gt;: 1000</title>"));
        assert!(svg.len() < 80_000, "{} bytes", svg.len());
    }

    #[test]
    fn nothing_is_drawn_of_nothing_and_zeros_are_flat() {
        assert_eq!(draw(&[]), "");
        assert!(draw(&[0, 0]).contains("the even share is 0."));
    }
}
