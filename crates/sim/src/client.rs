//! A client of the cluster: its own randomness, its own pace, and requests that may be interrupted.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use lazuli_engine::{Continuation, Engine, FanOut, Item, ItemScan, OnFailure, Transaction};
use lazuli_env::BoxFuture;
use lazuli_shardmap::layout::{self, Space};
use lazuli_store::{KeyRange, PageLimit, Result as StoreResult};

use crate::answer::Answer;
use crate::cluster::{Cluster, Table, Whom};
use crate::random::Seeded;

/// How often a request that must succeed is tried. Faults end, so this is reached only if something hangs.
const TRIES_MAX: usize = 6_000;
const PAUSE: Duration = Duration::from_millis(20);

/// A request as the server runs it.
pub type Request<T> = Box<dyn FnOnce(Arc<Engine>) -> BoxFuture<'static, StoreResult<T>> + Send>;

#[derive(Clone)]
pub struct Client {
    pub cluster: Cluster,
    /// Counts from 0 within a workload.
    pub number: u64,
    pub random: Arc<Seeded>,
    /// Whether it waits for every answer. What a client hangs up on may still happen later.
    is_patient: bool,
    whom: Whom,
}

/// Items of one page, and where the next one continues.
type ScanPage = (Vec<(Bytes, Item)>, Option<Bytes>);

/// The result of a request: an answer, or a violation.
pub type Asked<T> = Result<Answer<T>, String>;

impl Client {
    pub fn new(cluster: &Cluster, number: u64) -> Self {
        let random = Arc::new(cluster.world.random("client"));
        Self { cluster: cluster.clone(), number, random, is_patient: false, whom: Whom::Any }
    }

    /// The client that sets up and checks.
    pub fn outside(cluster: &Cluster) -> Self {
        Self::new(cluster, 0).patient()
    }

    #[must_use]
    pub fn patient(self) -> Self {
        Self { is_patient: true, ..self }
    }

    /// A client of the process that does the background work.
    #[must_use]
    pub fn of_first_process(self) -> Self {
        Self { whom: Whom::First, ..self }
    }

    /// How many requests a client makes.
    pub fn rounds(&self) -> u64 {
        self.cluster.settings.rounds
    }

    /// Lets some time pass between two requests.
    pub async fn think(&self) {
        let micros = self.random.between(0, self.cluster.settings.think_micros);
        if micros > 0 {
            self.cluster.world.sleep(Duration::from_micros(micros)).await;
        }
    }

    pub async fn ask<T: Send + 'static, F>(
        &self,
        name: &'static str,
        request: impl FnOnce(Arc<Engine>) -> F + Send + 'static,
    ) -> Asked<T>
    where
        F: Future<Output = StoreResult<T>> + Send + 'static,
    {
        let request: Request<T> = Box::new(move |engine| Box::pin(request(engine)));
        let result = self.cluster.call(name, request, self.whom, !self.is_patient).await;
        let number = self.number;
        self.cluster.world.note(|| match &result {
            Some(Ok(_)) => format!("client {number}: {name} done"),
            Some(Err(error)) => format!("client {number}: {name} failed: {error}"),
            None => format!("client {number}: {name} got no answer"),
        });
        match result {
            Some(result) => Answer::of(result).map_err(|wrong| format!("{name}: {wrong}")),
            None => Ok(Answer::Unknown),
        }
    }

    /// Retries until it succeeds.
    pub async fn ask_surely<T, R, F>(
        &self,
        name: &'static str,
        request: impl Fn() -> R,
    ) -> Result<T, String>
    where
        T: Send + 'static,
        R: FnOnce(Arc<Engine>) -> F + Send + 'static,
        F: Future<Output = StoreResult<T>> + Send + 'static,
    {
        let mut last = String::new();
        for _ in 0..TRIES_MAX {
            match self.ask(name, request()).await? {
                Answer::Done(value) => return Ok(value),
                Answer::Refused(error) => last = error.to_string(),
                Answer::Unknown => last = "no answer".to_owned(),
            }
            self.cluster.world.sleep(PAUSE).await;
        }
        Err(format!("{name} failed {TRIES_MAX} times, at last: {last}"))
    }

    pub async fn write<T: Transaction>(&self, table: &Table, at: i64, what: T) -> Asked<T::Output> {
        let (id, route) = (table.id, table.route(at));
        self.ask("write", move |engine| async move { engine.write(id, &route, what).await }).await
    }

    /// Writes something that is idempotent.
    pub async fn write_surely<T: Transaction>(
        &self,
        table: &Table,
        at: i64,
        what: impl Fn() -> T,
    ) -> Result<T::Output, String> {
        let (id, route) = (table.id, table.route(at));
        let request = || -> Request<T::Output> {
            let (what, route) = (what(), route.clone());
            Box::new(move |engine| Box::pin(async move { engine.write(id, &route, what).await }))
        };
        self.ask_surely("write", request).await
    }

    pub async fn write_many<T: Transaction>(
        &self,
        table: &Table,
        at: &[i64],
        what: T,
    ) -> Asked<T::Output> {
        let targets: Vec<_> = at.iter().map(|at| (table.id, table.route(*at))).collect();
        self.ask("write many", move |engine| async move { engine.write_many(&targets, what).await })
            .await
    }

    fn get_request(table: &Table, at: i64, row: &[u8]) -> Request<Option<Item>> {
        let key = table.key(at, row);
        Box::new(move |engine| Box::pin(async move { engine.get(&key, 1).await }))
    }

    pub async fn get(&self, table: &Table, at: i64, row: &[u8]) -> Asked<Option<Item>> {
        self.ask("get", Self::get_request(table, at, row)).await
    }

    pub async fn get_surely(
        &self,
        table: &Table,
        at: i64,
        row: &[u8],
    ) -> Result<Option<Item>, String> {
        self.ask_surely("get", || Self::get_request(table, at, row)).await
    }

    /// All items of a table in pages of a random size, as shardlet, row and item. Each page is retried until it succeeds.
    pub async fn scan_surely(&self, table: &Table) -> Result<Vec<(i64, Vec<u8>, Item)>, String> {
        let items_max = self.random.between(1, 50) as usize;
        let id = table.id;
        let mut items: Vec<(Bytes, Item)> = Vec::new();
        let mut from: Option<Bytes> = None;
        loop {
            let request = || -> Request<ScanPage> {
                let from = from.clone();
                Box::new(move |engine| Box::pin(page(engine, id, items_max, from)))
            };
            let (rows, next) = self.ask_surely("scan", request).await?;
            items.extend(rows);
            match next {
                Some(next) => from = Some(next),
                None => break,
            }
        }
        if !items.is_sorted_by(|a, b| a.0 < b.0) {
            return Err(format!("a scan of {} went back or repeated itself", table.name));
        }
        items
            .into_iter()
            .map(|(key, item)| table.split(&key).map(|(at, row)| (at, row, item)))
            .collect()
    }
}

/// One page of a scan, with the encoded continuation.
async fn page(
    engine: Arc<Engine>,
    id: lazuli_shardmap::ContainerId,
    items_max: usize,
    from: Option<Bytes>,
) -> StoreResult<ScanPage> {
    let scan = ItemScan { space: Space::ITEMS, range: KeyRange::all() };
    let request = FanOut {
        routes: KeyRange::all(),
        limit: PageLimit::items(items_max),
        on_failure: OnFailure::Fail,
    };
    let from = from.map(|from| Continuation::decode(id, &from)).transpose()?;
    let page = engine.fan_out(id, &scan, &request, from.as_ref()).await?;
    Ok((page.rows, page.next.map(|next| next.encode())))
}

/// The part of a stored key after `container | space`.
pub(crate) fn behind_prefix(key: &[u8]) -> &[u8] {
    key.get(layout::PREFIX_BYTES..).unwrap_or_default()
}
