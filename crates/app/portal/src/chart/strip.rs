//! The map of a container: its routing space from left to right, cut into partitions, coloured by the shard that has
//! them. Keys have an order but no distance: partitions are equally wide, or as wide as what they hold or are asked for.

use maud::{Markup, html};

use super::{COLOURS, COLUMNS_MAX, swatch};

/// The width of the drawing in its own units.
const WIDTH: f64 = 1_000.0;
const HEIGHT: f64 = 44.0;
/// The part of the width that is shared evenly, so that a partition with nothing in it is still seen.
const SEEN: f64 = 0.1;

/// One partition of the map.
pub(crate) struct Piece {
    pub(crate) id: u64,
    /// The colour of the shard that has it.
    pub(crate) colour: usize,
    /// What it is as wide as.
    pub(crate) weight: u64,
    /// The tooltip.
    pub(crate) title: String,
}

/// How wide partitions are drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Wide {
    Equally,
    BySize,
    ByLoad,
}

impl Wide {
    pub(crate) const ALL: [Self; 3] = [Self::Equally, Self::BySize, Self::ByLoad];

    pub(crate) fn parse(word: &str) -> Self {
        Self::ALL.into_iter().find(|wide| wide.word() == word).unwrap_or(Self::Equally)
    }

    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::Equally => "equal",
            Self::BySize => "bytes",
            Self::ByLoad => "requests",
        }
    }

    pub(crate) fn title(self) -> &'static str {
        match self {
            Self::Equally => "Equally wide",
            Self::BySize => "By storage",
            Self::ByLoad => "By requests",
        }
    }

    fn sentence(self) -> &'static str {
        match self {
            Self::Equally => "equally wide",
            Self::BySize => "as wide as their storage",
            Self::ByLoad => "as wide as their requests",
        }
    }
}

/// A shard in the legend: its name, its colour, and how many of the partitions it has.
pub(crate) type Named = (String, usize, usize);

pub(crate) fn strip(pieces: &[Piece], shards: &[Named], wide: Wide) -> Markup {
    let sentence = format!(
        "The routing space cut into {} partitions on {} shards, in the order of keys, {}",
        pieces.len(),
        shards.len(),
        wide.sentence()
    );
    let ends = ends(pieces, wide);
    html! {
        svg.strip role="img" aria-label=(sentence) viewBox=(format!("0 0 {WIDTH} {HEIGHT}"))
            preserveAspectRatio="none" {
            @if pieces.len() <= COLUMNS_MAX { (each(pieces, &ends)) } @else { (some(pieces, &ends)) }
        }
        ul.legend aria-label="Shards by colour" {
            @for (name, colour, partitions) in shards { li { (swatch(*colour)) (name) " (" (partitions) ")" } }
        }
    }
}

/// Where each piece ends, on a line of the length one.
fn ends(pieces: &[Piece], wide: Wide) -> Vec<f64> {
    let total: f64 = pieces.iter().map(|piece| piece.weight as f64).sum();
    let even = 1.0 / pieces.len().max(1) as f64;
    let width = |piece: &Piece| match wide {
        Wide::Equally => even,
        _ if total == 0.0 => even,
        _ => SEEN * even + (1.0 - SEEN) * piece.weight as f64 / total,
    };
    let sum = |end: &mut f64, piece: &Piece| {
        *end += width(piece);
        Some(*end)
    };
    pieces.iter().scan(0.0, sum).collect()
}

fn class(colour: usize) -> String {
    format!("s{}", colour % COLOURS)
}

fn each(pieces: &[Piece], ends: &[f64]) -> Markup {
    let begins = std::iter::once(&0.0).chain(ends);
    html! {
        @for (piece, (begin, end)) in pieces.iter().zip(begins.zip(ends)) {
            @let width = (end - begin) * WIDTH;
            // A hair of the ground shows where one partition ends and the next begins.
            rect class=(class(piece.colour)) x=(format!("{:.1}", begin * WIDTH)) y="0"
                width=(format!("{:.1}", (width - 1.5).max(width * 0.7))) height=(HEIGHT)
                data-go={ "/portal/partitions/" (piece.id) } {
                title { (piece.title) }
            }
        }
    }
}

/// More partitions than pixels: runs of columns on one shard become one rectangle.
fn some(pieces: &[Piece], ends: &[f64]) -> Markup {
    let mut runs: Vec<(usize, usize, usize)> = Vec::new();
    let columns = COLUMNS_MAX * 2;
    for column in 0..columns {
        let place = (column as f64 + 0.5) / columns as f64;
        let at = ends.partition_point(|end| *end < place).min(pieces.len() - 1);
        let colour = pieces[at].colour;
        match runs.last_mut() {
            Some((last, _, end)) if *last == colour => *end = column + 1,
            _ => runs.push((colour, column, column + 1)),
        }
    }
    let unit = WIDTH / columns as f64;
    html! {
        @for (colour, begin, end) in runs {
            rect class=(class(colour)) x=(format!("{:.1}", begin as f64 * unit)) y="0"
                width=(format!("{:.1}", (end - begin) as f64 * unit)) height=(HEIGHT) {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn draw(count: usize, wide: Wide) -> String {
        let piece = |id: usize| Piece {
            id: id as u64,
            colour: id % 3,
            weight: if id == 1 { 900 } else { 33 },
            title: format!("<{id}>"),
        };
        let pieces: Vec<Piece> = (0..count).map(piece).collect();
        let shards = [("a", 0), ("b<", 1), ("c", 2)].map(|(name, at)| (name.to_owned(), at, 1));
        strip(&pieces, &shards, wide).into_string()
    }

    #[test]
    fn every_partition_has_its_place_and_its_shards_colour() {
        let svg = draw(4, Wide::Equally);
        assert_eq!(svg.matches("class=\"s0\"").count(), 3, "two partitions and the legend: {svg}");
        assert!(svg.contains("<title>&lt;3&gt;</title>") && svg.contains("b&lt; (1)"));
        assert!(svg.contains("cut into 4 partitions on 3 shards"));
        assert_eq!(svg.matches("width=\"248.5\"").count(), 4, "{svg}");
    }

    #[test]
    fn a_partition_is_as_wide_as_what_it_holds_and_an_empty_one_is_seen() {
        let svg = draw(4, Wide::BySize);
        assert!(
            svg.contains("width=\"834.3\"") && svg.contains("as wide as their storage"),
            "{svg}"
        );
        assert_eq!(svg.matches("width=\"53.2\"").count(), 3, "{svg}");
    }

    #[test]
    fn more_partitions_than_pixels_are_drawn_in_few_pieces() {
        for wide in Wide::ALL {
            let svg = draw(10_000, wide);
            assert!(svg.len() < 60_000, "{} bytes", svg.len());
            assert!(svg.contains("cut into 10000 partitions"));
        }
    }
}
