//! The transaction of a session: BEGIN is held back until a statement says which shard it is for.

use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::BytesMut;
use lazuli_pg::TxStatus;
use lazuli_pg::client::write_query;

use crate::error::SqlError;
use crate::session::Settings;
use crate::shard::Lease;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Mode {
    /// Every statement is for itself.
    #[default]
    Auto,
    /// The client has said BEGIN.
    Explicit,
    /// Several statements in one Query are one transaction.
    Implicit,
}

#[derive(Default)]
pub(crate) struct Transaction {
    mode: Mode,
    /// What the client wrote behind BEGIN.
    modes: String,
    /// What a shard that joins has to be told first: savepoints and SET LOCAL.
    pub(crate) replay: Vec<String>,
    /// Sessions on shards, by the shard's number.
    pub(crate) leases: BTreeMap<u32, Lease>,
    is_failed: bool,
    /// Whether it may use several shards.
    pub(crate) is_two_phase: bool,
    /// The settings and the search path from before it, which a rollback brings back.
    pub(crate) saved: Option<(Arc<Settings>, Vec<String>)>,
}

impl Transaction {
    pub(crate) fn is_idle(&self) -> bool {
        self.mode == Mode::Auto && self.leases.is_empty()
    }

    pub(crate) fn is_auto(&self) -> bool {
        self.mode == Mode::Auto
    }

    pub(crate) fn is_explicit(&self) -> bool {
        self.mode == Mode::Explicit
    }

    pub(crate) fn is_failed(&self) -> bool {
        self.is_failed
    }

    pub(crate) fn status(&self) -> TxStatus {
        match (self.mode, self.is_failed) {
            (Mode::Explicit, true) => TxStatus::Failed,
            (Mode::Explicit, false) => TxStatus::Open,
            (Mode::Auto | Mode::Implicit, _) => TxStatus::Idle,
        }
    }

    pub(crate) fn fail(&mut self) {
        self.is_failed = self.mode != Mode::Auto;
    }

    /// A savepoint was gone back to.
    pub(crate) fn recover(&mut self) {
        self.is_failed = false;
    }

    pub(crate) fn begin(&mut self, modes: String, is_two_phase: bool) {
        self.mode = Mode::Explicit;
        self.modes = modes;
        self.is_two_phase = is_two_phase;
    }

    pub(crate) fn begin_implicit(&mut self, is_two_phase: bool) {
        self.mode = Mode::Implicit;
        self.modes.clear();
        self.is_two_phase = is_two_phase;
    }

    /// It is over; the sessions on shards are handed out, to be ended.
    pub(crate) fn end(&mut self) -> BTreeMap<u32, Lease> {
        self.mode = Mode::Auto;
        self.is_failed = false;
        self.modes.clear();
        self.replay.clear();
        std::mem::take(&mut self.leases)
    }

    /// Whether all its statements see one state of the rows, which several shards cannot give.
    pub(crate) fn is_snapshot(&self) -> bool {
        let said = |text: &str| {
            let text = text.to_uppercase();
            text.contains("REPEATABLE") || text.contains("SERIALIZABLE")
        };
        said(&self.modes) || self.replay.iter().any(|text| said(text))
    }

    /// Whether another shard may join.
    pub(crate) fn may_join(&self, name: &str) -> Result<(), SqlError> {
        if self.leases.is_empty() || self.is_two_phase {
            return Ok(());
        }
        let what = match self.mode {
            Mode::Auto => "statements between two Syncs are one transaction, which",
            Mode::Explicit | Mode::Implicit => "this transaction",
        };
        Err(SqlError::refused(format!("{what} is on another shard already and cannot go on on shard {name}"))
            .detail("A transaction stays on one shard unless two-phase commit is asked for.")
            .hint("SET lazuli.transaction = 'two-phase' before it begins, or use a transaction for each key."))
    }

    /// Appends what begins the transaction on a shard that joins.
    pub(crate) fn begin_on(&self, lease: &mut Lease, out: &mut BytesMut) {
        if self.mode == Mode::Auto {
            return;
        }
        write_query(out, &format!("BEGIN {}", self.modes));
        lease.setup += 1;
        for statement in &self.replay {
            write_query(out, statement);
            lease.setup += 1;
        }
    }
}
