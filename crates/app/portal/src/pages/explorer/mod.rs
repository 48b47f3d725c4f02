//! The explorer's pages: tables, blobs, queues and documents as they are stored, through the explorer routes of the admin API; one
//! file for each page.

mod blob;
mod blobs;
mod entities;
mod entity;
mod export;
mod indexes;
mod items;
mod lists;
mod place;
mod queue;
mod ranges;
mod stored;

use lazuli_http::{HeaderMap, HeaderValue, Method, Response, StatusCode};
use maud::{Markup, html};

use crate::layout::{list, table, text};
use crate::page::{Fault, Outcome, Part, Result, Visit};
pub(crate) use place::ExplorerPage;
use place::{CollectionPage, ContainerPage, Kind, QueuePage, TablePage, link};
pub(crate) use stored::stored;

/// The one table of the explorer's pages.
pub(crate) async fn show(visit: &Visit<'_>, place: &ExplorerPage) -> Result {
    match place {
        ExplorerPage::Index => index(visit).await,
        ExplorerPage::List(kind, account) => lists::show(visit, *kind, account).await,
        ExplorerPage::Create(kind, account) => lists::create(visit, *kind, account).await,
        ExplorerPage::Table(path, page) => match page {
            TablePage::Entities => entities::show(visit, path).await,
            TablePage::Insert => entities::insert(visit, path).await,
            TablePage::Import => entities::import(visit, path).await,
            TablePage::Export => export::export(visit, path).await,
            TablePage::Entity => entity::show(visit, path).await,
            TablePage::Change => entity::change(visit, path).await,
        },
        ExplorerPage::Container(path, page) => match page {
            ContainerPage::List => blobs::show(visit, path).await,
            ContainerPage::Upload => blobs::upload(visit, path).await,
            ContainerPage::Blob => blob::show(visit, path).await,
            ContainerPage::Content => blob::file(visit, path, "content").await,
            ContainerPage::Image => blob::file(visit, path, "image").await,
            ContainerPage::Tags => blob::tags(visit, path).await,
            ContainerPage::Delete => blob::delete(visit, path).await,
        },
        ExplorerPage::Queue(path, page) => match page {
            QueuePage::Messages => queue::show(visit, path).await,
            QueuePage::Put => queue::put(visit, path).await,
            QueuePage::Clear => queue::clear(visit, path).await,
        },
        ExplorerPage::TextIndex(path) => indexes::show(visit, path).await,
        ExplorerPage::Collection(path, page) => match page {
            CollectionPage::Items => items::show(visit, path).await,
            CollectionPage::Put => items::put(visit, path).await,
            CollectionPage::Item => items::item(visit, path).await,
            CollectionPage::Change => items::change(visit, path).await,
            CollectionPage::Ranges => ranges::show(visit, path).await,
            CollectionPage::Throughput => ranges::change(visit, path).await,
        },
    }
}

/// The accounts, and what each of them has.
async fn index(visit: &Visit<'_>) -> Result {
    let accounts = visit.api.get(&["v1", "accounts"]).await?;
    let rows = html! {
        @for account in list(&accounts["accounts"]) {
            @let name = text(&account["name"]);
            tr {
                th scope="row" { (name) }
                @for kind in Kind::ALL {
                    td {
                        a href=(link(&[kind.word(), name], &[]))
                            aria-label={ (lists::title(kind)) " of " (name) } {
                            (lists::title(kind))
                        }
                    }
                }
            }
        }
    };
    let body = html! {
        h1 { "Explorer" }
        section.card aria-label="Accounts" {
            (table("Accounts", &["Account", "Tables", "Blobs", "Queues", "Documents", "Indexes"], rows))
        }
    };
    Outcome::page("Explorer", Part::Explorer, body)
}

/// Where a page is: links to all that it is in, and its own name.
fn crumbs(above: &[(&str, String)], here: Markup) -> Markup {
    html! {
        nav.crumbs aria-label="Where this is" {
            ol {
                li { a href=(Part::Explorer.path()) { "Explorer" } }
                @for (name, to) in above { li { a href=(to) { (stored::stored(name)) } } }
                li aria-current="page" { (here) }
            }
        }
    }
}

/// The link to the next page of a list, if there is one.
fn next(to: Option<String>) -> Markup {
    html! {
        @if let Some(to) = to { p { a.button.quiet href=(to) rel="next" { "Next page" } } }
    }
}

/// A parameter of the query that must be there, be it empty.
fn required<'v>(visit: &'v Visit<'_>, name: &str) -> Result<&'v str> {
    let missing = || Fault::new(StatusCode::BAD_REQUEST, format!("the address has no {name}"));
    visit.query.get(name).ok_or_else(missing)
}

/// Whether the visitor has ticked the confirmation.
fn sure(visit: &Visit<'_>) -> Result<()> {
    match visit.form.get("sure") {
        "yes" => Ok(()),
        _ => Err(Fault::new(StatusCode::BAD_REQUEST, "tick the box to say that this is meant")),
    }
}

/// One header for the admin API.
fn header(name: &'static str, value: &str) -> Result<HeaderMap> {
    let value = HeaderValue::try_from(value)
        .map_err(|_| Fault::new(StatusCode::BAD_REQUEST, format!("{name} cannot be sent")))?;
    let mut headers = HeaderMap::new();
    headers.insert(name, value);
    Ok(headers)
}

/// An answer of the admin API as a file: with its content type and disposition, and no other header.
pub(crate) fn file(answer: Response, disposition: Option<&str>) -> Response {
    let said = |name: &str| answer.headers.get(name).and_then(|value| value.to_str().ok());
    let content_type = said("content-type").unwrap_or("application/octet-stream").to_owned();
    let disposition = disposition.or_else(|| said("content-disposition")).map(str::to_owned);
    let mut response = Response::new(StatusCode::OK).with("content-type", content_type);
    if let Some(disposition) = disposition {
        response = response.with("content-disposition", disposition);
    }
    response.body = answer.body;
    response
}

/// A change whose answer no page needs.
async fn tell(
    visit: &Visit<'_>,
    method: Method,
    pieces: &[&str],
    query: &[(&str, &str)],
    headers: HeaderMap,
    body: lazuli_http::Body,
) -> Result<()> {
    visit.api.send(method, pieces, query, headers, body).await?;
    Ok(())
}
