//! Changes of a sharded database: first what they would do, then the change.

use lazuli_http::StatusCode;
use maud::{Markup, html};
use serde_json::{Value, json};

use super::place::{SqlChange, change, link};
use crate::layout::{list, text};
use crate::page::{Fault, Outcome, Part, Result, Visit};
use crate::pages::confirm::Confirm;

/// What a change would do.
struct Preview {
    title: String,
    effect: Markup,
    /// What the button says. None while something is to be chosen.
    words: Option<String>,
    /// What it sends.
    fields: Vec<(&'static str, String)>,
}

pub(super) async fn preview(visit: &Visit<'_>, database: &str, what: SqlChange) -> Result {
    let shown = visit.api.get(&["v1", "sql", database]).await?;
    let given = |name: &str| visit.query.get(name).unwrap_or_default().trim().to_owned();
    let preview = match what {
        SqlChange::Move => move_range(database, &shown, given("mapping"), given("to"))?,
        SqlChange::Split => split_range(database, &shown, given("mapping"), given("at"))?,
        SqlChange::Drain => of_shard(
            format!("Drain {} of {database}", given("shard")),
            "A job for each of its ranges moves the rows to the other shards while they stay in \
             use. No new ranges are placed on it.",
            format!("Drain {}", given("shard")),
            ("shard", given("shard")),
        ),
        SqlChange::Fill => of_shard(
            format!("Fill {} of {database} again", given("shard")),
            "It may take ranges again; what it still has stays.",
            format!("Let {} be filled again", given("shard")),
            ("shard", given("shard")),
        ),
        SqlChange::Cancel => of_shard(
            format!("Cancel job {} of {database}", given("job")),
            "What the job has copied is deleted again; nothing else changes.",
            format!("Cancel job {}", given("job")),
            ("job", given("job")),
        ),
        SqlChange::Ddl => change_schema(database, &shown, given("statement")),
    };
    let Preview { title, effect, words, fields } = preview;
    let fields: Vec<(&str, &str)> =
        fields.iter().map(|(name, value)| (*name, value.as_str())).collect();
    let (action, back) = (change(database, what, &[]), link(database));
    let (part, is_dangerous) = (Part::Sql, false);
    Confirm { title, part, effect, action, fields: &fields, words, is_dangerous, back: &back }
        .page(visit)
}

fn of_shard(title: String, effect: &str, words: String, field: (&'static str, String)) -> Preview {
    Preview { title, effect: html! { p { (effect) } }, words: Some(words), fields: vec![field] }
}

fn move_range(database: &str, shown: &Value, mapping: String, to: String) -> Result<Preview> {
    let found = find(shown, &mapping)?;
    let (range, from) = (text(&found["range"]), text(&found["shard"]));
    let effect = html! {
        @if to.is_empty() {
            p { "Choose where the rows of " strong { (range) } " are to go." }
        } @else {
            p {
                "A job copies the rows of " strong { (range) } " of all tables of this map from "
                (from) " to " (to) " while they stay in use, compares both by checksums, and then "
                "lets writes pause for a moment to switch. It can be cancelled before that."
            }
        }
        (choose(database, SqlChange::Move, ("mapping", &mapping), shards_but(shown, from), &to))
    };
    let words = (!to.is_empty()).then(|| format!("Move range {mapping} to {to}"));
    let title = format!("Move range {mapping} of {database}");
    Ok(Preview { title, effect, words, fields: vec![("mapping", mapping), ("to", to)] })
}

fn split_range(database: &str, shown: &Value, mapping: String, at: String) -> Result<Preview> {
    let found = find(shown, &mapping)?;
    let effect = html! {
        @if !at.is_empty() {
            p {
                strong { (text(&found["range"])) } " becomes two ranges on "
                (text(&found["shard"])) ": below " (at) ", and from " (at) " on. Nothing is copied."
            }
        }
        form.inline method="get" action=(change(database, SqlChange::Split, &[])) {
            input type="hidden" name="mapping" value=(mapping);
            div {
                label for="at" { "At this key" }
                input #at name="at" value=(at) required autocomplete="off";
            }
            button.quiet type="submit" { "Show what it does" }
        }
    };
    let words = (!at.is_empty()).then(|| format!("Split range {mapping} at {at}"));
    let title = format!("Split range {mapping} of {database}");
    Ok(Preview { title, effect, words, fields: vec![("mapping", mapping), ("at", at)] })
}

fn change_schema(database: &str, shown: &Value, statement: String) -> Preview {
    let others = list(&shown["shards"]).len().saturating_sub(1);
    let effect = html! {
        p {
            "The statement runs on the first shard, and where that went well on the " (others)
            " others. It is refused while a move needs the schema as it is."
        }
        pre.preview tabindex="0" { (statement) }
    };
    let words = (!statement.is_empty()).then(|| "Run it on all shards".to_owned());
    let title = format!("Change the schema of {database}");
    Preview { title, effect, words, fields: vec![("statement", statement)] }
}

fn find<'s>(shown: &'s Value, mapping: &str) -> Result<&'s Value> {
    let number: Option<u64> = mapping.parse().ok();
    let mut all = list(&shown["maps"]).iter().flat_map(|map| list(&map["mappings"]));
    let missing = || Fault::new(StatusCode::NOT_FOUND, format!("there is no range {mapping}"));
    all.find(|one| number.is_some() && one["id"].as_u64() == number).ok_or_else(missing)
}

fn shards_but<'s>(shown: &'s Value, from: &str) -> Vec<&'s str> {
    let names = list(&shown["shards"]).iter().map(|shard| text(&shard["name"]));
    names.filter(|name| *name != from).collect()
}

fn choose(
    database: &str,
    what: SqlChange,
    (name, value): (&str, &str),
    shards: Vec<&str>,
    to: &str,
) -> Markup {
    html! {
        form.inline method="get" action=(change(database, what, &[])) {
            input type="hidden" name=(name) value=(value);
            div {
                label for="to" { "To the shard" }
                select #to name="to" {
                    @for shard in shards { option value=(shard) selected[shard == to] { (shard) } }
                }
            }
            button.quiet type="submit" { "Show what it does" }
        }
    }
}

pub(super) async fn make(visit: &Visit<'_>, database: &str, what: SqlChange) -> Result {
    let given = |name: &str| visit.form.get(name).to_owned();
    let number = |name: &str| given(name).parse::<u64>().ok();
    let body = match what {
        SqlChange::Move => json!({ "mapping": number("mapping"), "to": given("to") }),
        SqlChange::Split => json!({ "mapping": number("mapping"), "at": given("at") }),
        SqlChange::Drain => json!({ "shard": given("shard") }),
        SqlChange::Fill => json!({ "name": given("shard") }),
        SqlChange::Cancel => json!({ "job": number("job") }),
        // Browsers end the lines of a form with CR LF.
        SqlChange::Ddl => json!({ "statement": given("statement").replace("\r\n", "\n") }),
    };
    let done = visit.api.post(&["v1", "sql", database, what.word()], &body).await?;
    let words = match what {
        SqlChange::Move => format!("Job {} moves range {}.", done["job"], given("mapping")),
        SqlChange::Split => format!("Range {} was split.", given("mapping")),
        SqlChange::Drain => format!("The shard {} is being drained.", given("shard")),
        SqlChange::Fill => format!("The shard {} is filled again.", given("shard")),
        SqlChange::Cancel => format!("Job {} is being cancelled.", given("job")),
        SqlChange::Ddl => format!("Job {} changes the schema.", done["job"]),
    };
    Outcome::done(link(database), words)
}
