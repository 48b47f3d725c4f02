//! REPLICAOF and ROLE: following another server.

use crate::call::Call;
use crate::command::Run;
use crate::failure::Failure;
use crate::replica::Source;

pub(super) const RUNS: &[(&str, Run)] =
    &[("replicaof", replicaof), ("role", role), ("slaveof", replicaof)];

fn replicaof(call: &mut Call<'_, '_>) -> Result<(), Failure> {
    if call.session.cluster_node.is_some() {
        return Err(Failure::of("ERR REPLICAOF not allowed in cluster mode."));
    }
    if call.args.is(1, "no") && call.args.is(2, "one") {
        call.server.set_source(None)?;
        call.out.ok();
        return Ok(());
    }
    let port = call.integer(2)?;
    let port = u16::try_from(port).map_err(|_| const { Failure::of("ERR Invalid master port") })?;
    let host = String::from_utf8_lossy(call.args.at(1)).into_owned();
    let source = Some(Source { host, port });
    if call.server.replication.source() == source {
        call.out.simple("OK Already connected to specified master");
        return Ok(());
    }
    call.server.set_source(source)?;
    call.out.ok();
    Ok(())
}

fn role(call: &mut Call<'_, '_>) -> Result<(), Failure> {
    let Some(source) = call.server.replication.source() else {
        call.out.array(3);
        call.out.text("master");
        call.out.integer(0);
        call.out.array(0);
        return Ok(());
    };
    let status = call.server.replication.status();
    call.out.array(5);
    call.out.text("slave");
    call.out.text(&source.host);
    call.out.integer(i64::from(source.port));
    call.out.text(status.stage.name());
    call.out.integer(if status.id.is_empty() { -1 } else { status.offset as i64 });
    Ok(())
}

/// What INFO tells of the server that is followed.
pub(super) fn figures(call: &Call<'_, '_>) -> Option<Vec<(String, String)>> {
    let source = call.server.replication.source()?;
    let status = call.server.replication.status();
    let is_up = status.stage == crate::replica::Stage::Connected;
    let is_syncing = status.stage == crate::replica::Stage::Sync;
    let silence_s = match status.heard_ms {
        0 => -1,
        heard => (call.now_ms().saturating_sub(heard) / 1000) as i64,
    };
    let named = |name: &str, value: &dyn ToString| (name.to_owned(), value.to_string());
    let mut fields = vec![
        named("role", &"slave"),
        named("master_host", &source.host),
        named("master_port", &source.port),
        named("master_link_status", &if is_up { "up" } else { "down" }),
        named("master_last_io_seconds_ago", &silence_s),
        named("master_sync_in_progress", &u8::from(is_syncing)),
        named("slave_read_repl_offset", &status.offset),
        named("slave_repl_offset", &status.offset),
    ];
    if is_syncing {
        let total = status.copy_bytes;
        fields.push(named("master_sync_total_bytes", &total.unwrap_or_default()));
        fields.push(named("master_sync_read_bytes", &status.copied_bytes));
        let left = total.map_or(-1, |it| it.saturating_sub(status.copied_bytes) as i64);
        fields.push(named("master_sync_left_bytes", &left));
    }
    fields.extend([
        named("slave_priority", &100),
        named("slave_read_only", &1),
        named("replica_announced", &1),
        named("lazuli_refused_commands", &status.refused),
        named("lazuli_link_trouble", &status.trouble.unwrap_or_default()),
        named("connected_slaves", &0),
        named("master_failover_state", &"no-failover"),
        named("master_replid", if status.id.is_empty() { &call.server.run_id } else { &status.id }),
        named("master_repl_offset", &status.offset),
        named("repl_backlog_active", &0),
    ]);
    Some(fields)
}
