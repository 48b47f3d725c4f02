//! Stored text as people see it: escaped, isolated from the direction of the text around it, and with invisible and
//! direction-changing characters written out.

use maud::{Markup, html};

/// A name, a key or a value on one line.
pub(crate) fn stored(text: &str) -> Markup {
    let mut pieces = Vec::new();
    let mut plain = String::new();
    for c in text.chars() {
        if is_unseen(c) {
            pieces.push(Piece::Plain(std::mem::take(&mut plain)));
            pieces.push(Piece::Sign(c));
        } else {
            plain.push(c);
        }
    }
    pieces.push(Piece::Plain(plain));
    html! {
        bdi.stored {
            @for piece in pieces {
                @match piece {
                    Piece::Plain(text) => (text),
                    Piece::Sign(c) => span.sign { (format!("U+{:04X}", u32::from(c))) },
                }
            }
            @if text.is_empty() { span.sign { "empty" } }
        }
    }
}

/// The whole of a text, for a `pre`. HTML parsers drop a line break at its beginning, so one more stands before it.
pub(super) fn whole(text: &str) -> Markup {
    html! { "\n" (text) }
}

enum Piece {
    Plain(String),
    Sign(char),
}

/// Control characters, and those that change the direction of what follows.
fn is_unseen(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{2069}'
            | '\u{feff}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_that_is_stored_becomes_markup_or_turns_the_line_around() {
        let shown = stored("<b>\u{202e}x\n").into_string();
        assert_eq!(
            shown,
            "<bdi class=\"stored\">&lt;b&gt;<span class=\"sign\">U+202E</span>x\
             <span class=\"sign\">U+000A</span></bdi>"
        );
        assert!(stored("").into_string().contains("empty"));
    }
}
