//! Documents: items, containers and their directory.

mod directory;
mod feeds;
mod indexes;
mod items;
mod queries;
mod sessions;
mod world;
