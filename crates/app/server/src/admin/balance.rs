//! The balancer in the admin API: what it would do, what it does, and what it did.

use std::collections::BTreeMap;

use lazuli_balance::{
    Action, Cut, Fleet, Goal, Left, Load, Merge, Move, Note, Plan, ShardState, Split, Why,
};
use lazuli_shardmap::ShardId;
use serde_json::{Value, json};

use super::jobs::{self, Names};
use super::refusal::Result;
use crate::balance::{Asked, Drawn, Ended, Kind};
use crate::running::Running;

/// How many actions of a plan are shown. All of them count in what comes of it.
const ACTIONS_SHOWN: usize = 1_000;

/// What would be done now: a list of actions, and what each shard carries before and after. Nothing is changed.
pub(super) async fn plan(running: &Running) -> Result<Value> {
    let names = jobs::names(running).await?;
    let Drawn { fleet, plan, uncounted } = running.balancer.plan().await?;
    let actions = plan.actions.iter().take(ACTIONS_SHOWN);
    let peaks = |loads: &[Load]| -> Value {
        Goal::ALL
            .map(|goal| (goal.name().to_owned(), json!(fleet.peak(loads, goal))))
            .into_iter()
            .collect()
    };
    Ok(json!({
        "actions": actions.map(|action| show_action(&names, action)).collect::<Vec<_>>(),
        "actions_count": plan.actions.len(),
        "cut_short": plan.cut_short,
        "uncounted": uncounted,
        "bytes_to_move": plan.bytes_to_move(),
        "shards": show_shards(&names, &fleet, &plan),
        "evenness": { "before": peaks(&plan.before), "after": peaks(&plan.after) },
        "left": plan.notes.iter().map(show_note).collect::<Vec<_>>(),
        "left_unlisted": plan.notes_unlisted,
    }))
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

fn show_shards(names: &Names, fleet: &Fleet, plan: &Plan) -> Vec<Value> {
    let mut held: BTreeMap<ShardId, usize> = BTreeMap::new();
    for partition in &fleet.partitions {
        *held.entry(partition.shard).or_default() += 1;
    }
    let both = plan.before.iter().zip(&plan.after);
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
