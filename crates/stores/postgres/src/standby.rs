//! Reads from a standby, and how far behind it is.
//!
//! Every half second the primary is asked how far its log reaches, and the standby how far it has replayed it. A standby that has
//! come to a position of the primary shows everything that was answered before the primary was asked for it. This takes no
//! clocks of servers, no rights, and holds also while nothing is written. While the primary is away, no newer position is
//! learnt, so the standby counts as older and older, until it is not read any more.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use lazuli_store::{Copies, Error, Result};
use tokio::time::{Instant, sleep};

use crate::database::Database;
use crate::error::DatabaseReason;
use crate::fault::Fault;
use crate::limits::{
    ANSWER_TIME_MAX, STANDBY_CHOICE_INTERVAL, STANDBY_LOOK_INTERVAL, STANDBY_MARKS_MAX,
};
use crate::pool::{Lease, Pool};
use crate::sql::Sql;
use crate::store::Shared;

pub(crate) struct Standbys {
    pool: Arc<Pool>,
    progress: Mutex<Progress>,
}

#[derive(Default)]
struct Progress {
    /// The timeline of the primary that the positions are of.
    timeline: u32,
    /// How far the log of the primary reached, and when it was asked. Ascending, and none that the standby has passed but the
    /// last.
    marks: VecDeque<(Instant, u64)>,
    /// The standby that is read, and the moment whose state it shows at least.
    synced: Option<(usize, Instant)>,
    /// When another standby was last looked for.
    chosen: Option<Instant>,
}

impl Progress {
    /// The log of the primary reached up to this position at this time.
    fn wrote(&mut self, timeline: u32, asked: Instant, position: u64) {
        if self.timeline != timeline {
            *self = Self { timeline, chosen: self.chosen, ..Self::default() };
        }
        if self.marks.len() >= STANDBY_MARKS_MAX {
            self.marks.pop_front();
        }
        self.marks.push_back((asked, position));
    }

    /// The standby at this place has replayed the log up to this position.
    fn replayed(&mut self, host: usize, position: u64) {
        if self.synced.is_some_and(|(other, _)| other != host) {
            self.synced = None;
        }
        while self.marks.front().is_some_and(|(_, mark)| *mark <= position) {
            self.synced = self.marks.pop_front().map(|(asked, _)| (host, asked));
        }
    }
}

pub(crate) fn unused(why: &str) -> Error {
    Error::unavailable(DatabaseReason::StandbyUnused, why)
}

impl Standbys {
    pub(crate) fn new(database: Arc<Database>, connections: usize) -> Self {
        Self { pool: Pool::new(database, connections), progress: Mutex::default() }
    }

    fn staleness_max(&self) -> Duration {
        self.pool.database.settings.staleness_max
    }

    fn progress(&self) -> MutexGuard<'_, Progress> {
        self.progress.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn close(&self) {
        self.pool.database.close();
        self.pool.close();
    }

    pub(crate) fn state(&self) -> Copies {
        if let Some(away) = self.pool.database.away() {
            return Copies::Unused(away);
        }
        match self.progress().synced {
            Some((_, synced)) if synced.elapsed() <= self.staleness_max() => {
                Copies::Behind(synced.elapsed())
            }
            Some((_, synced)) => {
                let seconds = synced.elapsed().as_secs();
                Copies::Unused(unused(&format!("the standby is {seconds} s behind")))
            }
            None => Copies::Unused(unused("how far the standby is behind is not known yet")),
        }
    }

    /// A connection to the standby, if it is known not to be too far behind.
    pub(crate) async fn lease(&self) -> Result<Lease> {
        if let Copies::Unused(why) = self.state() {
            return Err(why);
        }
        let lease = self.pool.lease().await?;
        let synced = self.progress().synced;
        match synced {
            Some((host, synced))
                if host == lease.session().host && synced.elapsed() <= self.staleness_max() =>
            {
                Ok(lease)
            }
            _ => Err(unused("another standby was chosen just now")),
        }
    }

    /// Asks the standby how far it has come.
    async fn look(&self) -> Result<()> {
        let lease = self.pool.lease().await?;
        let asked = async {
            let session = lease.session();
            let [replayed] = session.prepared([Sql::Replayed]).await?;
            let row = session.client.query_one(&replayed, &[]).await?;
            Ok::<_, Fault>((row.try_get::<_, bool>(0)?, row.try_get::<_, i64>(1)?))
        };
        let (is_standby, position) = lease.run(ANSWER_TIME_MAX, asked).await?;
        let mut progress = self.progress();
        progress.replayed(lease.session().host, u64::try_from(position).unwrap_or(0));
        let is_late = match (is_standby, progress.synced) {
            // It was promoted.
            (false, _) => true,
            (true, Some((_, synced))) => synced.elapsed() > self.staleness_max(),
            (true, None) => false,
        };
        let is_time = progress.chosen.is_none_or(|it| it.elapsed() > STANDBY_CHOICE_INTERVAL);
        if is_late && is_time {
            progress.chosen = Some(Instant::now());
            drop(progress);
            self.pool.database.suspect();
        }
        Ok(())
    }
}

/// Compares positions for as long as the store is in use.
pub(crate) async fn watch(store: Weak<Shared>) {
    while let Some(shared) = store.upgrade() {
        if shared.database.is_closed() {
            return;
        }
        if let Some(standbys) = shared.standbys() {
            // What cannot be asked is told by its own state, and asked again.
            if let Ok((timeline, asked, position)) = written(&shared).await {
                standbys.progress().wrote(timeline, asked, position);
            }
            let _ = standbys.look().await;
        }
        drop(shared);
        sleep(STANDBY_LOOK_INTERVAL).await;
    }
}

/// How far the log of the primary reaches.
async fn written(shared: &Shared) -> Result<(u32, Instant, u64)> {
    let lease = shared.reads.lease().await?;
    let begun = Instant::now();
    let asked = async {
        let session = lease.session();
        let [written] = session.prepared([Sql::Written]).await?;
        Ok::<_, Fault>(session.client.query_one(&written, &[]).await?.try_get::<_, i64>(0)?)
    };
    let position = lease.run(ANSWER_TIME_MAX, asked).await?;
    Ok((lease.session().life.timeline, begun, u64::try_from(position).unwrap_or(0)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_standby_shows_the_last_moment_whose_position_it_has_passed() {
        let now = Instant::now();
        let mut progress = Progress::default();
        progress.wrote(1, now, 100);
        progress.replayed(1, 99);
        assert_eq!(progress.synced, None);
        progress.wrote(1, now + STANDBY_LOOK_INTERVAL, 200);
        progress.replayed(1, 150);
        assert_eq!(progress.synced, Some((1, now)));
        progress.wrote(1, now + 2 * STANDBY_LOOK_INTERVAL, 200);
        progress.replayed(1, 200);
        assert_eq!(progress.synced, Some((1, now + 2 * STANDBY_LOOK_INTERVAL)));
    }

    #[test]
    fn positions_of_another_standby_and_of_another_timeline_do_not_count() {
        let now = Instant::now();
        let mut progress = Progress::default();
        progress.wrote(1, now, 100);
        progress.replayed(1, 100);
        progress.replayed(2, 90);
        assert_eq!(progress.synced, None, "the other one may have come less far");
        progress.wrote(1, now, 200);
        progress.wrote(2, now, 300);
        progress.replayed(2, 250);
        assert_eq!(progress.synced, None);
    }

    #[test]
    fn positions_that_a_standby_does_not_come_to_are_bounded() {
        let mut progress = Progress::default();
        for position in 0..10_000 {
            progress.wrote(1, Instant::now(), position + 1);
        }
        assert_eq!(progress.marks.len(), STANDBY_MARKS_MAX);
    }
}
