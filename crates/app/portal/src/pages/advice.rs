//! Advice: what the traffic says about the choice of keys, with the evidence and what helps.

use maud::html;

use crate::layout::{list, live, text};
use crate::page::{Outcome, Part, Result, Visit};

pub(crate) async fn show(visit: &Visit<'_>) -> Result {
    let advice = visit.api.get(&["v1", "advice"]).await?;
    let all = list(&advice["advice"]);
    let body = html! {
        h1 { "Advice" }
        p.muted { "Traffic is watched since " (text(&advice["since"])) "." }
        (live("advice", html! {
            @if all.is_empty() { div.card { p { "There is nothing to advise." } } }
            @for (at, one) in all.iter().enumerate() {
                article.card aria-labelledby={ "advice-" (at) } {
                    h2 id={ "advice-" (at) } { (text(&one["finding"])) }
                    p { a href=(super::containers::path(text(&one["map"]))) { (text(&one["map"])) } }
                    h3 { "Evidence" }
                    ul { @for sentence in list(&one["evidence"]) { li { (text(sentence)) } } }
                    h3 { "What helps" }
                    ol { @for remedy in list(&one["remedies"]) { li { (text(remedy)) } } }
                }
            }
        }))
    };
    Outcome::page("Advice", Part::Advice, body)
}
