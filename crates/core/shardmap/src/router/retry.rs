//! One operation on one route, until the map has settled.

use std::future::Future;
use std::time::Duration;

use lazuli_store::{Error, Kind, Result};

use super::Router;
use super::health::Gate;
use crate::ContainerId;
use crate::map::Placed;

impl Router {
    /// Runs an operation where its route is placed. After `Moved` the map is refreshed and the
    /// operation run again, a bounded number of times; then the answer is `map-unsettled`.
    ///
    /// The operation itself calls [`Router::shard_failed`] when the shard did not do its part: only
    /// it can tell that from a partition that is offline or a lane that is full.
    pub async fn routed<T, F>(
        &self,
        container: ContainerId,
        route: &[u8],
        operation: impl Fn(Placed) -> F,
    ) -> Result<T>
    where
        F: Future<Output = Result<T>>,
    {
        for attempt in 0..=self.settings.moved_retries_max {
            let placed = self.ready(container, route).await?;
            let outcome = operation(placed).await;
            match &outcome {
                Err(error) if error.is_moved() => {
                    self.shard_answered(placed.shard);
                    self.env.clock.sleep(self.pause(attempt)).await;
                    self.refresh(container, Some((placed.partition, placed.epoch))).await?;
                }
                Err(error) if matches!(error.kind(), Kind::Unavailable { .. }) => return outcome,
                _ => {
                    self.shard_answered(placed.shard);
                    return outcome;
                }
            }
        }
        Err(unsettled(container))
    }

    /// For an operation on several routes at once: waits after its `attempt`-th try met an old map, counted from zero,
    /// and refreshes the map; or gives up as [`Router::routed`] does.
    pub async fn before_retry(&self, container: ContainerId, attempt: u32) -> Result<()> {
        if attempt >= self.settings.moved_retries_max {
            return Err(unsettled(container));
        }
        self.env.clock.sleep(self.pause(attempt)).await;
        self.refresh(container, None).await
    }

    /// The place of a route, on a shard that may be asked. Before a failing shard is probed, the
    /// catalog is asked whether the route is still there: so it is asked once per probe, not once
    /// per request, and a partition that was given to another shard is found.
    async fn ready(&self, container: ContainerId, route: &[u8]) -> Result<Placed> {
        let placed = self.place(container, route).await?;
        if self.health.gate(placed.shard, self.env.clock.uptime())? == Gate::Open {
            return Ok(placed);
        }
        // The catalog may be away as well; then the shard is probed by the map that there is.
        if self.refresh(container, None).await.is_err() {
            return Ok(placed);
        }
        let found = self.place(container, route).await?;
        if found.shard != placed.shard {
            self.shard_ready(found.shard)?;
        }
        Ok(found)
    }

    /// The wait after so many attempts: none at first, then doubling, each between half and all of
    /// it.
    fn pause(&self, attempt: u32) -> Duration {
        let Some(doublings) = attempt.checked_sub(1) else { return Duration::ZERO };
        let whole = self.settings.moved_backoff_first.saturating_mul(1 << doublings.min(31));
        let half = whole.min(self.settings.moved_backoff_max) / 2;
        let nanos = u64::try_from(half.as_nanos()).unwrap_or(u64::MAX - 1);
        half + Duration::from_nanos(self.env.random.below(nanos + 1))
    }
}

fn unsettled(container: ContainerId) -> Error {
    let message = format!("the map of container {container} did not settle in time");
    Error::unavailable("map-unsettled", message)
}
