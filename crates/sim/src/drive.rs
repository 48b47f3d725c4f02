//! Runs workloads on one cluster with faults, then lets it recover and checks.

use std::sync::Arc;
use std::time::Duration;

use lazuli_env::{BoxFuture, Random};
use tokio::sync::oneshot;

use crate::cluster::Cluster;
use crate::executor::World;
use crate::random::Seeded;
use crate::scenario::Found;
use crate::settings::Settings;
use crate::workloads::{AnyWorkload, Client};
use crate::{ClockFaults, checkers};

/// Creates the workloads of a scenario on a cluster that has no faults yet.
pub(crate) type Build =
    fn(Cluster) -> BoxFuture<'static, Result<Vec<Arc<dyn AnyWorkload>>, String>>;

pub(crate) async fn drive(world: World, settings: Settings, build: Build) -> Found {
    world.note(|| format!("{settings:?}"));
    let cluster = Cluster::start(&world, settings).await?;
    let workloads = build(cluster.clone()).await?;
    cluster.set_faults(true);
    cluster.restart_all().await;
    let crashes = world.process("crashes", ClockFaults::default());
    for slot in cluster.slots() {
        crashes.spawn("crashes", Box::pin(crash_again_and_again(cluster.clone(), slot)));
        crashes.spawn("pauses", Box::pin(pause_again_and_again(cluster.clone(), slot)));
    }
    let found = run_clients(&cluster, &workloads).await;
    crashes.kill();
    found?;
    world.note(|| "the faults are over".to_owned());
    cluster.set_faults(false);
    cluster.restart_all().await;
    let client = Client::outside(&cluster);
    for workload in &workloads {
        workload.check_all(&client).await?;
    }
    checkers::fsck::check(&cluster).await
}

/// Starts all clients of all workloads and waits for the last one, or for the first violation.
async fn run_clients(cluster: &Cluster, workloads: &[Arc<dyn AnyWorkload>]) -> Found {
    let clients = cluster.world.process("clients", ClockFaults::default());
    let mut ends = Vec::new();
    for workload in workloads {
        for number in 0..cluster.settings.clients {
            let (end, ended) = oneshot::channel();
            let life = workload.clone().start(Client::new(cluster, number));
            // After a violation the receiver is gone.
            let body = async move { _ = end.send(life.await) };
            clients.spawn("client", Box::pin(body));
            ends.push(ended);
        }
    }
    for ended in ends {
        ended.await.map_err(|_| "a client died".to_owned())??;
    }
    Ok(())
}

/// The longest pause of a process: beyond the time after which a server aborts its transactions.
const PAUSE_MAX_MICROS: u64 = 8_000_000;

/// Up to twice the mean.
fn draw(mean: Duration, random: &Seeded) -> Duration {
    let most = 2 * u64::try_from(mean.as_micros()).unwrap_or(1);
    Duration::from_micros(random.below(most + 1))
}

/// Kills a process from time to time, and starts it again, also after it has ended at a point.
async fn crash_again_and_again(cluster: Cluster, slot: usize) {
    let times = cluster.settings.crash_every.map(|mean| (mean, cluster.world.random("crashes")));
    loop {
        let time = times.as_ref().map(|(mean, random)| draw(*mean, random));
        let crash = async {
            match time {
                Some(time) => cluster.world.sleep(time).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            biased;
            () = cluster.ended_at_a_point(slot) => {}
            () = crash => {}
        }
        cluster.crash(slot);
        cluster.restart(slot).await;
    }
}

/// Pauses a process from time to time, shortly or for seconds.
async fn pause_again_and_again(cluster: Cluster, slot: usize) {
    let Some(mean) = cluster.settings.pause_every else { return };
    let random = cluster.world.random("pauses");
    loop {
        cluster.world.sleep(draw(mean, &random)).await;
        let longest = *random.pick(&[50_000, 1_000_000, PAUSE_MAX_MICROS]);
        let pause = Duration::from_micros(random.below(longest));
        cluster.pause(slot, pause);
        cluster.world.sleep(pause).await;
    }
}
