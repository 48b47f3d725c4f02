//! The settings in force, each with where it comes from. Secrets are masked by the admin API.

use maud::{Markup, html};
use serde_json::Value;

use crate::layout::{table, text};
use crate::page::{Outcome, Part, Result, Visit};

pub(crate) async fn show(visit: &Visit<'_>) -> Result {
    let wanted = visit.query.get("name").unwrap_or_default().trim().to_owned();
    let settings = visit.api.get(&["v1", "settings"]).await?;
    let all: Vec<(&String, &Value)> = settings.as_object().into_iter().flatten().collect();
    let is_wanted = |(name, _): &&(&String, &Value)| name.contains(&wanted);
    let (told, default): (Vec<_>, Vec<_>) =
        all.iter().filter(is_wanted).partition(|(_, one)| one["origin"] != "default");
    let body = html! {
        h1 { "Settings" }
        p.muted { "As they are in force since the start. They are changed by flags, variables or the settings \
            file, and a restart." }
        form.inline method="get" action=(Part::Settings.path()) role="search" {
            div {
                label for="name" { "Part of the name" }
                input #name type="search" name="name" value=(wanted);
            }
            button.quiet type="submit" { "Find" }
        }
        section.card aria-labelledby="told" {
            h2 #told { "Set here" }
            @if told.is_empty() { p.muted { "Nothing: every setting has its default." } }
            @else { (rows("Set here", &told)) }
        }
        section.card aria-labelledby="default" {
            h2 #default { "Defaults" }
            @if default.is_empty() { p.muted { "There is no such setting." } }
            @else { (rows("Defaults", &default)) }
        }
    };
    Outcome::page("Settings", Part::Settings, body)
}

fn rows(label: &str, settings: &[&(&String, &Value)]) -> Markup {
    let rows = html! {
        @for (name, one) in settings {
            tr data-setting=(name) {
                th.name scope="row" { (name) }
                td.key { @match one["value"].as_str() { Some(value) => { code { (value) } } None => "–" } }
                td { (text(&one["origin"])) }
            }
        }
    };
    table(label, &["Setting", "Value", "From"], rows)
}
