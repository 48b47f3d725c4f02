//! Where the primary is, or a standby, and whether it can be reached.
//!
//! A database that cannot be reached is tried by one task, again and again; everybody else is told at once that it is away.
//! After a connection was lost all hosts are asked, and the one that takes writes on the highest timeline is the primary: an
//! old primary that was cut off goes on taking writes, on the timeline that it was on.

use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use lazuli_store::{Error, Result, StoreReason};
use tokio::runtime::Handle;
use tokio::time::{Instant, sleep, timeout_at};
use tokio_rustls::rustls::ClientConfig;

use crate::error::{DatabaseReason, closed};
use crate::limits::{OTHER_HOSTS_TIME_MAX, PROBE_INTERVAL, REFUSED_INTERVAL};
use crate::schema::{self, Tables};
use crate::session::{Answer, Session};
use crate::settings::Settings;
use crate::tls;

/// Which servers of a database are connected to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Wanted {
    /// The one that takes writes.
    Primary,
    /// Of those that follow it, the one that has come the farthest.
    Standby,
}

pub(crate) struct Database {
    pub(crate) settings: Settings,
    wanted: Wanted,
    /// Where tasks run that outlive the call that needs them.
    pub(crate) runtime: Handle,
    tls: Option<Arc<ClientConfig>>,
    tables: Tables,
    /// The highest timeline that a primary was seen on.
    timeline: Arc<AtomicU32>,
    /// Whether the tables are known to be there.
    has_tables: AtomicBool,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// The host that was chosen when all were asked, if no connection was lost since.
    chosen: Option<usize>,
    /// Why the database is away; a task tries to reach it then.
    away: Option<Error>,
    is_probed: bool,
    is_closed: bool,
}

impl Wanted {
    fn missing(self) -> &'static str {
        match self {
            Self::Primary => "no host takes writes",
            Self::Standby => "no host is a standby",
        }
    }
}

impl Database {
    pub(crate) fn new(settings: Settings, tables: Tables) -> Result<Arc<Self>> {
        let Ok(runtime) = Handle::try_current() else {
            return Err(Error::internal(StoreReason::Failed, "there is no Tokio runtime here"));
        };
        settings.check()?;
        Ok(Arc::new(Self {
            tls: tls::config(&settings.tls)?,
            timeline: Arc::new(AtomicU32::new(settings.timeline_least)),
            settings,
            wanted: Wanted::Primary,
            runtime,
            tables,
            has_tables: AtomicBool::new(false),
            state: Mutex::default(),
        }))
    }

    /// The standbys of the same database.
    pub(crate) fn standbys(&self) -> Arc<Self> {
        Arc::new(Self {
            settings: self.settings.clone(),
            wanted: Wanted::Standby,
            runtime: self.runtime.clone(),
            tls: self.tls.clone(),
            tables: self.tables,
            timeline: self.timeline.clone(),
            // They have what the primary has.
            has_tables: AtomicBool::new(true),
            state: Mutex::default(),
        })
    }

    /// The servers, for messages.
    fn place(&self) -> String {
        match self.wanted {
            Wanted::Primary => self.settings.place(),
            Wanted::Standby => format!("a standby of {}", self.settings.place()),
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn timeline(&self) -> u32 {
        self.timeline.load(Ordering::Acquire)
    }

    /// Why the database cannot be used at the moment.
    pub(crate) fn away(&self) -> Option<Error> {
        let state = self.state();
        if state.is_closed { Some(closed()) } else { state.away.clone() }
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.state().is_closed
    }

    pub(crate) fn close(&self) {
        self.state().is_closed = true;
    }

    /// Whether a connection may still be used: not one to a server that was replaced, nor to a standby that is not the
    /// chosen one any more.
    pub(crate) fn is_current(&self, session: &Session) -> bool {
        let is_chosen = || self.state().chosen.is_none_or(|host| host == session.host);
        session.life.timeline >= self.timeline() && (self.wanted == Wanted::Primary || is_chosen())
    }

    /// A new connection to the primary, or the reason why there is none, within a bounded time.
    ///
    /// It is opened on the runtime of the store, whoever asks for it: a connection is driven by the runtime that it was opened
    /// on and is used by others later. On the threads of moves, which give way to all others, it would hold up requests.
    pub(crate) async fn connect(self: &Arc<Self>) -> Result<Session> {
        if let Some(away) = self.away() {
            return Err(away);
        }
        let database = self.clone();
        let connecting = self.runtime.spawn(async move { database.connect_here().await });
        connecting.await.map_err(|error| Error::internal(StoreReason::Panicked, error))?
    }

    async fn connect_here(self: &Arc<Self>) -> Result<Session> {
        let begun = Instant::now();
        let mut connected = self.find().await;
        // One lost connection does not make a database that is away.
        if connected.as_ref().is_err_and(|error| error.is(StoreReason::Down))
            && begun.elapsed() < PROBE_INTERVAL
        {
            connected = self.find().await;
        }
        if let Err(error) = &connected {
            self.went_away(error.clone());
        }
        connected
    }

    /// A connection was lost or does not answer: whether the database is still there must be found out.
    pub(crate) fn suspect(self: &Arc<Self>) {
        let mut state = self.state();
        state.chosen = None;
        self.probe(&mut state);
    }

    fn went_away(self: &Arc<Self>, error: Error) {
        let mut state = self.state();
        if state.away.is_none() {
            tracing::warn!(%error, "{} is away", self.place());
        }
        state.chosen = None;
        state.away = Some(error);
        self.probe(&mut state);
    }

    /// Starts the task that tries to reach the database, unless it runs already.
    fn probe(self: &Arc<Self>, state: &mut State) {
        if state.is_probed || state.is_closed {
            return;
        }
        state.is_probed = true;
        let known = Arc::downgrade(self);
        self.runtime.spawn(async move {
            // A store that was dropped needs its database no more.
            while let Some(database) = known.upgrade() {
                let found = database.find().await;
                let Some(pause) = database.probed(found.err()) else { return };
                drop(database);
                sleep(pause).await;
            }
        });
    }

    /// Takes note of an attempt to reach the database, and says how long to wait for the next one, if there is one.
    fn probed(&self, failure: Option<Error>) -> Option<Duration> {
        let mut state = self.state();
        let Some(error) = failure.filter(|_| !state.is_closed) else {
            if state.away.take().is_some() && !state.is_closed {
                tracing::info!("{} is back", self.place());
            }
            state.is_probed = false;
            return None;
        };
        if state.away.is_none() {
            tracing::warn!(%error, "{} is away", self.place());
        }
        // What is not a matter of reaching the database needs a person.
        let pause = if error.is(StoreReason::Down) { PROBE_INTERVAL } else { REFUSED_INTERVAL };
        state.chosen = None;
        state.away = Some(error);
        Some(pause)
    }

    async fn find(&self) -> Result<Session> {
        let chosen = self.state().chosen;
        let session = match chosen {
            Some(host) => match self.ask(host).await? {
                Some(session) => session,
                None => return Err(self.none_found("it is not what it was any more")),
            },
            None => self.ask_all().await?,
        };
        if !self.has_tables.load(Ordering::Acquire) {
            schema::ensure(&session.client, &self.settings.schema, self.tables).await?;
            self.has_tables.store(true, Ordering::Release);
        }
        Ok(session)
    }

    fn none_found(&self, why: &str) -> Error {
        Error::unavailable(StoreReason::Down, format!("{}: {why}", self.place()))
    }

    /// A session with one host, if it is what is wanted and on no older timeline than the highest that was seen.
    async fn ask(&self, place: usize) -> Result<Option<Session>> {
        let answer = Session::open(&self.settings, self.tls.as_ref(), place).await?;
        let session = match (self.wanted, answer) {
            (Wanted::Primary, Answer::Primary(session)) => *session,
            (Wanted::Standby, Answer::Standby(session)) => *session,
            _ => return Ok(None),
        };
        let (timeline, highest) = (session.life.timeline, self.timeline());
        if timeline < highest {
            let host = &self.settings.hosts[place];
            let message = match self.wanted {
                Wanted::Primary => format!(
                    "{host} takes writes on timeline {timeline}, but timeline {highest} exists: it \
                     was replaced, and what is written to it would be lost"
                ),
                Wanted::Standby => format!(
                    "{host} follows timeline {timeline}, but timeline {highest} exists: it may \
                     show what was lost"
                ),
            };
            return Err(Error::unavailable(DatabaseReason::TimelineOld, message));
        }
        Ok(Some(session))
    }

    /// Asks all hosts at once. The slow ones are not waited for once one is found.
    async fn ask_all(&self) -> Result<Session> {
        let asking = |host| async move { (host, self.ask(host).await) };
        let mut asked: FuturesUnordered<_> = (0..self.settings.hosts.len()).map(asking).collect();
        let mut best: Option<(usize, Session)> = None;
        let mut worst = None;
        let mut until = None;
        loop {
            let next = match until {
                Some(until) => timeout_at(until, asked.next()).await.unwrap_or(None),
                None => asked.next().await,
            };
            let Some((host, answer)) = next else { break };
            match answer {
                Ok(Some(session)) => {
                    until.get_or_insert_with(|| Instant::now() + OTHER_HOSTS_TIME_MAX);
                    let rank = |it: &Session| (it.life.timeline, it.replayed);
                    if best.as_ref().is_none_or(|(_, best)| rank(best) < rank(&session)) {
                        best = Some((host, session));
                    }
                }
                Ok(None) => {}
                // An old primary says more than a host that cannot be reached.
                Err(error) if error.is(DatabaseReason::TimelineOld) => worst = Some(error),
                Err(error) => worst = worst.or(Some(error)),
            }
        }
        drop(asked);
        let Some((host, session)) = best else {
            return Err(worst.unwrap_or_else(|| self.none_found(self.wanted.missing())));
        };
        if self.wanted == Wanted::Primary {
            self.timeline.fetch_max(session.life.timeline, Ordering::AcqRel);
        }
        self.state().chosen = Some(host);
        Ok(session)
    }
}
