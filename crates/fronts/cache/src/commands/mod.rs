//! The commands, one file per group. Each file lists the functions that run its commands; what else there is to know of a
//! command stands in `commands.txt`.

mod acl;
mod bitfields;
mod bitmaps;
pub(crate) mod client;
mod cluster;
mod command;
pub(crate) mod connection;
mod dump;
mod geo;
mod geo_search;
mod hash_expiry;
mod hashes;
mod hyperloglogs;
mod info;
mod keys;
mod latency;
mod lcs;
mod list_positions;
mod lists;
mod memory;
mod pubsub;
mod replication;
mod scripting;
mod server;
mod set_algebra;
mod sets;
mod sort;
mod stream_claims;
mod stream_groups;
mod stream_info;
mod stream_reads;
mod streams;
mod strings;
mod tracking;
mod transactions;
mod waiting_lists;
mod zset_algebra;
mod zset_pops;
mod zset_ranges;
mod zsets;

use crate::call::Call;
use crate::command::{Run, TABLE};
use crate::failure::Failure;

const ALL: &[&[(&str, Run)]] = &[
    acl::RUNS,
    bitfields::RUNS,
    bitmaps::RUNS,
    client::RUNS,
    cluster::RUNS,
    command::RUNS,
    connection::RUNS,
    dump::RUNS,
    geo::RUNS,
    geo_search::RUNS,
    hash_expiry::RUNS,
    hashes::RUNS,
    hyperloglogs::RUNS,
    info::RUNS,
    keys::RUNS,
    latency::RUNS,
    lcs::RUNS,
    list_positions::RUNS,
    lists::RUNS,
    memory::RUNS,
    pubsub::RUNS,
    replication::RUNS,
    scripting::RUNS,
    server::RUNS,
    set_algebra::RUNS,
    sets::RUNS,
    sort::RUNS,
    stream_claims::RUNS,
    stream_groups::RUNS,
    stream_info::RUNS,
    stream_reads::RUNS,
    streams::RUNS,
    strings::RUNS,
    tracking::RUNS,
    transactions::RUNS,
    waiting_lists::RUNS,
    zset_algebra::RUNS,
    zset_pops::RUNS,
    zset_ranges::RUNS,
    zsets::RUNS,
];

/// Lists the subcommands of a command.
pub(crate) fn help(call: &mut Call<'_, '_>) -> Result<(), Failure> {
    let parent = call.command.name.split('|').next().unwrap_or_default();
    let below = TABLE.command(parent.as_bytes()).map(|it| &it.subcommands[..]).unwrap_or_default();
    let title = "<subcommand> [<arg> [value] [opt] ...]. Subcommands are:";
    call.out.array(1 + below.len());
    call.out.simple(&format!("{} {title}", parent.to_ascii_uppercase()));
    for number in below {
        call.out.simple(&TABLE.commands[*number].own_name().to_ascii_uppercase());
    }
    Ok(())
}

/// All commands that something runs.
pub(crate) fn runs() -> impl Iterator<Item = (&'static str, Run)> {
    ALL.iter().copied().flatten().copied()
}
