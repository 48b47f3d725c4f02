//! Multi-step jobs over several shards: eventually all of their writes are made, each once.
//!
//! When a job is finished its client overwrites the items. A step that is made twice would be detected.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use lazuli_engine::steps::{JobState, Step};
use lazuli_engine::{Condition, ItemKey, Transaction, Tx};
use lazuli_store::Result as StoreResult;

use super::{Built, Client, Workload};
use crate::answer::Answer;
use crate::cluster::{Cluster, Table};
use crate::ensure;
use crate::lock;
use crate::scenario::Found;

/// Items of each client, each in a shardlet of its own.
const ITEMS: i64 = 4;
/// Jobs take longer than other requests, so there are fewer.
const ROUNDS_MAX: u64 = 6;

/// The value of an item, if it is known.
type KnownValue = Option<Bytes>;

pub struct Jobs {
    table: Table,
    items: Mutex<Vec<KnownValue>>,
}

struct Put(ItemKey, Bytes);

impl Transaction for Put {
    type Output = ();

    async fn run(&self, tx: &mut Tx<'_>) -> StoreResult<()> {
        tx.put(&self.0, self.1.clone()).await
    }
}

impl Jobs {
    pub async fn setup(cluster: &Cluster) -> Built {
        let items = cluster.settings.clients as i64 * ITEMS;
        let table = cluster.create_table("jobs", 0..items).await?;
        Ok(Arc::new(Self { table, items: Mutex::new(vec![None; items as usize]) }))
    }

    fn items(&self) -> std::sync::MutexGuard<'_, Vec<KnownValue>> {
        lock(&self.items)
    }

    async fn submit(&self, client: &Client, round: u64) -> Found {
        let first = client.number as i64 * ITEMS;
        let count = client.random.between(1, ITEMS as u64) as i64;
        let tag = Bytes::from(format!("job-{}-{round}", client.number));
        let targets: Vec<i64> = (first..first + count).collect();
        let steps: Vec<Step> = targets.iter().map(|at| self.step(*at, &tag)).collect();
        let submitted = match client
            .ask("submit job", move |engine| async move { engine.submit_job(steps).await })
            .await?
        {
            Answer::Refused(error) => return Err(format!("a job was refused: {error}")),
            Answer::Done(_) => true,
            Answer::Unknown => false,
        };
        self.wait_for_end(client, &tag).await?;
        self.check_whole(client, &targets, &tag, submitted).await?;
        for at in targets {
            let value = Bytes::from(format!("after-{}-{round}", client.number));
            let put = || Put(self.table.key(at, b"row"), value.clone());
            client.write_surely(&self.table, at, put).await?;
            self.items()[at as usize] = Some(value);
        }
        Ok(())
    }

    fn step(&self, at: i64, payload: &Bytes) -> Step {
        Step {
            container: self.table.id,
            route: self.table.route(at),
            row: Bytes::from_static(b"row"),
            condition: Condition::Any,
            payload: Some(payload.clone()),
        }
    }

    /// Waits until no unfinished job has this payload, and resumes them from time to time.
    async fn wait_for_end(&self, client: &Client, tag: &Bytes) -> Found {
        loop {
            let jobs = client.ask("jobs", |engine| async move {
                engine.run_jobs().await?;
                engine.jobs().await
            });
            if let Answer::Done(jobs) = jobs.await? {
                let ours = |payload: &Option<Bytes>| payload.as_ref() == Some(tag);
                let mut open = jobs.iter().filter(|job| ours(&job.steps[0].payload));
                let Some(job) = open.next() else { return Ok(()) };
                let is_stopped = matches!(job.state, JobState::Stopped { .. });
                ensure!(!is_stopped, "job {} stopped: {:?}", job.id, job.state);
            }
            client.cluster.world.sleep(Duration::from_millis(20)).await;
        }
    }

    async fn check_whole(
        &self,
        client: &Client,
        targets: &[i64],
        tag: &Bytes,
        submitted: bool,
    ) -> Found {
        let mut made = 0;
        for at in targets {
            let found = client.get_surely(&self.table, *at, b"row").await?;
            let value = found.map(|item| item.payload);
            if value.as_ref() == Some(tag) {
                made += 1;
            } else {
                let before = self.items()[*at as usize].clone();
                ensure!(value == before, "item {at} is {value:?}, before the job {before:?}");
            }
        }
        let all = made == targets.len();
        ensure!(all || !submitted, "{made} of {} steps of an accepted job", targets.len());
        ensure!(all || made == 0, "{made} of {} steps of a job without answer", targets.len());
        Ok(())
    }
}

impl Workload for Jobs {
    /// The process that does the background work goes on with jobs; two of them would repeat steps.
    fn client(client: Client) -> Client {
        client.patient().of_first_process()
    }

    async fn live(&self, client: &Client) -> Found {
        for round in 0..client.rounds().min(ROUNDS_MAX) {
            self.submit(client, round).await?;
            client.think().await;
        }
        Ok(())
    }

    async fn check(&self, client: &Client) -> Found {
        let items = self.items().clone();
        for (at, expected) in items.into_iter().enumerate() {
            let found = client.get_surely(&self.table, at as i64, b"row").await?;
            let value = found.map(|item| item.payload);
            ensure!(
                value == expected,
                "item {at} is {value:?}, not {expected:?}: a step came again"
            );
        }
        Ok(())
    }
}
