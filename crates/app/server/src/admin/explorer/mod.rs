//! The explorer: reads and changes tables, blobs, queues and documents as JSON, by requests to the fronts and without a shortcut to the
//! engine.
//!
//! Each operation becomes a signed request that a client of the service could send, which the front answers ([`Owner`]). So
//! names, conditions, filters and limits are checked there, once.

mod answer;
mod blobs;
mod documents;
mod entities;
mod import;
mod indexes;
mod items;
mod preview;
mod queues;
mod request;
mod routes;
mod tables;

use lazuli_http::{Request, Response};

use super::refusal::Result;
use crate::owner::Owner;
pub(super) use request::Explore;
pub(super) use routes::ROUTES;

/// Does one operation of the explorer.
pub(super) async fn run(owner: &Owner, explore: Explore, request: Request) -> Result<Response> {
    match explore {
        Explore::ListTables { account, page } => tables::list(owner, &account, &page).await,
        Explore::CreateTable { account } => tables::create(owner, &account, request).await,
        Explore::QueryEntities { table, filter, page } => {
            entities::query(owner, &table, filter.as_deref(), &page).await
        }
        Explore::GetEntity { entity } => entities::get(owner, &entity).await,
        Explore::InsertEntity { table } => entities::insert(owner, &table, request).await,
        Explore::WriteEntity { entity, write } => {
            entities::write(owner, &entity, write, request).await
        }
        Explore::DeleteEntity { entity } => entities::delete(owner, &entity, &request).await,
        Explore::ExportEntities { table, filter } => {
            entities::export(owner.clone(), table, filter).await
        }
        Explore::ImportEntities { table, mode } => {
            import::run(owner, &table, mode, request.body).await
        }
        Explore::ListContainers { account, page } => {
            blobs::containers(owner, &account, &page).await
        }
        Explore::CreateContainer { account } => blobs::create(owner, &account, request).await,
        Explore::ListBlobs { container, prefix, delimiter, page } => {
            let (prefix, delimiter) = (prefix.as_deref(), delimiter.as_deref());
            blobs::list(owner, &container, prefix, delimiter, &page).await
        }
        Explore::ShowBlob { blob } => blobs::show(owner, &blob).await,
        Explore::Download { blob } => blobs::download(owner, &blob).await,
        Explore::Preview { blob, bytes } => preview::show(owner, &blob, bytes).await,
        Explore::Image { blob } => preview::image(owner, &blob).await,
        Explore::Upload { blob, overwrite } => {
            blobs::upload(owner, &blob, overwrite, request).await
        }
        Explore::DeleteBlob { blob } => blobs::delete(owner, &blob, &request).await,
        Explore::SetTags { blob } => blobs::set_tags(owner, &blob, request).await,
        Explore::ListQueues { account, page } => queues::list(owner, &account, &page).await,
        Explore::CreateQueue { account } => queues::create(owner, &account, request).await,
        Explore::ShowQueue { queue } => queues::show(owner, &queue).await,
        Explore::PeekMessages { queue, most } => queues::peek(owner, &queue, most).await,
        Explore::PutMessage { queue } => queues::put(owner, &queue, request).await,
        Explore::ClearMessages { queue } => queues::clear(owner, &queue).await,
        Explore::ListIndexes { account } => indexes::list(owner, &account).await,
        Explore::ShowIndex { index } => indexes::show(owner, &index).await,
        Explore::SearchIndex { index, wanted } => indexes::search(owner, &index, &wanted).await,
        Explore::AnalyzeText { index, analyzer, text } => {
            indexes::analyze(owner, &index, &analyzer, &text).await
        }
        Explore::ListCollections { account, page } => documents::list(owner, &account, &page).await,
        Explore::CreateCollection { account } => documents::create(owner, &account, request).await,
        Explore::ShowCollection { collection } => documents::show(owner, &collection).await,
        Explore::QueryItems { collection, query, key, page } => {
            items::query(owner, &collection, query.as_deref(), key.as_deref(), &page).await
        }
        Explore::GetItem { item } => items::get(owner, &item).await,
        Explore::PutItem { collection } => items::put(owner, &collection, request).await,
        Explore::DeleteItem { item } => items::delete(owner, &item, &request).await,
        Explore::PreviewThroughput { collection, units } => {
            documents::preview(owner, &collection, units).await
        }
        Explore::SetThroughput { collection } => {
            documents::set_throughput(owner, &collection, request).await
        }
    }
}
