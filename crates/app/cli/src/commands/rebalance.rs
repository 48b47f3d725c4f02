//! `lazuli rebalance`: shows the plan of the balancer, and runs it.

use std::time::Duration;

use serde_json::{Value, json};

use super::job;
use crate::args::partition::Rebalance;
use crate::client::Client;
use lazuli_console::output::{self, cell};
use lazuli_console::progress::Screen;
use lazuli_console::{Failure, Result};

/// How often the state is polled.
const LOOK: Duration = Duration::from_millis(200);
/// How many actions are printed; the server lists no more.
const ACTIONS_PRINTED: usize = 1_000;
/// How many partitions that are left alone are printed; `--json` has more.
const RESTING_PRINTED: usize = 20;
const GOALS: [&str; 3] = ["bytes", "requests", "items"];

pub(crate) fn run(wanted: &Rebalance) -> Result<()> {
    let target = &wanted.target;
    let client = Client::find(target)?;
    if wanted.stop {
        let answer = client.delete("/v1/rebalance")?;
        output::changed(target.json, &answer, || "what has not begun is given up".to_owned());
        return Ok(());
    }
    if wanted.state {
        let state = client.get("/v1/rebalance")?;
        output::changed(target.json, &state, || shown(&state));
        return Ok(());
    }
    let plan = client.get("/v1/rebalance/plan")?;
    if wanted.plan && target.json {
        output::json(&plan);
        return Ok(());
    }
    if !target.json {
        print_plan(&plan);
    }
    if wanted.plan {
        return Ok(());
    }
    if count(&plan["actions_count"]) == 0 {
        if target.json {
            output::json(&plan);
        }
        return Ok(());
    }
    let before = client.get("/v1/rebalance")?;
    let begun = client.post("/v1/rebalance", &json!({}))?;
    if wanted.detach {
        output::changed(target.json, &begun, || "the server goes on by itself".to_owned());
        return Ok(());
    }
    follow(&client, &before, target.json)
}

/// Waits until the plan is done, with its running actions on the terminal if there is one.
fn follow(client: &Client, before: &Value, as_json: bool) -> Result<()> {
    let screen = Screen::new(as_json);
    loop {
        let state = client.get("/v1/rebalance")?;
        screen.show(&progress(&state));
        if state["running"].is_null() {
            screen.finish();
            let made = |part: &str| -> Vec<u64> {
                let of = |state: &Value, kind: &str| count(&state["counts"][kind][part]);
                let kinds = ["split", "merge", "move"];
                kinds.map(|kind| of(&state, kind).saturating_sub(of(before, kind))).to_vec()
            };
            output::changed(as_json, &state, || summary(&state, &made("done"), &made("failed")));
            return match state["trouble"].as_str() {
                None => Ok(()),
                Some(trouble) => Err(Failure::failed(format!("not all was done: {trouble}"))),
            };
        }
        std::thread::sleep(LOOK);
    }
}

/// The running actions and those done since the server started.
fn shown(state: &Value) -> String {
    let counts = |part: &str| {
        let of = |kind: &str| count(&state["counts"][kind][part]);
        ["split", "merge", "move"].map(of)
    };
    let mut lines = match state["running"].as_str() {
        Some(how) => vec![format!("plans are carried out {how}")],
        None => vec!["nothing is being done".to_owned()],
    };
    if state["running"].is_string() {
        lines.extend(progress(state));
    }
    lines.push(summary(state, &counts("done"), &counts("failed")));
    lines.join("\n")
}

fn summary(state: &Value, done: &[u64], failed: &[u64]) -> String {
    let named = |numbers: &[u64]| {
        let words = ["splits", "merges", "moves"];
        let parts = words.iter().zip(numbers).map(|(word, number)| format!("{number} {word}"));
        parts.collect::<Vec<_>>().join(", ")
    };
    let mut text = format!("done: {}", named(done));
    if failed.iter().any(|number| *number > 0) {
        text.push_str(&format!("; not done: {}", named(failed)));
    }
    format!("{text}; {}", evenness(&state["evenness"]))
}

fn evenness(peaks: &Value) -> String {
    let level = |goal: &&str| {
        let peak = peaks[*goal].as_f64().filter(|peak| *peak > 0.0)?;
        Some(format!("{goal} {peak:.2}"))
    };
    let levels: Vec<String> = GOALS.iter().filter_map(level).collect();
    format!("the fullest shard as a multiple of the mean: {}", levels.join(", "))
}

fn print_plan(plan: &Value) {
    let pair = |shard: &Value, goal: &str, show: fn(&Value) -> String| {
        let [before, after] = ["before", "after"].map(|when| show(&shard[when][goal]));
        if before == after { before } else { format!("{before} → {after}") }
    };
    let row = |shard: &Value| {
        vec![
            cell(&shard["shard"]),
            cell(&shard["state"]),
            cell(&shard["partitions"]),
            pair(shard, "bytes", |bytes| output::size(count(bytes))),
            pair(shard, "requests", |rate| format!("{:.1}", rate.as_f64().unwrap_or(0.0))),
            pair(shard, "items", cell),
        ]
    };
    let shards = plan["shards"].as_array().into_iter().flatten();
    let heads = ["shard", "state", "partitions", "bytes", "requests/s", "items"];
    output::table(&heads, &shards.map(row).collect::<Vec<_>>());
    output::line("");
    let all = count(&plan["actions_count"]) as usize;
    if all == 0 {
        output::line("nothing to do");
    }
    let mut round = 1;
    for action in plan["actions"].as_array().into_iter().flatten().take(ACTIONS_PRINTED) {
        if count(&action["round"]) > round {
            round = count(&action["round"]);
            output::line("after that:");
        }
        output::line(&sentence(action));
    }
    if all > ACTIONS_PRINTED {
        output::line(&format!("and {} more", all - ACTIONS_PRINTED));
    }
    for note in plan["left"].as_array().into_iter().flatten().take(ACTIONS_PRINTED) {
        let (partition, why) = (cell(&note["partition"]), cell(&note["why"]));
        output::line(&format!("left: partition {partition}: {why}"));
    }
    for line in resting(plan) {
        output::line(&line);
    }
    let bytes = output::size(count(&plan["bytes_to_move"]));
    output::line(&format!("now {}", evenness(&plan["evenness"]["before"])));
    if all > 0 {
        output::line(&format!("then {}; {bytes} to copy", evenness(&plan["evenness"]["after"])));
    }
}

/// The partitions that are left alone, and why.
fn resting(plan: &Value) -> Vec<String> {
    let all = plan["resting"].as_array().map_or(&[][..], Vec::as_slice);
    let line = |one: &Value| {
        format!("rests: partition {}: {}", cell(&one["partition"]), cell(&one["why"]))
    };
    let mut lines: Vec<String> = all.iter().take(RESTING_PRINTED).map(line).collect();
    let more = all.len().saturating_sub(RESTING_PRINTED) as u64 + count(&plan["resting_unlisted"]);
    if more > 0 {
        lines.push(format!("rests: {more} more"));
    }
    lines
}

/// An action as a sentence.
fn sentence(action: &Value) -> String {
    let [partition, shard, from, to] =
        ["partition", "shard", "from", "to"].map(|part| cell(&action[part]));
    // A partition that an earlier action will create has no number yet.
    let is_made = action["made"].as_bool() == Some(true);
    let (one, both) = match is_made {
        true => ("a piece of partition", "what becomes of partitions"),
        false => ("partition", "partitions"),
    };
    let load = &action["load"];
    let bytes = output::size(count(&load["bytes"]));
    let requests = load["requests"].as_f64().unwrap_or(0.0);
    match action["kind"].as_str().unwrap_or_default() {
        "split" => format!("split {one} {partition} on {shard} {}", cell(&action["cut"])),
        "merge" => {
            let first = match action["first"]["partition"].as_u64() {
                Some(moved) => format!(", after {moved} has moved there"),
                None => String::new(),
            };
            format!("merge {both} {partition} and {} on {shard}{first}", cell(&action["right"]))
        }
        _ => format!(
            "move {one} {partition} from {from} to {to} ({bytes}, {requests:.1} requests/s): {}",
            cell(&action["why"])
        ),
    }
}

/// The running actions, a line each, and how many wait.
fn progress(state: &Value) -> Vec<String> {
    let line = |action: &Value| match &action["job"] {
        Value::Object(_) => {
            let [partition, to] = ["partition", "to"].map(|part| cell(&action["job"][part]));
            format!("{partition} to {to} {}", job::progress(&action["job"]))
        }
        _ => sentence(action),
    };
    let underway = state["underway"].as_array().into_iter().flatten();
    let mut lines: Vec<String> = underway.map(line).collect();
    lines.push(format!("{} wait, {} plans made", cell(&state["waiting"]), cell(&state["plans"])));
    lines
}

fn count(value: &Value) -> u64 {
    value.as_u64().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn actions_read_as_sentences() {
        let load = json!({ "bytes": 2048, "requests": 1.5, "items": 3 });
        let one = json!({
            "kind": "move", "partition": 7, "from": "a", "to": "b", "load": load,
            "why": "bytes are uneven",
        });
        assert_eq!(
            sentence(&one),
            "move partition 7 from a to b (2.0 KiB, 1.5 requests/s): bytes are uneven"
        );
        let merge = json!({
            "kind": "merge", "partition": 7, "right": 8, "shard": "b", "first": one, "load": load,
        });
        let expected = "merge partitions 7 and 8 on b, after 7 has moved there";
        assert_eq!(sentence(&merge), expected);
        let cut = "in the middle of its bytes";
        let split = json!({ "kind": "split", "partition": 7, "shard": "b", "cut": cut });
        assert_eq!(sentence(&split), "split partition 7 on b in the middle of its bytes");
    }

    #[test]
    fn what_does_not_exist_yet_is_a_piece_of_what_does() {
        let load = json!({ "bytes": 2048, "requests": 1.5, "items": 3 });
        let one = json!({
            "kind": "move", "partition": 7, "from": "a", "to": "b", "load": load, "made": true,
            "why": "bytes are uneven", "round": 2,
        });
        assert_eq!(
            sentence(&one),
            "move a piece of partition 7 from a to b (2.0 KiB, 1.5 requests/s): bytes are uneven"
        );
        let rest = json!({ "partition": 3, "why": "is on its way to another shard" });
        let plan = json!({ "resting": vec![rest; RESTING_PRINTED + 1], "resting_unlisted": 5 });
        let lines = resting(&plan);
        assert_eq!(lines[0], "rests: partition 3: is on its way to another shard");
        assert_eq!(lines.last().unwrap(), "rests: 6 more");
    }
}
