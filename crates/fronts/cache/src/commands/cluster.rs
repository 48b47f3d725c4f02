//! CLUSTER: the map of slots for clients that route by themselves.

use std::fmt::Write;
use std::sync::atomic::Ordering;

use lazuli_keyspace::{SLOTS, slot_of};
use lazuli_resp::parse_integer;

use crate::call::Call;
use crate::cluster::Cluster;
use crate::command::Run;
use crate::failure::Failure;

pub(super) const RUNS: &[(&str, Run)] = &[
    ("cluster|countkeysinslot", countkeysinslot),
    ("cluster|getkeysinslot", getkeysinslot),
    ("cluster|info", info),
    ("cluster|keyslot", keyslot),
    ("cluster|links", links),
    ("cluster|myid", myid),
    ("cluster|nodes", nodes),
    ("cluster|replicas", replicas),
    ("cluster|shards", shards),
    ("cluster|slots", slots),
];

/// The cluster and which of its nodes this is; without cluster mode there is none.
fn cluster<'c>(call: &Call<'c, '_>) -> Result<(&'c Cluster, usize), Failure> {
    let node = call.session.cluster_node;
    let found = call.server.cluster.as_ref().zip(node);
    found.ok_or(Failure::of("ERR This instance has cluster support disabled"))
}

fn slot_at(call: &Call<'_, '_>, index: usize) -> Result<u16, Failure> {
    let slot = parse_integer(call.args.at(index)).and_then(|it| u16::try_from(it).ok());
    slot.filter(|it| *it < SLOTS).ok_or(Failure::of("ERR Invalid or out of range slot"))
}

fn keyslot(call: &mut Call<'_, '_>) -> Result<(), Failure> {
    cluster(call)?;
    call.out.integer(i64::from(slot_of(call.args.at(2))));
    Ok(())
}

fn countkeysinslot(call: &mut Call<'_, '_>) -> Result<(), Failure> {
    cluster(call)?;
    let slot = slot_at(call, 2)?;
    call.space.reach(slot);
    let count = call.space.slot_keys(slot, usize::MAX).len();
    call.out.count(count);
    Ok(())
}

fn getkeysinslot(call: &mut Call<'_, '_>) -> Result<(), Failure> {
    cluster(call)?;
    let slot = slot_at(call, 2)?;
    let most = usize::try_from(call.integer(3)?);
    let most = most.map_err(|_| Failure::of("ERR Invalid number of keys"))?;
    call.space.reach(slot);
    let keys = call.space.slot_keys(slot, most);
    call.out.array(keys.len());
    keys.iter().for_each(|key| call.out.bulk(key));
    Ok(())
}

fn myid(call: &mut Call<'_, '_>) -> Result<(), Failure> {
    let (cluster, node) = cluster(call)?;
    call.out.text(&cluster.nodes[node].id);
    Ok(())
}

fn info(call: &mut Call<'_, '_>) -> Result<(), Failure> {
    let (cluster, _) = cluster(call)?;
    let ranges = cluster.ranges();
    let mut masters: Vec<usize> = ranges.iter().map(|it| it.node).collect();
    masters.sort_unstable();
    masters.dedup();
    let epoch = cluster.epoch.load(Ordering::Relaxed);
    let text = format!(
        "cluster_enabled:1\r\ncluster_state:ok\r\ncluster_slots_assigned:{SLOTS}\r\n\
         cluster_slots_ok:{SLOTS}\r\ncluster_slots_pfail:0\r\ncluster_slots_fail:0\r\n\
         cluster_known_nodes:{}\r\ncluster_size:{}\r\ncluster_current_epoch:{epoch}\r\n\
         cluster_my_epoch:{epoch}\r\ncluster_stats_messages_sent:0\r\n\
         cluster_stats_messages_received:0\r\ntotal_cluster_links_buffer_limit_exceeded:0\r\n",
        cluster.nodes.len(),
        masters.len(),
    );
    call.out.verbatim("txt", &text);
    Ok(())
}

fn slots(call: &mut Call<'_, '_>) -> Result<(), Failure> {
    let (cluster, _) = cluster(call)?;
    let ranges = cluster.ranges();
    call.out.array(ranges.len());
    for range in ranges.iter() {
        call.out.array(3);
        call.out.integer(i64::from(range.first));
        call.out.integer(i64::from(range.last));
        let (host, port) = cluster.host(call.session, range.node);
        call.out.array(4);
        call.out.text(&host);
        call.out.integer(i64::from(port));
        call.out.text(&cluster.nodes[range.node].id);
        call.out.array(0);
    }
    Ok(())
}

fn nodes(call: &mut Call<'_, '_>) -> Result<(), Failure> {
    let (cluster, own) = cluster(call)?;
    let ranges = cluster.ranges();
    let epoch = cluster.epoch.load(Ordering::Relaxed);
    let mut text = String::new();
    for (number, node) in cluster.nodes.iter().enumerate() {
        let (host, port) = cluster.host(call.session, number);
        let flags = if number == own { "myself,master" } else { "master" };
        let bus = port.wrapping_add(10_000);
        let _ = write!(text, "{} {host}:{port}@{bus} {flags} - 0 0 {epoch} connected", node.id);
        for range in ranges.iter().filter(|it| it.node == number) {
            let _ = match range.first == range.last {
                true => write!(text, " {}", range.first),
                false => write!(text, " {}-{}", range.first, range.last),
            };
        }
        text.push('\n');
    }
    call.out.verbatim("txt", &text);
    Ok(())
}

fn shards(call: &mut Call<'_, '_>) -> Result<(), Failure> {
    let (cluster, _) = cluster(call)?;
    let ranges = cluster.ranges();
    call.out.array(cluster.nodes.len());
    for (number, node) in cluster.nodes.iter().enumerate() {
        let own: Vec<_> = ranges.iter().filter(|it| it.node == number).collect();
        let (host, port) = cluster.host(call.session, number);
        call.out.map(2);
        call.out.text("slots");
        call.out.array(2 * own.len());
        for range in own {
            call.out.integer(i64::from(range.first));
            call.out.integer(i64::from(range.last));
        }
        call.out.text("nodes");
        call.out.array(1);
        call.out.map(7);
        call.out.text("id");
        call.out.text(&node.id);
        call.out.text("port");
        call.out.integer(i64::from(port));
        call.out.text("ip");
        call.out.text(&host);
        call.out.text("endpoint");
        call.out.text(&host);
        call.out.text("role");
        call.out.text("master");
        call.out.text("replication-offset");
        call.out.integer(0);
        call.out.text("health");
        call.out.text("online");
    }
    Ok(())
}

fn replicas(call: &mut Call<'_, '_>) -> Result<(), Failure> {
    let (cluster, _) = cluster(call)?;
    let id = String::from_utf8_lossy(call.args.at(2)).into_owned();
    if !cluster.nodes.iter().any(|it| it.id == id) {
        return Err(Failure::new(format!("ERR Unknown node {id}")));
    }
    call.out.array(0);
    Ok(())
}

fn links(call: &mut Call<'_, '_>) -> Result<(), Failure> {
    cluster(call)?;
    call.out.array(0);
    Ok(())
}
