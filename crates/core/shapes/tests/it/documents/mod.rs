//! Documents: items, containers and their directory.

mod directory;
mod items;
mod world;
