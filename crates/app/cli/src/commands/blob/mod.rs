//! `lazuli blob …`: blobs of any service that speaks the Blob protocol, in and out of files and folders.
//!
//! `cp` and `sync` make a list of tasks (`plan`, `sync`), which `work` has done by several connections at once; `upload`,
//! `download` and `blobs` do one each.

pub(super) mod address;
pub(super) mod blobs;
mod compare;
pub(super) mod containers;
pub(super) mod digest;
mod download;
mod listing;
pub(super) mod local;
mod ls;
mod media;
mod plan;
mod rm;
mod sync;
mod task;
pub(super) mod upload;
mod work;

use std::sync::Arc;

use super::remote::place::{Place, Protocol};
use crate::args::blob::BlobCommand;
use crate::args::service::Service;
use crate::failure::Result;

pub(super) fn run(command: BlobCommand) -> Result<()> {
    match command {
        BlobCommand::Ls(ls) => ls::run(&ls),
        BlobCommand::Cp(cp) => plan::run(&cp),
        BlobCommand::Sync(sync) => sync::run(&sync),
        BlobCommand::Rm(rm) => rm::run(&rm),
        BlobCommand::Create { container, service } => containers::create(&container, &service),
        BlobCommand::Delete { container, service } => containers::delete(&container, &service),
    }
}

pub(super) fn find(service: &Service) -> Result<Arc<Place>> {
    Ok(Arc::new(Place::find(service, Protocol::Blobs)?))
}
