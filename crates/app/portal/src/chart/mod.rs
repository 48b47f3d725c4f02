//! Charts as SVG that stands in the page: bars for many partitions, lines for one over time, and the map as a strip.
//!
//! Every chart is one picture with a sentence for screen readers; the page has the same figures in a table. Colours are
//! fixed here and replaced by the style sheet, which has a light and a dark scheme.

mod bars;
mod lines;
mod strip;

use maud::{Markup, PreEscaped, html};
use plotters::style::RGBColor;

pub(crate) use bars::{Bars, COLUMNS_MAX};
pub(crate) use lines::{Line, Lines};
pub(crate) use strip::{Piece, strip};

/// The size of a chart in its own units; on the screen it takes the width that there is.
const SIZE: (u32, u32) = (520, 230);
/// The height of letters in those units.
const LETTERS: u32 = 15;

// The style sheet knows these by their values: `[fill="#2F6FD6"]` and so on.
const BAR: RGBColor = RGBColor(0x2F, 0x6F, 0xD6);
const HOT: RGBColor = RGBColor(0xC2, 0x41, 0x0C);
const EVEN: RGBColor = RGBColor(0x7A, 0x2E, 0x00);
const GRID: RGBColor = RGBColor(0xE3, 0xE8, 0xF0);
const TEXT: RGBColor = RGBColor(0x56, 0x60, 0x73);
const SECOND: RGBColor = RGBColor(0x0F, 0x8B, 0x8D);

/// A drawing as part of a page. One that could not be made is nothing: the table beside it has the figures.
fn picture(drawn: Option<String>, sentence: &str) -> Markup {
    let Some(svg) = drawn else { return html! {} };
    let named = html! { (sentence) }.into_string();
    let opening = format!("<svg class=\"chart\" role=\"img\" aria-label=\"{named}\" ");
    PreEscaped(svg.replacen("<svg ", &opening, 1))
}

/// The upper end of an axis on which the largest value has some room above it. Never zero.
fn top(largest: f64) -> f64 {
    if largest > 0.0 { largest * 1.08 } else { 1.0 }
}
