//! Cold starts of both servers, in turns.

use super::server::{Kind, Server};
use super::{Options, Result};
use crate::figures::{median, milliseconds};
use crate::report::Report;

const COLD_STARTS: usize = 5;

/// The first start in a folder creates the data; those that follow find it. Ours takes at most a share of the emulator's.
pub(super) fn cold_starts(options: &Options, share_max: f64, report: &mut Report) -> Result {
    let folder = |kind: Kind| options.folder.join(format!("start-{kind:?}"));
    let started = |kind| Ok::<_, String>(Server::start(kind, options, &folder(kind))?.started);
    let first = [started(Kind::Synced)?, started(Kind::Peer)?].map(milliseconds);
    let (mut ours, mut peers) = (Vec::new(), Vec::new());
    for _ in 0..COLD_STARTS {
        ours.push(milliseconds(started(Kind::Synced)?));
        peers.push(milliseconds(started(Kind::Peer)?));
    }
    let (ours, peer) = (median(ours.into_iter()), median(peers.into_iter()));
    let line = format!("cold start: {ours:.0} ms, peer {peer:.0} ms, 1/{:.0}", peer / ours);
    report.judge(line, ours / peer <= share_max);
    let [ours, peer] = first;
    report
        .say(format_args!("first start, which creates the data: {ours:.0} ms, peer {peer:.0} ms"));
    Ok(())
}
