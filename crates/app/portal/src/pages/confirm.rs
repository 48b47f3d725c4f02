//! The second step of a change: what it would do, and a button that says so.

use maud::{Markup, html};

use crate::layout::csrf;
use crate::page::{Outcome, Part, Result, Visit};

pub(crate) struct Confirm<'a> {
    pub(crate) title: String,
    pub(crate) part: Part,
    /// What it does, in words.
    pub(crate) effect: Markup,
    /// Where the button leads, and what it sends.
    pub(crate) action: String,
    pub(crate) fields: &'a [(&'a str, &'a str)],
    /// What the button says. None where it cannot be done, as the effect says.
    pub(crate) words: Option<String>,
    /// Whether something is lost for good.
    pub(crate) is_dangerous: bool,
    /// The page to go back to.
    pub(crate) back: &'a str,
}

impl Confirm<'_> {
    pub(crate) fn page(self, visit: &Visit<'_>) -> Result {
        let body = html! {
            h1 { (self.title) }
            section.card aria-labelledby="effect" {
                h2 #effect { "What it does" }
                (self.effect)
                @if let Some(words) = &self.words {
                    form method="post" action=(self.action) {
                        (csrf(visit.session))
                        @for (name, value) in self.fields {
                            input type="hidden" name=(name) value=(value);
                        }
                        div.actions {
                            button.danger[self.is_dangerous] type="submit" { (words) }
                            a.button.quiet href=(self.back) { "Leave it as it is" }
                        }
                    }
                } @else {
                    p { a.button.quiet href=(self.back) { "Back" } }
                }
            }
        };
        Outcome::page(self.title, self.part, body)
    }
}
