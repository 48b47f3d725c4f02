//! The layout that all pages share: the frame with the navigation, and their small building blocks.

use maud::{DOCTYPE, Markup, html};
use serde_json::Value;

use crate::form::CSRF_FIELD;
use crate::page::{Fault, Page, Part};
use crate::session::{Notice, Session};

/// A whole page in its frame.
pub(crate) fn page(page: &Page, session: &Session, notice: Option<&Notice>) -> Markup {
    frame(
        &page.title,
        html! {
            div.shell {
                header.side {
                    a.brand href="/portal/" { (brand()) }
                    nav aria-label="Parts of the portal" {
                        ul {
                            @for part in Part::ALL {
                                li {
                                    a href=(part.path()) aria-current=[(*part == page.part).then_some("page")] {
                                        (part.title())
                                    }
                                }
                            }
                        }
                    }
                    form.logout method="post" action="/portal/logout" {
                        (csrf(session))
                        button.quiet type="submit" { "Log out" }
                    }
                }
                main #main tabindex="-1" {
                    @if let Some(notice) = notice {
                        p.notice.bad[!notice.good] role="status" { (notice.text) }
                    }
                    (page.body)
                }
            }
        },
    )
}

/// A page for a visitor who is not logged in.
pub(crate) fn outside(title: &str, body: Markup) -> Markup {
    frame(
        title,
        html! {
            main.outside #main tabindex="-1" {
                p.brand { (brand()) }
                (body)
            }
        },
    )
}

/// The page shown instead of one that failed.
pub(crate) fn fault(fault: &Fault) -> Markup {
    html! {
        h1 { "That did not work" }
        div.card {
            p { (fault.message) }
            @if let Some(hint) = &fault.hint { p.muted { (hint) } }
            p { a href="/portal/" { "Back to the overview" } }
        }
    }
}

fn frame(title: &str, body: Markup) -> Markup {
    html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                title { (title) " · Lazuli" }
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="color-scheme" content="light dark";
                link rel="icon" href="/portal/static/icon.svg" type="image/svg+xml";
                link rel="stylesheet" href="/portal/static/portal.css";
                script src="/portal/static/portal.js" defer {}
            }
            body {
                a.skip href="#main" { "Skip to the content" }
                (body)
            }
        }
    }
}

fn brand() -> Markup {
    html! {
        svg viewBox="0 0 24 24" width="24" height="24" aria-hidden="true" {
            path.gem-a d="M12 2 3 9l9 13z" {}
            path.gem-b d="M12 2l9 7-9 13z" {}
            path.gem-c d="M3 9h18l-9 4z" {}
        }
        span { "Lazuli" }
    }
}

/// The CSRF token of the session, as a hidden field.
pub(crate) fn csrf(session: &Session) -> Markup {
    html! { input type="hidden" name=(CSRF_FIELD) value=(session.csrf); }
}

/// A part of a page that is kept up to date while it is looked at. Keys are unique on a page.
pub(crate) fn live(key: &str, body: Markup) -> Markup {
    html! { div data-live=(key) { (body) } }
}

/// A figure with its name.
pub(crate) fn tile(name: &str, figure: &str, more: &str) -> Markup {
    html! {
        div.tile {
            dt { (name) }
            dd { strong { (figure) } @if !more.is_empty() { span.muted { (more) } } }
        }
    }
}

/// A fact among others, with its name.
pub(crate) fn fact(name: &str, value: Markup) -> Markup {
    html! { div { dt { (name) } dd { (value) } } }
}

/// The state of a partition or a shard.
pub(crate) fn state(word: &str) -> Markup {
    let good = word == "online";
    let bad = ["offline", "down", "refused", "full", "failed"].contains(&word);
    html! { span.state.good[good].bad[bad] { (word) } }
}

/// A part of a whole as a bar; hidden from screen readers, because the figure stands beside it.
pub(crate) fn bar(part: u64, whole: u64) -> Markup {
    let width = part as f64 * 100.0 / whole.max(1) as f64;
    html! {
        svg.share aria-hidden="true" viewBox="0 0 100 4" preserveAspectRatio="none" {
            rect width=(format!("{width:.1}")) height="4" {}
        }
    }
}

/// A table that scrolls by itself where it is too wide, by keyboard too.
pub(crate) fn table(label: &str, heads: &[&str], rows: Markup) -> Markup {
    number_table(label, heads, &[], rows)
}

/// The same with columns of figures at the right.
pub(crate) fn number_table(label: &str, heads: &[&str], numbers: &[&str], rows: Markup) -> Markup {
    html! {
        div.scroll tabindex="0" role="region" aria-label=(label) {
            table {
                caption.hidden { (label) }
                thead {
                    tr {
                        @for head in heads { th scope="col" { (head) } }
                        @for head in numbers { th.number scope="col" { (head) } }
                    }
                }
                tbody { (rows) }
            }
        }
    }
}

/// A text in an answer of the admin API; empty if there is none.
pub(crate) fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

/// A list in an answer of the admin API.
pub(crate) fn list(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}
