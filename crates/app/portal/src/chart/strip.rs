//! The map of a container: its routing space from left to right, cut into partitions, coloured by the shard that has
//! them. Partitions are drawn equally wide: keys have an order but no distance.

use maud::{Markup, html};

use super::COLUMNS_MAX;

/// The width of the drawing in its own units.
const WIDTH: f64 = 1_000.0;
const HEIGHT: f64 = 44.0;
/// How many shards have a colour of their own; further ones take the same again.
const COLOURS: usize = 8;

/// One partition of the map.
pub(crate) struct Piece {
    pub(crate) id: u64,
    /// Which shard of the legend has it.
    pub(crate) shard: usize,
    /// The tooltip.
    pub(crate) title: String,
}

/// The name of a shard's colour.
pub(crate) fn colour(shard: usize) -> String {
    format!("s{}", shard % COLOURS)
}

pub(crate) fn strip(pieces: &[Piece], shards: &[(String, usize)]) -> Markup {
    let sentence = format!(
        "The routing space cut into {} partitions on {} shards, in the order of keys",
        pieces.len(),
        shards.len()
    );
    html! {
        svg.strip role="img" aria-label=(sentence) viewBox=(format!("0 0 {WIDTH} {HEIGHT}"))
            preserveAspectRatio="none" {
            @if pieces.len() <= COLUMNS_MAX { (each(pieces)) } @else { (some(pieces)) }
        }
        ul.legend aria-label="Shards by colour" {
            @for (at, (name, partitions)) in shards.iter().enumerate() {
                li {
                    svg.swatch aria-hidden="true" viewBox="0 0 10 10" {
                        rect class=(colour(at)) width="10" height="10" rx="2" {}
                    }
                    (name) " (" (partitions) ")"
                }
            }
        }
    }
}

fn each(pieces: &[Piece]) -> Markup {
    let width = WIDTH / pieces.len().max(1) as f64;
    // A hair of the ground shows where one partition ends and the next begins.
    let drawn = (width - 1.5).max(width * 0.7);
    html! {
        @for (at, piece) in pieces.iter().enumerate() {
            rect class=(colour(piece.shard)) x=(format!("{:.1}", at as f64 * width)) y="0"
                width=(format!("{drawn:.1}")) height=(HEIGHT)
                data-go={ "/portal/partitions/" (piece.id) } {
                title { (piece.title) }
            }
        }
    }
}

/// More partitions than pixels: runs of columns on one shard become one rectangle.
fn some(pieces: &[Piece]) -> Markup {
    let mut runs: Vec<(usize, usize, usize)> = Vec::new();
    let columns = COLUMNS_MAX * 2;
    for column in 0..columns {
        let at = column * pieces.len() / columns;
        let shard = pieces[at].shard;
        match runs.last_mut() {
            Some((last, _, end)) if *last == shard => *end = column + 1,
            _ => runs.push((shard, column, column + 1)),
        }
    }
    let unit = WIDTH / columns as f64;
    html! {
        @for (shard, begin, end) in runs {
            rect class=(colour(shard)) x=(format!("{:.1}", begin as f64 * unit)) y="0"
                width=(format!("{:.1}", (end - begin) as f64 * unit)) height=(HEIGHT) {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn draw(count: usize) -> String {
        let piece = |id: usize| Piece { id: id as u64, shard: id % 3, title: format!("<{id}>") };
        let pieces: Vec<Piece> = (0..count).map(piece).collect();
        let shards = [("a".to_owned(), 1), ("b<".to_owned(), 1), ("c".to_owned(), 1)];
        strip(&pieces, &shards).into_string()
    }

    #[test]
    fn every_partition_has_its_place_and_its_shards_colour() {
        let svg = draw(4);
        assert_eq!(svg.matches("class=\"s0\"").count(), 3, "two partitions and the legend: {svg}");
        assert!(svg.contains("<title>&lt;3&gt;</title>") && svg.contains("b&lt; (1)"));
        assert!(svg.contains("cut into 4 partitions on 3 shards"));
    }

    #[test]
    fn more_partitions_than_pixels_are_drawn_in_few_pieces() {
        let svg = draw(10_000);
        assert!(svg.len() < 60_000, "{} bytes", svg.len());
        assert!(svg.contains("cut into 10000 partitions"));
    }
}
