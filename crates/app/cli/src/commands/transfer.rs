//! `lazuli table …`, `lazuli blob …`, `lazuli queue …` and `lazuli documents …`: finds the account and calls `lazuli-transfer`.

use lazuli_console::Result;
use lazuli_transfer::{blob, document, queue, table};

use crate::args::queue::QueueCommand;
use crate::args::service::On;
use crate::args::transfer::{BlobCommand, DocumentsCommand, TableCommand};

pub(crate) fn table(command: TableCommand) -> Result<()> {
    match command {
        TableCommand::List(service) => table::list(service.tables()?, service.target.json),
        TableCommand::Create { name, hashed, service } => {
            table::create(service.tables()?, &name, hashed, service.target.json)
        }
        TableCommand::Delete { name, service } => {
            table::delete(service.tables()?, &name, service.target.json)
        }
        TableCommand::Export(On { options, service }) => {
            table::export(&service.tables()?, &options, service.target.json)
        }
        TableCommand::Import(On { options, service }) => {
            table::import(&service.tables()?, &options, service.target.json)
        }
    }
}

pub(crate) fn blob(command: BlobCommand) -> Result<()> {
    match command {
        BlobCommand::Ls(On { options, service }) => {
            blob::ls(service.blobs()?, &options, service.target.json)
        }
        BlobCommand::Cp(On { options, service }) => {
            blob::cp(&service.blobs()?, &options, service.target.json)
        }
        BlobCommand::Sync(On { options, service }) => {
            blob::sync(&service.blobs()?, &options, service.target.json)
        }
        BlobCommand::Rm(On { options, service }) => {
            blob::rm(&service.blobs()?, &options, service.target.json)
        }
        BlobCommand::Create { container, service } => {
            blob::create(service.blobs()?, &container, service.target.json)
        }
        BlobCommand::Delete { container, service } => {
            blob::delete(service.blobs()?, &container, service.target.json)
        }
    }
}

pub(crate) fn documents(command: DocumentsCommand) -> Result<()> {
    match command {
        DocumentsCommand::List(service) => {
            document::list(&service.documents()?, service.target.json)
        }
        DocumentsCommand::Create { place, keys, throughput, service } => {
            let account = service.documents()?;
            document::create(&account, &place, &keys, throughput, service.target.json)
        }
        DocumentsCommand::Export(On { options, service }) => {
            document::export(&service.documents()?, &options, service.target.json)
        }
        DocumentsCommand::Import(On { options, service }) => {
            document::import(&service.documents()?, &options, service.target.json)
        }
        DocumentsCommand::Query(On { options, service }) => {
            document::query(&service.documents()?, &options)
        }
        DocumentsCommand::Repartition(On { options, service }) => {
            document::repartition(&service.documents()?, &options, service.target.json)
        }
        DocumentsCommand::Reindex { place, no_wait, service } => {
            document::reindex(&service.documents()?, &place, !no_wait, service.target.json)
        }
    }
}

pub(crate) fn queue(command: QueueCommand) -> Result<()> {
    match command {
        QueueCommand::List { counts, service } => {
            queue::list(service.queues()?, counts, service.target.json)
        }
        QueueCommand::Create { name, service } => {
            queue::create(service.queues()?, &name, service.target.json)
        }
        QueueCommand::Delete { name, service } => {
            queue::delete(service.queues()?, &name, service.target.json)
        }
        QueueCommand::Put(On { options, service }) => {
            queue::put(service.queues()?, &options, service.target.json)
        }
        QueueCommand::Peek(On { options, service }) => {
            queue::peek(service.queues()?, &options, service.target.json)
        }
        QueueCommand::Get(On { options, service }) => {
            queue::get(service.queues()?, &options, service.target.json)
        }
        QueueCommand::Clear { name, service } => {
            queue::clear(service.queues()?, &name, service.target.json)
        }
    }
}
