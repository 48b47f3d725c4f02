//! The balancer on a running server: figures in, a plan, its actions through the engine, and what came of them.
//!
//! The plan is a function (`lazuli_balance::plan`). What is kept here is what it needs of the past (who rests, what was
//! expected of pieces) and what people want to see. Nothing of it is durable: moves are jobs of the catalog, which go on
//! after a restart, and the next plan is made anew from where everything is then.

mod act;
mod fleet;
mod run;
mod state;
#[cfg(test)]
mod tests;

use std::sync::{Arc, Mutex, MutexGuard};

use lazuli_balance::{Fleet, Plan, WholePlan};
use lazuli_engine::Engine;
use lazuli_history::Recorder;
use lazuli_store::Result;

use crate::host::Host;
use crate::settings::Balance;
pub(crate) use state::{Asked, BalancerState, Ended, Kind};

pub(crate) struct Balancer {
    engine: Arc<Engine>,
    history: Arc<Recorder>,
    host: Arc<Host>,
    settings: Balance,
    state: Mutex<BalancerState>,
    /// Held by the task that carries out a plan, so that two plans do not move the same shards.
    turn: Arc<tokio::sync::Mutex<()>>,
}

/// A plan, and the fleet that it is for.
pub(crate) struct Drawn {
    pub(crate) fleet: Fleet,
    pub(crate) plan: Plan,
    /// How many partitions are left alone because they could not be counted.
    pub(crate) uncounted: usize,
}

/// All plans from here to where nothing is left to do.
pub(crate) struct DrawnWhole {
    pub(crate) fleet: Fleet,
    pub(crate) whole: WholePlan,
    pub(crate) uncounted: usize,
}

impl Balancer {
    pub(crate) fn new(
        engine: Arc<Engine>,
        history: Arc<Recorder>,
        host: Arc<Host>,
        settings: Balance,
    ) -> Self {
        let (state, turn) = (Mutex::default(), Arc::default());
        Self { engine, history, host, settings, state, turn }
    }

    /// What should be done now. Changes nothing.
    pub(crate) async fn plan(&self) -> Result<Drawn> {
        let now_ms = self.now_ms();
        let (fleet, uncounted) = self.fleet(now_ms).await?;
        let plan = lazuli_balance::plan(&fleet, &self.settings.planner, now_ms);
        Ok(Drawn { fleet, plan, uncounted })
    }

    /// What should be done now, and what follows from it until nothing is left to do. Changes nothing.
    pub(crate) async fn whole_plan(&self) -> Result<DrawnWhole> {
        let now_ms = self.now_ms();
        let (fleet, uncounted) = self.fleet(now_ms).await?;
        let whole = lazuli_balance::whole_plan(&fleet, &self.settings.planner, now_ms);
        Ok(DrawnWhole { fleet, whole, uncounted })
    }

    /// What is kept, for as long as it takes to look something up.
    pub(crate) fn state(&self) -> MutexGuard<'_, BalancerState> {
        // What this lock guards is whole after every statement, so a panic elsewhere does not spoil it.
        self.state.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    pub(crate) fn settings(&self) -> &Balance {
        &self.settings
    }

    fn now_ms(&self) -> u64 {
        self.engine.env().clock.now_ms()
    }
}
