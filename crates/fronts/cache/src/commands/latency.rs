//! LATENCY: events that took long, and how long commands take.

use crate::call::Call;
use crate::command::{Command, Run, TABLE};
use crate::failure::Failure;

pub(super) const RUNS: &[(&str, Run)] = &[
    ("latency|doctor", doctor),
    ("latency|histogram", histogram),
    ("latency|history", history),
    ("latency|latest", latest),
    ("latency|reset", reset),
];

fn doctor(call: &mut Call<'_, '_>) -> Result<(), Failure> {
    let events = call.server.latency.events();
    let mut text = String::new();
    for (name, event) in events.iter() {
        let (count, longest) = (event.samples.len(), event.longest_ms);
        text.push_str(&format!("{name}: {count} seconds with events, the longest {longest} ms.\n"));
    }
    if text.is_empty() {
        "No event took longer than latency-monitor-threshold.\n".clone_into(&mut text);
    }
    text.push_str("The slow log (SLOWLOG GET) has slow commands.\n");
    call.out.verbatim("txt", &text);
    Ok(())
}

fn history(call: &mut Call<'_, '_>) -> Result<(), Failure> {
    let events = call.server.latency.events();
    let name = String::from_utf8_lossy(call.args.at(2)).into_owned();
    let Some(event) = events.get(name.as_str()) else {
        call.out.array(0);
        return Ok(());
    };
    call.out.array(event.samples.len());
    for (second, took_ms) in &event.samples {
        call.out.array(2);
        call.out.integer(*second as i64);
        call.out.integer(*took_ms as i64);
    }
    Ok(())
}

fn latest(call: &mut Call<'_, '_>) -> Result<(), Failure> {
    let events = call.server.latency.events();
    call.out.array(events.len());
    for (name, event) in events.iter() {
        let (second, took_ms) = event.samples.back().copied().unwrap_or_default();
        call.out.array(4);
        call.out.text(name);
        call.out.integer(second as i64);
        call.out.integer(took_ms as i64);
        call.out.integer(event.longest_ms as i64);
    }
    Ok(())
}

fn reset(call: &mut Call<'_, '_>) -> Result<(), Failure> {
    let mut events = call.server.latency.events();
    let before = events.len();
    let named = call.args.from(2);
    let is_named = |name: &str| named.iter().any(|it| it.eq_ignore_ascii_case(name.as_bytes()));
    events.retain(|name, _| !named.is_empty() && !is_named(name));
    call.out.count(before - events.len());
    Ok(())
}

/// The histograms of the commands that are named, with their subcommands; of all without names.
fn histogram(call: &mut Call<'_, '_>) -> Result<(), Failure> {
    let mut wanted: Vec<&Command> = Vec::new();
    for name in call.args.from(2).iter() {
        let (parent, below) = match name.iter().position(|byte| *byte == b'|') {
            Some(at) => (&name[..at], Some(&name[at + 1..])),
            None => (name, None),
        };
        let Some(command) = TABLE.command(parent) else { continue };
        match below {
            Some(below) => wanted.extend(TABLE.subcommand(command, below)),
            None => {
                wanted.push(command);
                wanted.extend(command.subcommands.iter().map(|it| &TABLE.commands[*it]));
            }
        }
    }
    if call.args.len() == 2 {
        wanted.extend(&TABLE.commands);
    }
    let all = wanted.iter().map(|it| (it.name, call.server.latency.histogram(it.number)));
    let all: Vec<_> = all.filter(|(_, buckets)| !buckets.is_empty()).collect();
    call.out.map(all.len());
    for (name, buckets) in all {
        call.out.text(name);
        call.out.map(2);
        call.out.text("calls");
        call.out.integer(buckets.last().map_or(0, |it| it.1) as i64);
        call.out.text("histogram_usec");
        call.out.map(buckets.len());
        for (end, count) in buckets {
            call.out.integer(end as i64);
            call.out.integer(count as i64);
        }
    }
    Ok(())
}
