//! `lazuli table …`, `lazuli blob …` and `lazuli documents …`: finds the account and calls `lazuli-transfer`.

use lazuli_console::Result;
use lazuli_transfer::{blob, document, table};

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
    }
}
