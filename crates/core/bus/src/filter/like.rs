//! LIKE: `%` stands for any characters, `_` for one, and what follows the escape character for itself.

use lazuli_engine::Result;

use super::bad;

enum Piece {
    One(char),
    Any,
    Many,
}

/// Whether a text is like a pattern. The work is bounded by the product of their lengths.
pub(super) fn matches(text: &str, pattern: &str, escape: Option<char>) -> Result<bool> {
    let mut pieces = Vec::new();
    let mut rest = pattern.chars();
    while let Some(character) = rest.next() {
        pieces.push(match character {
            _ if Some(character) == escape => match rest.next() {
                Some(next) => Piece::One(next),
                None => return Err(bad("a pattern ends with its escape character")),
            },
            '%' => Piece::Many,
            '_' => Piece::Any,
            _ => Piece::One(character),
        });
    }
    let text: Vec<char> = text.chars().collect();
    let (mut at, mut piece) = (0, 0);
    // Where to go on if what follows the last `%` does not fit: it then stands for one character more.
    let mut again: Option<(usize, usize)> = None;
    while at < text.len() {
        let fits = match pieces.get(piece) {
            Some(Piece::Many) => {
                again = Some((at, piece));
                piece += 1;
                continue;
            }
            Some(Piece::Any) => true,
            Some(Piece::One(wanted)) => text[at] == *wanted,
            None => false,
        };
        if fits {
            (at, piece) = (at + 1, piece + 1);
        } else if let Some((start, many)) = again {
            (at, piece) = (start + 1, many + 1);
            again = Some((start + 1, many));
        } else {
            return Ok(false);
        }
    }
    Ok(pieces[piece..].iter().all(|piece| matches!(piece, Piece::Many)))
}
