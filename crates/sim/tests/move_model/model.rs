//! The model: its sizes, its variants, who may do what, and what must hold.

use std::fmt;

use super::explorer;
use super::state::{
    Coordinator, Data, KEYS, Kind, Reader, Reading, Row, RowState, Shard, Stage, State, Writer,
};

/// The protocol, or what somebody might make of it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Variant {
    Right,
    /// Writers check the epoch, and commit without looking again.
    NoDrain,
    /// Who takes a move over goes on with the job epoch it finds.
    NoJobEpochs,
    /// A new job epoch stops the late coordinator's operations, but not what it copies.
    CopiesWithoutJobEpoch,
    /// A new job epoch stops what the late coordinator copies, but not its operations.
    OperationsWithoutJobEpoch,
    /// Who takes a fence down goes on under the job epoch that it is told, which may be the new leader's.
    ReopeningTakesTheLead,
    /// A coordinator that gets no answer to a pass goes on without taking the move anew.
    UnansweredPass,
    /// The catalog commits while the source is still open.
    CommitBeforeFence,
    /// The same, and the target opens before the source has closed.
    MapSwitchedFirst,
    FinalSkipped,
    CancelAfterCommit,
    /// The source begins to write keys down, but keeps its epoch.
    RecordingWithoutEpoch,
    /// Writers get their LSN when they check, so they do not commit in the order of LSNs.
    NumberedAtCheck,
    /// A shard takes an operation as often as it is brought.
    TakenAgain,
    /// A move begins on a target that has not deleted what an earlier one left.
    BeginOverGarbage,
    /// Who ends a move deletes what was written down for it, without a guard.
    RecordsClearedLate,
    /// As safe as the protocol, but what gives the partition back to its writers needs the target too: a move begins on the
    /// source first, only who leads may reopen, a fenced move is taken as it is, and cancelling is one operation on both.
    BothShards,
    /// Readers check first, and take their snapshot then.
    ReaderChecksFirst,
}

/// What must not be.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Fault {
    /// Two shards let writers commit.
    TwoOwners,
    /// One shard lets readers in while another has the partition.
    TwoHolders,
    /// A shard that serves the partition, or will for sure, lacks what was answered.
    LostWrite,
    /// It has what was deleted, or never answered.
    Phantom,
    /// A reader was given something older than what had been answered before it asked.
    StaleRead,
    /// All is over, and catalog and shards disagree.
    MapsDiffer,
    /// All is over, and data lies where nobody will delete it.
    Leftover,
}

/// One thing that happens. Coordinators are named by their job epoch, 0 being one that leads nothing.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Step {
    Decides { coordinator: u8, kind: Kind },
    Meets { coordinator: u8, kind: Kind },
    Brings { coordinator: u8, kind: Kind, shard: u8 },
    Concludes { coordinator: u8, kind: Kind },
    Reads { coordinator: u8 },
    Copies { coordinator: u8 },
    Forgets { coordinator: u8 },
    GivesUpWaiting { coordinator: u8 },
    StrayPassLands { job: u8 },
    SomebodyDecides { kind: Kind },
    TargetGoes,
    SomebodyBrings { kind: Kind, shard: u8 },
    SomebodyConcludes { kind: Kind },
    GarbageShrinks { shard: u8 },
    GarbageIsGone { shard: u8 },
    MoveIsOver,
    RecordsAreCleared,
    WriterIsMoved { writer: u8 },
    WriterChecks { writer: u8 },
    WriterCommits { writer: u8 },
    WriterIsRefused { writer: u8 },
    ReaderIsMoved,
    ReaderTakesSnapshot,
    ReaderChecks,
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self, f)
    }
}

/// One write of a writer's script.
#[derive(Clone, Copy)]
pub(crate) struct Write {
    pub key: usize,
    /// 0 deletes.
    pub value: u8,
}

/// The protocol or a variant of it, and how far the exploration goes.
pub(crate) struct Model {
    pub variant: Variant,
    pub scripts: [&'static [Write]; 2],
    pub moves_max: u8,
    pub jobs_max: u8,
    pub reopens_max: u8,
    pub has_reader: bool,
    /// Whether coordinators take up operations that others began.
    pub helps: bool,
    /// Whether the target may go for good before the commit.
    pub target_goes: bool,
}

/// What the partition holds at the start.
const BEFORE: Data = [8, 9];

impl Model {
    pub(crate) fn guard_holds(&self, state: &State, job: u8, target: u8) -> bool {
        let arrival = state.shards[usize::from(target)].arrival;
        match self.variant {
            Variant::CopiesWithoutJobEpoch => arrival.job != 0 && arrival.job <= job,
            _ => arrival.job != 0 && arrival.job == job,
        }
    }

    pub(crate) fn is_settled(state: &State) -> bool {
        state.catalog.stage == Stage::NoMove
            && state.catalog.pending.number == 0
            && state.shards.iter().all(|shard| !shard.garbage)
    }

    /// What the shard that serves the partition has wrong.
    fn difference(data: Data, truth: Data) -> Option<Fault> {
        let wrong = (0..KEYS).find(|key| data[*key] != truth[*key])?;
        Some(if truth[wrong] == 0 { Fault::Phantom } else { Fault::LostWrite })
    }

    fn fault_at_rest(state: &State) -> Option<Fault> {
        let owner = usize::from(state.catalog.owner);
        let (held, other) = (state.shards[owner], state.shards[1 - owner]);
        let expected = Row { epoch: state.catalog.epoch, state: RowState::Online };
        if held.row != expected || other.row != Row::default() || other.arrival.job != 0 {
            return Some(Fault::MapsDiffer);
        }
        (other.data != Data::default()).then_some(Fault::Leftover)
    }
}

impl explorer::Model for Model {
    type State = State;
    type Step = Step;
    type Fault = Fault;

    fn start(&self) -> State {
        let row = Row { epoch: 1, state: RowState::Online };
        let held = Shard { row, data: BEFORE, ..Shard::default() };
        let writer = Writer { epoch: 1, ..Writer::default() };
        let mut state = State {
            shards: [held, Shard::default()],
            truth: BEFORE,
            writers: [writer; 2],
            coordinators: [Coordinator::default(); 2],
            ..State::default()
        };
        state.catalog.epoch = 1;
        if self.has_reader {
            state.reader = Reader { epoch: 1, ..Reader::default() };
        }
        self.normal(state)
    }

    fn steps(&self, state: &State, steps: &mut Vec<(Step, State)>) {
        self.coordinator_steps(state, steps);
        self.anybody_steps(state, steps);
        self.client_steps(state, steps);
        for (_, next) in steps.iter_mut() {
            *next = self.normal(*next);
        }
    }

    fn fault(&self, state: &State) -> Option<Fault> {
        let [one, other] = state.shards.map(|shard| shard.row);
        if one.is_open() && other.is_open() {
            return Some(Fault::TwoOwners);
        }
        if one.epoch != 0 && other.epoch != 0 {
            return Some(Fault::TwoHolders);
        }
        if state.reader.reading == Reading::Wrong {
            return Some(Fault::StaleRead);
        }
        let pending = state.catalog.pending;
        let will_serve = |shard: usize| {
            pending.number != 0
                && pending.kind == Kind::Commit
                && usize::from(1 - pending.source) == shard
        };
        let serving = (0..2).filter(|it| state.shards[*it].row.epoch != 0 || will_serve(*it));
        for shard in serving {
            let fault = Self::difference(state.shards[shard].data, state.truth);
            if fault.is_some() {
                return fault;
            }
        }
        if Self::is_settled(state) { Self::fault_at_rest(state) } else { None }
    }

    fn is_end(&self, state: &State) -> bool {
        let done = |(writer, script): (&Writer, &[Write])| usize::from(writer.done) == script.len();
        (Self::is_settled(state) || state.target_gone)
            && state.writers.iter().zip(self.scripts).all(done)
    }
}
