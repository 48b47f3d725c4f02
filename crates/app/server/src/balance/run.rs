//! Executes plans: by command until nothing is left to do, automatically one plan per interval.

use std::sync::Arc;
use std::time::Duration;

use lazuli_balance::{Action, Schedule};
use lazuli_shardmap::PartitionId;
use lazuli_store::{Error, Result};
use tokio::sync::OwnedMutexGuard;
use tokio::task::{JoinHandle, JoinSet};

use super::{Asked, Balancer, Drawn};

/// The most plans that are made for one command. Each goes on where the one before ended.
const PLANS_MAX: usize = 1_000;
/// Actions at the same time, moves among them: splits and merges are quick, and all of them are changes of one catalog.
const ACTIONS_AT_ONCE: usize = 32;
/// How often the balancer checks whether its window has opened or it was asked to stop.
const LOOK: Duration = Duration::from_millis(500);
/// How often an empty plan is made again while partitions are being counted, and how long is waited in between.
const COUNT_TRIES_MAX: usize = 25;
const COUNT_WAIT: Duration = Duration::from_millis(200);

impl Balancer {
    /// Begins to carry out plans until there is nothing left to do. Fails with `Exists` if that is under way already.
    pub(crate) fn begin(self: &Arc<Self>) -> Result<()> {
        let busy = |_| Error::exists("balancing", "plans are being carried out already");
        let turn = self.turn.clone().try_lock_owned().map_err(busy)?;
        self.enter(Asked::ByHand);
        let balancer = self.clone();
        tokio::spawn(async move { balancer.run(turn, PLANS_MAX).await });
        Ok(())
    }

    /// Drops actions that have not begun. Running moves continue; each is a job that can be cancelled by itself.
    pub(crate) fn stop(&self) {
        self.state().stop = true;
    }

    /// Plans at every interval, until the task is aborted.
    pub(crate) fn start(self: Arc<Self>) -> JoinHandle<()> {
        tokio::spawn(async move {
            loop {
                tokio::time::sleep(self.settings.interval).await;
                // A run by command is in progress.
                let Ok(turn) = self.turn.clone().try_lock_owned() else { continue };
                if self.is_open() {
                    self.enter(Asked::ByItself);
                    self.run(turn, 1).await;
                }
            }
        })
    }

    fn enter(&self, asked: Asked) {
        let mut state = self.state();
        state.running = Some(asked);
        state.stop = false;
        state.trouble = None;
    }

    async fn run(self: &Arc<Self>, turn: OwnedMutexGuard<()>, plans_max: usize) {
        let outcome = self.carry_out_plans(plans_max).await;
        let mut state = self.state();
        state.running = None;
        state.waiting = 0;
        if let Err(error) = outcome {
            tracing::warn!(%error, "cannot balance now");
            state.trouble = Some(error.to_string());
        }
        drop(turn);
    }

    async fn carry_out_plans(self: &Arc<Self>, plans_max: usize) -> Result<()> {
        for _ in 0..plans_max {
            let drawn = self.plan_counted().await?;
            self.state().planned(&drawn.fleet, &drawn.plan);
            let bytes = drawn.plan.bytes_to_move();
            let actions = drawn.plan.actions;
            if actions.is_empty() || self.state().stop {
                return Ok(());
            }
            let count = actions.len();
            tracing::info!(actions = count, bytes, "balancing");
            let done = self.carry_out(actions).await;
            if done == 0 && !self.state().stop {
                // The next plan would be the same.
                let message = format!("none of {count} actions could be done");
                return Err(Error::precondition("no-action-done", message));
            }
        }
        Ok(())
    }

    /// A plan. One that is empty only because partitions are being counted is made again.
    async fn plan_counted(&self) -> Result<Drawn> {
        let mut tries = 0;
        loop {
            let drawn = self.plan().await?;
            tries += 1;
            if !drawn.plan.actions.is_empty() || drawn.uncounted == 0 || tries == COUNT_TRIES_MAX {
                return Ok(drawn);
            }
            tokio::time::sleep(COUNT_WAIT).await;
        }
    }

    /// Does actions within the limits. Answers how many were done.
    async fn carry_out(self: &Arc<Self>, actions: Vec<Action>) -> usize {
        let mut schedule = Schedule::default();
        schedule.replan(actions);
        let mut tasks: JoinSet<(Option<PartitionId>, bool)> = JoinSet::new();
        let mut done = 0;
        loop {
            if self.state().stop {
                schedule.replan(Vec::new());
            }
            while tasks.len() < ACTIONS_AT_ONCE {
                let next = schedule.begin(&self.settings.planner, self.now_ms());
                let Some(action) = next else { break };
                self.spawn(&mut tasks, action);
            }
            self.state().waiting = schedule.waiting();
            if tasks.is_empty() && schedule.waiting() == 0 {
                return done;
            }
            tokio::select! {
                biased;
                Some(ended) = tasks.join_next() => {
                    // A task that panicked has moved nothing; its shard stays marked as busy for the rest of the plan.
                    let (moved, well) = ended.unwrap_or((None, false));
                    moved.into_iter().for_each(|partition| schedule.finished(partition));
                    done += usize::from(well);
                }
                () = tokio::time::sleep(LOOK) => {}
            }
        }
    }

    fn spawn(self: &Arc<Self>, tasks: &mut JoinSet<(Option<PartitionId>, bool)>, action: Action) {
        let number = self.state().begin(action.clone());
        let balancer = self.clone();
        tasks.spawn(async move {
            let outcome = balancer.act(number, &action).await;
            if let Err(error) = &outcome {
                tracing::info!(%error, ?action, "an action of a plan was not done");
            }
            let trouble = outcome.as_ref().err().map(ToString::to_string);
            balancer.state().end(number, balancer.now_ms(), trouble);
            (action.transfer().map(|one| one.partition), outcome.is_ok())
        });
    }

    fn is_open(&self) -> bool {
        let window = self.settings.planner.window;
        window.is_none_or(|window| window.is_open(self.now_ms()))
    }
}
