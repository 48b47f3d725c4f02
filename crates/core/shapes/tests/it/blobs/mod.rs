//! Blobs through the shape, on stores and block files in memory.

mod append;
mod backups;
mod blocks;
mod copies;
mod figures;
mod files;
mod lists;
mod pages;
mod states;
mod times;
mod whole;
mod world;
