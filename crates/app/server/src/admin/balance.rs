//! The balancer in the admin API: its plan, its running actions, and its finished ones.

use std::collections::BTreeMap;

use lazuli_balance::{
    Action, Cut, Fleet, Goal, Left, Load, Merge, Move, Note, Plan, Rest, Resting, ShardState,
    Split, WholePlan, Why,
};
use lazuli_shardmap::{PartitionId, ShardId};
use serde_json::{Value, json};

use super::jobs::{self, Names};
use super::refusal::Result;
use crate::balance::{Asked, DrawnWhole, Ended, Kind};
use crate::running::Running;

/// How many actions of a plan are shown. All of them count in what comes of it.
const ACTIONS_SHOWN: usize = 1_000;

/// What would be done from now to where nothing is left to do: a list of actions, and what each shard carries before and
/// after all of them. Nothing is changed.
pub(super) async fn plan(running: &Running) -> Result<Value> {
    let names = jobs::names(running).await?;
    let DrawnWhole { fleet, whole, uncounted } = running.balancer.whole_plan().await?;
    let peaks = |loads: &[Load]| -> Value {
        Goal::ALL
            .map(|goal| (goal.name().to_owned(), json!(fleet.peak(loads, goal))))
            .into_iter()
            .collect()
    };
    let now_ms = running.engine.env().clock.now_ms();
    let none = Plan::default();
    let first = whole.plans.first().unwrap_or(&none);
    let last = whole.plans.last().unwrap_or(&none);
    let rounds = whole.plans.iter().enumerate();
    let actions = rounds.flat_map(|(at, plan)| plan.actions.iter().map(move |one| (at, one)));
    let actions = actions.take(ACTIONS_SHOWN).map(|(at, action)| {
        let mut shown = show_action(&names, action);
        show_origins(&whole, &mut shown);
        shown["round"] = json!(at + 1);
        shown
    });
    let is_open = !last.actions.is_empty();
    Ok(json!({
        "actions": actions.collect::<Vec<_>>(),
        "actions_count": whole.plans.iter().map(|plan| plan.actions.len()).sum::<usize>(),
        "cut_short": is_open || whole.plans.iter().any(|plan| plan.cut_short),
        "uncounted": uncounted,
        "bytes_to_move": whole.plans.iter().map(Plan::bytes_to_move).sum::<u64>(),
        "shards": show_shards(&names, &fleet, &first.before, &last.after),
        "evenness": { "before": peaks(&first.before), "after": peaks(&last.after) },
        "left": show_notes(&whole, &last.notes),
        "left_unlisted": last.notes_unlisted,
        "resting": first.resting.iter().map(|one| show_rest(one, now_ms)).collect::<Vec<_>>(),
        "resting_unlisted": first.resting_unlisted,
    }))
}

/// Names the partitions of today in place of those that an action before this one makes.
fn show_origins(whole: &WholePlan, action: &mut Value) {
    for part in ["partition", "right"] {
        let Some(id) = action[part].as_u64() else { continue };
        let origin = whole.origin(PartitionId(id));
        if origin.0 != id {
            action[part] = json!(origin.0);
            action["made"] = json!(true);
        }
    }
    if action["first"].is_object() {
        show_origins(whole, &mut action["first"]);
    }
}

fn show_notes(whole: &WholePlan, notes: &[Note]) -> Vec<Value> {
    let of_today =
        notes.iter().map(|note| Note { partition: whole.origin(note.partition), ..*note });
    let mut shown: Vec<Note> = Vec::new();
    for note in of_today {
        if !shown.contains(&note) {
            shown.push(note);
        }
    }
    shown.iter().map(show_note).collect()
}

fn show_rest(one: &Resting, now_ms: u64) -> Value {
    let why = match one.why {
        Rest::Changed { until_ms } => {
            let seconds = until_ms.saturating_sub(now_ms).div_ceil(1_000);
            format!("was moved or merged not long ago, and rests for another {seconds} s")
        }
        Rest::Moving => "is on its way to another shard".to_owned(),
        Rest::Locked => "is not online, not counted yet, or part of another operation".to_owned(),
        Rest::Away => "its shard does not answer".to_owned(),
    };
    json!({ "partition": one.partition.0, "why": why })
}

/// Begins to carry out plans until there is nothing left to do.
pub(super) async fn begin(running: &Running) -> Result<Value> {
    running.balancer.begin()?;
    tracing::info!("balancing by command");
    state(running).await
}

/// Gives up what has not begun.
pub(super) async fn stop(running: &Running) -> Result<Value> {
    running.balancer.stop();
    tracing::info!("balancing ends by command");
    state(running).await
}

/// What is done, and what was done since the server started.
pub(super) async fn state(running: &Running) -> Result<Value> {
    let names = jobs::names(running).await?;
    let (mut shown, doing) = {
        let state = running.balancer.state();
        let counts = |kind: Kind| {
            let counts = json!({
                "begun": state.begun.of(kind),
                "done": state.done.of(kind),
                "failed": state.failed.of(kind),
            });
            (kind.name().to_owned(), counts)
        };
        let peaks = state.peaks.map(|peaks| {
            let named = Goal::ALL.into_iter().zip(peaks);
            named.map(|(goal, peak)| (goal.name().to_owned(), json!(peak))).collect::<Value>()
        });
        let ended = state.ended.iter().rev();
        let shown = json!({
            "automatic": running.balancer.settings().automatic,
            "running": state.running.map(|asked| match asked {
                Asked::ByHand => "by hand",
                Asked::ByItself => "by itself",
            }),
            "stopping": state.running.is_some() && state.stop,
            "plans": state.plans,
            "waiting": state.waiting,
            "counts": Kind::ALL.map(counts).into_iter().collect::<Value>(),
            "evenness": peaks,
            "trouble": state.trouble,
            "ended": ended.map(|ended| show_ended(&names, ended)).collect::<Vec<_>>(),
        });
        (shown, state.doing.values().cloned().collect::<Vec<_>>())
    };
    let mut underway = Vec::new();
    for one in doing {
        let mut action = show_action(&names, &one.action);
        if let Some(number) = one.job {
            // One that has just ended is not there any more.
            action["job"] = jobs::show(running, number).await.unwrap_or(Value::Null);
        }
        underway.push(action);
    }
    shown["underway"] = json!(underway);
    Ok(shown)
}

fn name(names: &Names, shard: ShardId) -> String {
    names.get(&shard).cloned().unwrap_or_else(|| shard.to_string())
}

fn show_load(load: &Load) -> Value {
    json!({ "bytes": load.bytes, "requests": load.requests, "items": load.items })
}

fn show_shards(names: &Names, fleet: &Fleet, before: &[Load], after: &[Load]) -> Vec<Value> {
    let mut held: BTreeMap<ShardId, usize> = BTreeMap::new();
    for partition in &fleet.partitions {
        *held.entry(partition.shard).or_default() += 1;
    }
    let both = before.iter().zip(after);
    let shown = fleet.shards.iter().zip(both).map(|(shard, (before, after))| {
        json!({
            "shard": name(names, shard.id),
            "state": match shard.state {
                ShardState::Online => "online",
                ShardState::Draining => "draining",
                ShardState::Away => "away",
            },
            "partitions": held.get(&shard.id).copied().unwrap_or(0),
            "before": show_load(before),
            "after": show_load(after),
        })
    });
    shown.collect()
}

fn show_action(names: &Names, action: &Action) -> Value {
    match action {
        Action::Split(Split { partition, shard, cut, pieces }) => json!({
            "kind": "split",
            "partition": partition.0,
            "shard": name(names, *shard),
            "cut": match cut {
                Cut::Bytes => "in the middle of its bytes",
                Cut::Requests => "in the middle of its requests",
                Cut::HotShardlet => "around its busiest shardlet",
            },
            "pieces": pieces.iter().map(|piece| show_load(&piece.load)).collect::<Vec<_>>(),
        }),
        Action::Merge(Merge { left, right, shard, first, load }) => json!({
            "kind": "merge",
            "partition": left.0,
            "right": right.0,
            "shard": name(names, *shard),
            "first": first.as_ref().map(|one| show_move(names, one)),
            "load": show_load(load),
        }),
        Action::Move(one) => show_move(names, one),
    }
}

fn show_move(names: &Names, one: &Move) -> Value {
    json!({
        "kind": "move",
        "partition": one.partition.0,
        "from": name(names, one.from),
        "to": name(names, one.to),
        "load": show_load(&one.load),
        "why": match one.why {
            Why::Drain => "its shard is to be emptied",
            Why::Rules => "its shard is not allowed",
            Why::Even(Goal::Bytes) => "bytes are uneven",
            Why::Even(Goal::Requests) => "requests are uneven",
            Why::Even(Goal::Items) => "items are uneven",
            Why::Merge => "its neighbour is there",
        },
    })
}

fn show_ended(names: &Names, ended: &Ended) -> Value {
    let mut shown = show_action(names, &ended.action);
    shown["ended_ms"] = json!(ended.ended_ms);
    shown["trouble"] = json!(ended.trouble);
    shown
}

fn show_note(note: &Note) -> Value {
    json!({
        "partition": note.partition.0,
        "why": match note.left {
            Left::OneShardlet => "too large, but one shardlet",
            Left::HotShardlet => "too busy, but one hot shardlet",
            Left::NoPlace => "has to leave its shard, but may go nowhere",
        },
    })
}
