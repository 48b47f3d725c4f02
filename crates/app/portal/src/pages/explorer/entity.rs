//! One entity: shown as JSON that can be edited. The write fails if the entity changed meanwhile (ETag).

use bytes::Bytes;
use lazuli_http::{Body, Method, StatusCode};
use maud::html;

use super::place::ItemPath;
use super::stored::stored;
use super::{crumbs, header, required, sure, tell};
use crate::layout::{csrf, text};
use crate::page::{Fault, Outcome, Part, Result, Visit};

pub(super) async fn show(visit: &Visit<'_>, path: &ItemPath) -> Result {
    let keys = keys(visit)?;
    let mut found = visit.api.get_with(&path.api(&["entity"]), &keys).await?["entity"].take();
    let etag = text(&found["odata.etag"]).to_owned();
    let time = text(&found["Timestamp"]).to_owned();
    if let Some(members) = found.as_object_mut() {
        members.retain(|name, _| !name.starts_with("odata."));
        members.remove("Timestamp");
        members.remove("Timestamp@odata.type");
    }
    let above = [path.list(), (path.name.as_str(), path.link(&[], &[]))];
    let change = path.link(&["change"], &keys);
    let body = html! {
        (crumbs(&above, html! { "Entity" }))
        h1 { "Entity" }
        section.card aria-label="Keys" {
            dl.facts {
                div { dt { "PartitionKey" } dd { (stored(keys[0].1)) } }
                div { dt { "RowKey" } dd { (stored(keys[1].1)) } }
                div { dt { "Changed" } dd { (time) } }
            }
            form method="post" action=(change) {
                (csrf(visit.session))
                input type="hidden" name="etag" value=(etag);
                label for="entity" { "Properties, as JSON" }
                textarea #entity name="entity" rows="16" spellcheck="false" { (format!("{found:#}")) }
                div.actions {
                    button type="submit" name="how" value="replace" { "Save" }
                    button.quiet type="submit" name="how" value="merge" { "Merge into what is there" }
                }
            }
        }
        form.card method="post" action=(change) {
            (csrf(visit.session))
            input type="hidden" name="etag" value=(etag);
            input type="hidden" name="how" value="delete";
            label { input type="checkbox" name="sure" value="yes" required; " Delete this entity" }
            button.danger type="submit" { "Delete" }
        }
    };
    Outcome::page("Entity", Part::Explorer, body)
}

/// Only if the entity still has the ETag that the page showed.
pub(super) async fn change(visit: &Visit<'_>, path: &ItemPath) -> Result {
    let keys = keys(visit)?;
    let (pieces, etag) = (path.api(&["entity"]), header("if-match", visit.form.get("etag"))?);
    let body = Body::from(Bytes::from(visit.form.get("entity").to_owned()));
    let to_entity = path.link(&["entity"], &keys);
    match visit.form.get("how") {
        "replace" => {
            tell(visit, Method::PUT, &pieces, &keys, etag, body).await?;
            Outcome::done(to_entity, "The entity is saved.")
        }
        "merge" => {
            tell(visit, Method::PATCH, &pieces, &keys, etag, body).await?;
            Outcome::done(to_entity, "The properties are merged.")
        }
        "delete" => {
            sure(visit)?;
            tell(visit, Method::DELETE, &pieces, &keys, etag, Body::empty()).await?;
            Outcome::done(path.link(&[], &[]), "The entity is deleted.")
        }
        _ => Err(Fault::new(StatusCode::BAD_REQUEST, "the form does not say what to do")),
    }
}

fn keys<'v>(visit: &'v Visit<'_>) -> Result<[(&'static str, &'v str); 2]> {
    let (partition, row) = (required(visit, "partition_key")?, required(visit, "row_key")?);
    Ok([("partition_key", partition), ("row_key", row)])
}
