//! The pages, one file each: ask the admin API, lay out what it says.

pub(crate) mod accounts;
pub(crate) mod advice;
pub(crate) mod audit;
pub(crate) mod backups;
pub(crate) mod change;
pub(crate) mod confirm;
pub(crate) mod container;
pub(crate) mod containers;
pub(crate) mod explorer;
pub(crate) mod jobs;
pub(crate) mod keys;
pub(crate) mod login;
pub(crate) mod messaging;
pub(crate) mod overview;
pub(crate) mod partition;
pub(crate) mod rebalance;
pub(crate) mod services;
pub(crate) mod settings;
pub(crate) mod shards;
pub(crate) mod sql;

use lazuli_http::{Response, StatusCode};

pub(crate) const STYLE: &str = include_str!("../../static/portal.css");
pub(crate) const SCRIPT: &str = include_str!("../../static/portal.js");
pub(crate) const ICON: &str = include_str!("../../static/icon.svg");

/// A file that is part of the binary. It changes with the binary only, so browsers may keep it for a moment.
pub(crate) fn asset(kind: &'static str, content: &'static str) -> Response {
    Response::new(StatusCode::OK)
        .with("content-type", kind)
        .with("cache-control", "private, max-age=60")
        .with_body(content)
}
