//! Scripts as their users write them, on a container in memory.

mod container;
mod functions;
mod limits;
mod procedures;
mod queries;
mod triggers;
