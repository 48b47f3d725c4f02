//! Checks the rules on what all workers were answered, and on what was left at the end. A request took effect at some time
//! between its sending and its answer, so a rule is broken only if it is broken for every such time.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::time::Instant;

use lazuli_trial::Result;

use super::{Event, FROM, How, ONCE, SESSIONS, TO};

const DEAD_LETTERS: &str = "$DeadLetterQueue";

/// What rounding to milliseconds may cost.
const SLACK_MS: u64 = 5;

/// Somebody got a message.
#[derive(Debug)]
struct Taking {
    hold: u64,
    until_ms: u64,
    at: Instant,
    at_ms: u64,
}

/// Somebody said what becomes of a message.
#[derive(Debug)]
struct Settling {
    hold: u64,
    how: How,
    sent: Instant,
    answered: bool,
}

/// All that is known of one message.
#[derive(Debug, Default)]
struct Story {
    queue: &'static str,
    session: Option<(String, u64)>,
    sent: bool,
    /// Whether the send was answered.
    is_taken: bool,
    takings: Vec<Taking>,
    settlings: Vec<Settling>,
    /// Whether transactions that keep it were answered, in the order in which they were discharged.
    moves: Vec<(bool, bool)>,
    /// The sequence numbers under which it was seen.
    numbers: BTreeSet<i64>,
    remained: Vec<String>,
}

/// One worker had a session.
#[derive(Debug)]
struct Holding {
    hold: u64,
    until_ms: u64,
    from: Instant,
    to: Option<Instant>,
}

#[derive(Default)]
pub(super) struct History {
    stories: BTreeMap<(&'static str, String), Story>,
    holdings: BTreeMap<String, Vec<Holding>>,
    /// By hold: the session.
    sessions: BTreeMap<u64, String>,
    checked: Counts,
}

#[derive(Default)]
struct Counts {
    sent: usize,
    taken: usize,
    completed: usize,
    dead: usize,
    moved: usize,
    once: usize,
    holds: usize,
}

/// The queue of a place: dead letters belong to the queue that they come from.
fn queue_of(place: &str) -> Result<&'static str> {
    let all = [super::QUEUES[0], super::QUEUES[1], ONCE, FROM, TO];
    let name = place.split('/').next().unwrap_or_default();
    all.into_iter().find(|queue| *queue == name).ok_or(format!("no queue is named {name}"))
}

impl History {
    fn story(&mut self, queue: &'static str, tag: &str) -> &mut Story {
        // What moves from one queue to the other is one message.
        let named = if queue == TO { FROM } else { queue };
        let story = self.stories.entry((named, tag.to_owned())).or_default();
        story.queue = named;
        story
    }

    pub(super) fn note(&mut self, event: Event) -> Result {
        match event {
            Event::Sent { queue, tag, session, answered } => {
                let story = self.story(queue, &tag);
                story.sent = true;
                story.session = session;
                story.is_taken |= answered;
            }
            Event::Held { session, hold, until_ms, at } => {
                self.sessions.insert(hold, session.clone());
                let holding = Holding { hold, until_ms, from: at, to: None };
                self.holdings.entry(session).or_default().push(holding);
            }
            Event::Left { hold, at } => {
                let session = self.sessions.get(&hold).cloned().unwrap_or_default();
                let all = self.holdings.entry(session).or_default();
                all.iter_mut().filter(|one| one.hold == hold).for_each(|one| one.to = Some(at));
            }
            Event::Received { queue, tag, number, hold, until_ms, at, at_ms } => {
                let story = self.story(queue, &tag);
                story.numbers.insert(number);
                story.takings.push(Taking { hold, until_ms, at, at_ms });
            }
            Event::Settled { queue, tag, hold, how, sent, answered } => {
                let settling = Settling { hold, how, sent, answered };
                self.story(queue, &tag).settlings.push(settling);
            }
            Event::Moved { tag, keeps, answered } => {
                self.story(FROM, &tag).moves.push((keeps, answered));
            }
            Event::Remained { place, tag, number } => {
                let story = self.story(queue_of(&place)?, &tag);
                // Dead letters, and what was moved, have numbers of their own.
                if !place.starts_with(TO) && !place.ends_with(DEAD_LETTERS) {
                    story.numbers.insert(number);
                }
                story.remained.push(place);
            }
        }
        Ok(())
    }

    /// Checks everything, once all queues are empty.
    pub(super) fn check(&mut self) -> Result {
        let mut counts = Counts { holds: self.sessions.len(), ..Counts::default() };
        for ((queue, tag), story) in &mut self.stories {
            story.takings.sort_by_key(|taking| taking.at);
            let broken = |rule: &str| Err(format!("{queue} {tag}: {rule}\n{story:#?}"));
            if !story.sent {
                return broken("it was never sent");
            }
            story.check_locks().or_else(broken)?;
            match *queue {
                ONCE => story.check_once(),
                FROM => story.check_moved(),
                _ => story.check_kept(),
            }
            .or_else(broken)?;
            counts.add(story);
        }
        self.check_holders()?;
        self.check_order()?;
        self.checked = counts;
        Ok(())
    }

    /// No two workers have one session at the same time.
    fn check_holders(&mut self) -> Result {
        for (session, holdings) in &mut self.holdings {
            holdings.sort_by_key(|holding| holding.from);
            for pair in holdings.windows(2) {
                let (first, second) = (&pair[0], &pair[1]);
                let is_left = first.to.is_some_and(|left| left <= second.from);
                // What the clock says when the second one began, by its own lock.
                let began_ms = second.until_ms.saturating_sub(super::LOCK_MS);
                if !is_left && first.until_ms > began_ms + SLACK_MS {
                    return Err(format!("session {session} had two holders: {pair:#?}"));
                }
            }
        }
        Ok(())
    }

    /// Nothing of a session is delivered before what was sent in front of it has been worked off, or is held beside it.
    fn check_order(&self) -> Result {
        let mut sessions: BTreeMap<&str, BTreeMap<u64, &Story>> = BTreeMap::new();
        for story in self.stories.values().filter(|story| story.queue == SESSIONS) {
            let Some((session, number)) = &story.session else { continue };
            sessions.entry(session).or_default().insert(*number, story);
        }
        for (session, stories) in &sessions {
            for (number, story) in stories {
                for taking in &story.takings {
                    let before = stories.range(..number).map(|(number, story)| (number, *story));
                    let early = before.filter(|(_, story)| story.is_taken);
                    if let Some((skipped, _)) =
                        early.into_iter().find(|(_, story)| !story.is_past(taking))
                    {
                        return Err(format!(
                            "session {session}: {number} came before {skipped}\n{:#?}\n{:#?}",
                            stories[skipped], story
                        ));
                    }
                }
            }
        }
        Ok(())
    }
}

impl Story {
    fn is_settled(&self, how: How, answered: bool) -> bool {
        self.settlings.iter().any(|one| one.how == how && one.answered == answered)
    }

    /// Whether it had been worked off, or was held by the same holder, when another one came.
    fn is_past(&self, other: &Taking) -> bool {
        let done = |one: &Settling| one.how != How::GivenBack && one.sent <= other.at;
        if self.settlings.iter().any(done) {
            return true;
        }
        let here = |one: &&Taking| one.hold == other.hold && one.at <= other.at;
        let Some(taken) = self.takings.iter().rfind(here) else { return false };
        let given_back =
            |one: &Settling| one.hold == other.hold && one.sent >= taken.at && one.sent < other.at;
        !self.settlings.iter().any(given_back)
    }

    /// No two receivers hold it at the same time.
    fn check_locks(&self) -> std::result::Result<(), &'static str> {
        for pair in self.takings.windows(2) {
            let (first, second) = (&pair[0], &pair[1]);
            let given_up = |one: &Settling| one.sent >= first.at && one.sent <= second.at;
            // Messages of a session are held for as long as the session, which is looked at elsewhere.
            let is_of_session = self.session.is_some();
            // Transactions settle too; one that was given up leaves the lock as it is.
            let is_moved = !self.moves.is_empty();
            let is_live = first.until_ms > second.at_ms + SLACK_MS;
            if is_live && !is_of_session && !is_moved && !self.settlings.iter().any(given_up) {
                return Err("two receivers held it at the same time");
            }
        }
        Ok(())
    }

    /// A message that was sent is there until somebody has worked it off; dead letters are there at the end.
    fn check_kept(&self) -> std::result::Result<(), &'static str> {
        let dead = self.remained.iter().filter(|place| place.ends_with(DEAD_LETTERS)).count();
        let total = self.remained.len();
        let is_of_session = self.session.is_some();
        if total > 1 {
            return Err("it is there more than once");
        }
        if self.numbers.len() > 1 {
            return Err("it was stored more than once");
        }
        let (completed, dead_lettered) =
            (self.is_settled(How::Completed, true), self.is_settled(How::DeadLettered, true));
        if completed && total > 0 {
            return Err("it was completed, and is there again");
        }
        if completed && dead_lettered {
            return Err("it was completed and dead-lettered");
        }
        if dead_lettered && dead != 1 {
            return Err("a dead letter is lost");
        }
        let in_doubt = self.is_settled(How::Completed, false);
        if self.is_taken && !completed && !in_doubt && total == 0 {
            return Err("it is lost");
        }
        if dead == 1 && !dead_lettered && !self.is_settled(How::DeadLettered, false) {
            return Err("it is a dead letter, and nobody said so");
        }
        if is_of_session && total > 0 {
            return Err("a session was not worked off");
        }
        Ok(())
    }

    /// A message with an id is stored once, however often it is sent.
    fn check_once(&self) -> std::result::Result<(), &'static str> {
        if self.numbers.len() > 1 {
            return Err("its id was taken more than once");
        }
        let completed = self.settlings.iter().any(|one| one.how == How::Completed);
        if self.is_taken && !completed && self.remained.is_empty() {
            return Err("it is lost");
        }
        match self.is_settled(How::Completed, true) && !self.remained.is_empty() {
            true => Err("it was completed, and is there again"),
            false => Ok(()),
        }
    }

    /// A message that transactions move is in one of both queues, once.
    fn check_moved(&self) -> std::result::Result<(), &'static str> {
        let arrived = self.remained.iter().filter(|place| *place == TO).count();
        let total = self.remained.len();
        if total > 1 {
            return Err("a transaction put it into the one queue and left it in the other");
        }
        if self.is_taken && total == 0 {
            return Err("a transaction lost it");
        }
        let kept = self.moves.contains(&(true, true));
        let in_doubt = self.moves.contains(&(true, false));
        match (kept, arrived) {
            (true, 0) => Err("a transaction was answered, and undone"),
            (false, 1) if !in_doubt => Err("no transaction that moved it was kept"),
            _ => Ok(()),
        }
    }
}

impl Counts {
    fn add(&mut self, story: &Story) {
        self.sent += usize::from(story.is_taken);
        self.taken += story.takings.len();
        self.completed += usize::from(story.is_settled(How::Completed, true));
        self.dead += usize::from(story.is_settled(How::DeadLettered, true));
        self.moved += usize::from(story.moves.contains(&(true, true)));
        self.once += usize::from(story.queue == ONCE && story.is_taken);
    }
}

impl fmt::Display for History {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Counts { sent, taken, completed, dead, moved, once, holds } = self.checked;
        writeln!(f, "{sent} messages were sent and {taken} times received, {completed} completed")?;
        writeln!(f, "{dead} dead letters, {moved} moved in transactions, {once} ids sent twice")?;
        write!(f, "{holds} times a session was held; none lost, doubled, torn or out of order")
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn sent(history: &mut History, queue: &'static str, tag: &str) {
        let (tag, answered) = (tag.to_owned(), true);
        history.note(Event::Sent { queue, tag, session: None, answered }).unwrap();
    }

    fn remained(history: &mut History, place: &str, tag: &str, number: i64) {
        let (place, tag) = (place.to_owned(), tag.to_owned());
        history.note(Event::Remained { place, tag, number }).unwrap();
    }

    #[test]
    fn what_is_lost_doubled_or_torn_is_found() {
        let queue = super::super::QUEUES[0];
        let mut lost = History::default();
        sent(&mut lost, queue, "a");
        assert!(lost.check().unwrap_err().contains("it is lost"));
        let mut doubled = History::default();
        sent(&mut doubled, queue, "a");
        remained(&mut doubled, queue, "a", 1);
        remained(&mut doubled, queue, "a", 2);
        assert!(doubled.check().unwrap_err().contains("more than once"));
        let mut torn = History::default();
        sent(&mut torn, FROM, "a");
        remained(&mut torn, FROM, "a", 1);
        remained(&mut torn, TO, "a", 1);
        assert!(torn.check().unwrap_err().contains("left it in the other"));
        let mut repeated = History::default();
        sent(&mut repeated, ONCE, "a");
        remained(&mut repeated, ONCE, "a", 1);
        remained(&mut repeated, ONCE, "a", 2);
        assert!(repeated.check().unwrap_err().contains("more than once"));
        let mut good = History::default();
        sent(&mut good, queue, "a");
        remained(&mut good, queue, "a", 1);
        good.check().unwrap();
    }

    #[test]
    fn two_holders_and_a_changed_order_are_found() {
        let queue = super::super::QUEUES[0];
        let mut two = History::default();
        sent(&mut two, queue, "a");
        let now = Instant::now();
        for (nth, until_ms) in [(0, 1_000), (1, 2_000)] {
            let (tag, at) = ("a".to_owned(), now + Duration::from_millis(nth));
            let taken =
                Event::Received { queue, tag, number: 1, hold: 0, until_ms, at, at_ms: nth };
            two.note(taken).unwrap();
        }
        remained(&mut two, queue, "a", 1);
        assert!(two.check().unwrap_err().contains("two receivers"));
        let mut order = History::default();
        for number in [0, 1] {
            let (tag, session) = (format!("s/{number}"), Some(("s".to_owned(), number)));
            order.note(Event::Sent { queue: SESSIONS, tag, session, answered: true }).unwrap();
        }
        let (tag, queue) = ("s/1".to_owned(), SESSIONS);
        let taken =
            Event::Received { queue, tag, number: 2, hold: 7, until_ms: 9, at: now, at_ms: 1 };
        order.note(taken).unwrap();
        assert!(order.check_order().unwrap_err().contains("1 came before 0"));
    }
}
