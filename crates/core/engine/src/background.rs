//! What the engine does by itself: sweep expired items, spread reference data, go on with jobs and moves, delete what
//! containers and moves left behind. Each runs again and again until the engine is dropped; each can also be called by hand.

use std::sync::{Arc, Weak};
use std::time::Duration;

use lazuli_shardmap::catalog::Work;
use lazuli_store::Result;
use tokio::sync::Notify;

use crate::engine::Engine;
use crate::lease::Leasing;
use crate::panics::caught;
use crate::reconciling::Reconciler;

impl Engine {
    /// Starts the background work. It ends by itself when the engine is dropped.
    pub fn start(self: &Arc<Self>) {
        let settings = &self.settings;
        if settings.leasing == Leasing::Shared {
            self.repeat("leases", settings.heartbeat, None, |engine| {
                Box::pin(async move { engine.renew_leases().await })
            });
            self.repeat(
                "look for work of other nodes",
                settings.reconcile_interval,
                None,
                |engine| Box::pin(async move { engine.look_for_work().await }),
            );
        }
        self.repeat("sweep expired items", settings.sweep_interval, None, |engine| {
            Box::pin(async move { engine.sweep_on(&engine.shards_to_tend()).await.map(|_| ()) })
        });
        self.repeat(
            "spread reference data",
            settings.job_interval,
            Some(self.spread_wanted.clone()),
            |engine| Box::pin(async move { engine.spread_on(&engine.shards_to_tend()).await }),
        );
        let wanted = Some(self.jobs_wanted.clone());
        self.repeat("multi-step jobs", settings.job_interval, wanted, |engine| {
            Box::pin(async move {
                if engine.may(Work::Jobs) {
                    engine.run_jobs().await?;
                }
                Ok(())
            })
        });
        let wanted = Some(self.moves.wanted.clone());
        // Whatever was fenced when another process stopped has waited long enough.
        self.moves.wanted.notify_one();
        self.repeat("moves", settings.job_interval, wanted, |engine| {
            Box::pin(async move { engine.start_moves().await })
        });
        self.repeat("delete garbage", settings.job_interval, None, |engine| {
            Box::pin(async move {
                let may_clean = |id| engine.may(Work::Shard(id));
                engine.delete_garbage_where(may_clean).await.map(|_| ())
            })
        });
        self.repeat("count partitions", settings.job_interval, None, |engine| {
            Box::pin(async move { engine.recount_on(&engine.shards_to_tend()).await })
        });
        let reconciler = Arc::new(Reconciler::default());
        self.repeat("reconcile", settings.reconcile_interval, None, move |engine| {
            let reconciler = reconciler.clone();
            Box::pin(async move {
                if engine.may(Work::Reconcile) {
                    reconciler.run(&engine).await?;
                }
                Ok(())
            })
        });
    }

    /// Finds what other nodes have written for this one to sweep and to count: each node knows only of its own writes.
    async fn look_for_work(&self) -> Result<()> {
        let mut outcome = Ok(());
        for shard in self.shards_to_tend() {
            outcome = outcome.and(shard.find_expiring().await).and(shard.find_inexact().await);
        }
        outcome
    }

    fn repeat(
        self: &Arc<Self>,
        name: &'static str,
        interval: Duration,
        wanted: Option<Arc<Notify>>,
        work: impl Fn(Arc<Self>) -> lazuli_env::BoxFuture<'static, Result<()>> + Send + 'static,
    ) {
        let engine: Weak<Self> = Arc::downgrade(self);
        let clock = self.env.clock.clone();
        let task = async move {
            loop {
                let pause = clock.sleep(interval);
                match &wanted {
                    Some(wanted) => tokio::select! {
                        biased;
                        () = wanted.notified() => {}
                        () = pause => {}
                    },
                    None => pause.await,
                }
                let Some(engine) = engine.upgrade() else { return };
                let troubles = engine.troubles.clone();
                // The task must not end by a panic: this engine would hold the lease of the work, and nobody would do it.
                if let Err(error) = caught(work(engine)).await {
                    // What fails now is tried again; an operator sees the last trouble of each kind of work.
                    troubles.note(name, error);
                }
            }
        };
        self.env.spawn.spawn(name, Box::pin(task));
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU32, Ordering};

    use lazuli_store::mem::MemStore;

    use super::*;
    use crate::Settings;

    #[tokio::test]
    async fn work_that_panics_is_done_again_and_an_operator_sees_it() {
        let store = Arc::new(MemStore::new());
        let env = lazuli_env::real::env();
        let engine = Engine::on(env, Settings::default(), store).await.unwrap();
        let done = Arc::new(AtomicU32::new(0));
        let counted = done.clone();
        engine.repeat("work", Duration::from_millis(1), None, move |_| {
            let before = counted.fetch_add(1, Ordering::SeqCst);
            Box::pin(async move {
                assert!(before > 0, "the first time it fails");
                Ok(())
            })
        });
        for _ in 0..10_000 {
            if done.load(Ordering::SeqCst) >= 3 {
                break;
            }
            engine.env.clock.sleep(Duration::from_millis(1)).await;
        }
        assert!(done.load(Ordering::SeqCst) >= 3, "it is not done again");
        let troubles = engine.troubles.list();
        assert_eq!((troubles[0].work, troubles[0].error.code()), ("work", "panicked"));
    }
}
