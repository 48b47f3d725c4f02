//! Charts as SVG that stands in the page: bars for many partitions, lines for one over time, and the map as a strip.
//!
//! Every chart is one picture with a sentence for screen readers; the page has the same figures in a table. Each place of a
//! chart has its values as a tooltip, which the script also reads out by keyboard. Colours are fixed here and replaced by the
//! style sheet, which has a light and a dark scheme.

mod bars;
mod lines;
mod strip;

use maud::{Markup, PreEscaped, html};
use plotters::style::RGBColor;

pub(crate) use bars::{Bars, COLUMNS_MAX};
pub(crate) use lines::{Line, Lines};
pub(crate) use strip::{Piece, Wide, strip};

/// The size of a chart in its own units; on the screen it takes the width that there is.
const SIZE: (u32, u32) = (520, 240);
/// The height of letters in those units.
const LETTERS: u32 = 15;
/// Where the drawing lies in it: what the axes and their words leave.
const LEFT: u32 = 92;
const RIGHT: u32 = 14;
const TOP: u32 = 8;
const BOTTOM: u32 = 44;

/// How many shards have a colour of their own; further ones take the same again.
pub(crate) const COLOURS: usize = 8;

// The style sheet knows these by their values: `[fill="#2F6FD6"]` and so on.
const BAR: RGBColor = SHARDS[0];
const SECOND: RGBColor = SHARDS[1];
const HOT: RGBColor = RGBColor(0xC2, 0x41, 0x0C);
const EVEN: RGBColor = RGBColor(0x7A, 0x2E, 0x00);
const GRID: RGBColor = RGBColor(0xE3, 0xE8, 0xF0);
const TEXT: RGBColor = RGBColor(0x56, 0x60, 0x73);
const SHARDS: [RGBColor; COLOURS] = [
    RGBColor(0x2F, 0x6F, 0xD6),
    RGBColor(0x0F, 0x8B, 0x8D),
    RGBColor(0xB4, 0x57, 0x2A),
    RGBColor(0x7A, 0x4F, 0xC4),
    RGBColor(0x4D, 0x8A, 0x1F),
    RGBColor(0xC2, 0x3D, 0x7A),
    RGBColor(0x8A, 0x6D, 0x00),
    RGBColor(0x52, 0x60, 0x7A),
];

/// A square in the colour of a shard.
pub(crate) fn swatch(colour: usize) -> Markup {
    html! {
        svg.swatch aria-hidden="true" viewBox="0 0 10 10" {
            rect class={ "s" (colour % COLOURS) } width="10" height="10" rx="2" {}
        }
    }
}

/// A drawing as part of a page, with the words of each of its places from left to right. One that could not be made is
/// nothing: the table beside it has the figures.
fn picture(drawn: Option<String>, sentence: &str, places: &[String]) -> Markup {
    let Some(svg) = drawn else { return html! {} };
    let named = html! { (sentence) }.into_string();
    let opening = format!("<svg class=\"chart\" role=\"img\" aria-label=\"{named}\" ");
    let svg = svg.replacen("<svg ", &opening, 1);
    let width = f64::from(SIZE.0 - LEFT - RIGHT) / places.len().max(1) as f64;
    let hits = html! {
        @for (at, words) in places.iter().enumerate() {
            rect.hit x=(format!("{:.1}", f64::from(LEFT) + at as f64 * width)) y=(TOP)
                width=(format!("{width:.1}")) height=(SIZE.1 - TOP - BOTTOM) {
                title { (words) }
            }
        }
    };
    let ended = svg.trim_end().strip_suffix("</svg>").map(str::to_owned);
    html! {
        figure.plot {
            @match ended {
                Some(begun) => { (PreEscaped(begun)) (hits) (PreEscaped("</svg>")) }
                None => { (PreEscaped(svg)) }
            }
            p.readout.muted {}
        }
    }
}

/// The upper end of an axis on which the largest value has some room above it. Never zero.
fn top(largest: f64) -> f64 {
    if largest > 0.0 { largest * 1.08 } else { 1.0 }
}
