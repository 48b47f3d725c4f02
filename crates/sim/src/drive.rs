//! Runs workloads on one cluster while it goes wrong, then lets it recover and checks.

use std::sync::Arc;
use std::time::Duration;

use lazuli_env::{BoxFuture, Random};
use tokio::sync::oneshot;

use crate::cluster::Cluster;
use crate::executor::World;
use crate::scenario::Found;
use crate::settings::Settings;
use crate::workloads::{Client, Workload};
use crate::{ClockFaults, checkers};

/// Makes the workloads of a scenario on a cluster that has no faults yet.
pub(crate) type Build = fn(Cluster) -> BoxFuture<'static, Result<Vec<Arc<dyn Workload>>, String>>;

pub(crate) async fn drive(world: World, settings: Settings, build: Build) -> Found {
    world.note(|| format!("{settings:?}"));
    let cluster = Cluster::start(&world, settings).await?;
    let workloads = build(cluster.clone()).await?;
    cluster.set_faults(true);
    cluster.restart().await;
    let crashes = world.process("crashes", ClockFaults::default());
    crashes.spawn("crashes", Box::pin(crash_again_and_again(cluster.clone())));
    let found = run_clients(&cluster, &workloads).await;
    crashes.kill();
    found?;
    world.note(|| "the faults are over".to_owned());
    cluster.set_faults(false);
    cluster.restart().await;
    let client = Client::outside(&cluster);
    for workload in &workloads {
        workload.check(&client).await?;
    }
    checkers::fsck::check(&cluster).await
}

/// Starts all clients of all workloads and waits for the last one, or for the first that finds something wrong.
async fn run_clients(cluster: &Cluster, workloads: &[Arc<dyn Workload>]) -> Found {
    let clients = cluster.world.process("clients", ClockFaults::default());
    let mut ends = Vec::new();
    for workload in workloads {
        for number in 0..cluster.settings.clients {
            let (end, ended) = oneshot::channel();
            let life = workload.clone().start(Client::new(cluster, number));
            // Nobody listens any more once something was found.
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

/// Kills the server from time to time, and starts it again whoever has killed it.
async fn crash_again_and_again(cluster: Cluster) {
    let times = cluster.settings.crash_every.map(|mean| (mean, cluster.world.random("crashes")));
    loop {
        let time = times.as_ref().map(|(mean, random)| {
            let most = 2 * u64::try_from(mean.as_micros()).unwrap_or(1);
            Duration::from_micros(random.below(most + 1))
        });
        let crash = async {
            match time {
                Some(time) => cluster.world.sleep(time).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            biased;
            () = cluster.ended_at_a_point() => {}
            () = crash => {}
        }
        cluster.crash();
        cluster.restart().await;
    }
}
