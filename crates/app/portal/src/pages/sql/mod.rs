//! Sharded SQL databases: shards, maps with their ranges, tables with rows and bytes on each shard, jobs; one file for each
//! page.

mod change;
mod database;
mod place;

use maud::html;

use crate::layout::{list, live, number_table, text};
use crate::page::{Outcome, Part, Result, Visit};
pub(crate) use place::SqlPage;

/// The one table of these pages. A form that was sent makes the change that its page describes.
pub(crate) async fn show(visit: &Visit<'_>, page: &SqlPage, sent: bool) -> Result {
    match page {
        SqlPage::Index => index(visit).await,
        SqlPage::Database(name) => database::show(visit, name).await,
        SqlPage::Change(name, change) if sent => change::make(visit, name, *change).await,
        SqlPage::Change(name, change) => change::preview(visit, name, *change).await,
    }
}

async fn index(visit: &Visit<'_>) -> Result {
    let found = visit.api.get(&["v1", "sql"]).await?;
    let all = list(&found["databases"]);
    let rows = html! {
        @for one in all {
            @let name = text(&one["name"]);
            tr data-database=(name) {
                th.name scope="row" { a href=(place::link(name)) { (name) } }
                @for figure in ["shards", "maps", "tables", "mappings", "jobs"] { td.number { (one[figure]) } }
            }
        }
    };
    let numbers = ["Shards", "Maps", "Tables", "Ranges", "Jobs"];
    let body = html! {
        h1 { "Sharded SQL" }
        section.card aria-label="Databases" {
            (live("databases", html! {
                @if all.is_empty() {
                    p { "No PostgreSQL databases are shards here yet. A command makes some into one sharded database:" }
                    pre.preview tabindex="0" { "lazuli sql init shop \\\n  --shard one=postgres://user@host/one --shard two=postgres://user@host/two" }
                    p.muted { "Then its maps and tables are declared, and programs connect to one address. The \
                        page docs/sql.md leads from there." }
                } @else { (number_table("Sharded databases", &["Database"], &numbers, rows)) }
            }))
        }
    };
    Outcome::page("Sharded SQL", Part::Sql, body)
}
