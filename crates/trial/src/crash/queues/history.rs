//! Checks the rules on the answers that all workers got. A request took effect at some time between its sending and its
//! answer, so a rule is broken only if it is broken for every such time. The dequeue count tells whether a receive that
//! got no answer took the message in between.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::time::{Duration, Instant};

use lazuli_trial::Result;
use lazuli_trial::queues::Received;

use super::consumers::{Event, Span, tag_of};

/// What rounding to milliseconds may cost.
const SLACK: Duration = Duration::from_millis(5);

/// One worker holds a message for a time.
#[derive(Clone, Copy, Debug)]
struct Hold {
    /// When it was received.
    taken: Span,
    /// When it was received or last changed: from then on it is hidden.
    span: Span,
    hidden: Duration,
    /// An update by the holder got no answer: it may be visible at any time.
    is_in_doubt: bool,
}

impl Hold {
    fn new(span: Span, hidden: Duration) -> Self {
        Self { taken: span, span, hidden, is_in_doubt: false }
    }

    fn ends_first(&self) -> Instant {
        self.span.sent + self.hidden
    }

    fn ends_last(&self) -> Instant {
        self.span.answered + self.hidden + SLACK
    }
}

#[derive(Debug, Default)]
struct MessageHistory {
    queue: &'static str,
    /// Whether a worker sent it.
    is_sent: bool,
    is_put: bool,
    lives: Option<Duration>,
    /// By the count of dequeues; that of the put is 0.
    holds: BTreeMap<u32, Hold>,
    /// The count of dequeues with which it was deleted.
    deleted: Option<u32>,
    may_be_deleted: bool,
}

impl MessageHistory {
    /// The first moment at which it may have expired.
    fn gone_first(&self) -> Option<Instant> {
        Some(self.holds.get(&0)?.span.sent + self.lives?)
    }

    /// The first moment at which it certainly has expired.
    fn gone_last(&self) -> Option<Instant> {
        Some(self.holds.get(&0)?.span.answered + self.lives? + SLACK)
    }
}

/// All that is known of all queues.
#[derive(Debug, Default)]
pub(super) struct History {
    messages: BTreeMap<String, MessageHistory>,
    /// Messages that were deleted, and never come again.
    ended: BTreeSet<String>,
    /// Receives that answered fewer messages than were asked for, by queue.
    shorts: BTreeMap<&'static str, Vec<Span>>,
    /// The messages of each answer since the last check, in its order, with their counts of dequeues.
    answers: Vec<Vec<(String, u32)>>,
    refused: Vec<Refusal>,
    puts: usize,
    received: usize,
    deleted: usize,
    in_doubt: usize,
}

/// A worker was told that its receipt is stale, or that the message is gone.
#[derive(Debug)]
struct Refusal {
    tag: String,
    dequeues: u32,
    is_gone: bool,
    span: Span,
}

impl History {
    pub(super) fn note(&mut self, events: Vec<Event>) -> Result {
        events.into_iter().try_for_each(|event| self.note_one(event))
    }

    fn note_one(&mut self, event: Event) -> Result {
        match event {
            Event::Put { queue, tag, lives_seconds, span } => {
                self.in_doubt += usize::from(span.is_none());
                self.puts += usize::from(span.is_some());
                let known = self.messages.entry(tag).or_default();
                (known.queue, known.is_sent, known.is_put) = (queue, true, span.is_some());
                known.lives = lives_seconds.map(Duration::from_secs);
                if let Some(span) = span {
                    known.holds.insert(0, Hold::new(span, Duration::ZERO));
                }
            }
            Event::Received { queue, most, hidden_seconds, span, messages } => {
                if messages.len() < most {
                    self.shorts.entry(queue).or_default().push(span);
                }
                let hidden = Duration::from_secs(hidden_seconds);
                self.note_received(&messages, Hold::new(span, hidden))?;
            }
            Event::Updated { tag, dequeues, hidden_seconds, span } => {
                self.in_doubt += usize::from(span.is_none());
                let hold = self.hold(&tag, dequeues)?;
                match span {
                    Some(span) => {
                        (hold.span, hold.hidden) = (span, Duration::from_secs(hidden_seconds));
                    }
                    None => hold.is_in_doubt = true,
                }
            }
            Event::Deleted { tag, dequeues, span } => {
                self.in_doubt += usize::from(span.is_none());
                self.deleted += usize::from(span.is_some());
                self.hold(&tag, dequeues)?;
                let known = self.messages.entry(tag.clone()).or_default();
                match span {
                    None => known.may_be_deleted = true,
                    Some(_) if known.deleted.is_none() => known.deleted = Some(dequeues),
                    Some(_) => return Err(format!("{tag} was deleted twice")),
                }
            }
            Event::Refused { tag, dequeues, is_gone, span } => {
                self.refused.push(Refusal { tag, dequeues, is_gone, span });
            }
        }
        Ok(())
    }

    fn note_received(&mut self, messages: &[Received], hold: Hold) -> Result {
        let mut answer = Vec::new();
        for Received { text, dequeues, .. } in messages {
            self.received += 1;
            let tag = tag_of(text);
            if self.ended.contains(&tag) {
                return Err(format!("{tag} was delivered after its deletion"));
            }
            // The log of another worker may hold its put.
            let known = self.messages.entry(tag.clone()).or_default();
            if known.holds.insert(*dequeues, hold).is_some() {
                return Err(format!("{tag} was delivered twice as number {dequeues}"));
            }
            answer.push((tag, *dequeues));
        }
        self.answers.push(answer);
        Ok(())
    }

    fn hold(&mut self, tag: &str, dequeues: u32) -> Result<&mut Hold> {
        let known = self.messages.get_mut(tag);
        known.and_then(|it| it.holds.get_mut(&dequeues)).ok_or(format!("no worker held {tag}"))
    }

    /// What holds after each round, when all logs of it have been noted.
    pub(super) fn check(&mut self) -> Result {
        for (tag, known) in &self.messages {
            check_message(tag, known)?;
        }
        for answer in std::mem::take(&mut self.answers) {
            self.check_order(&answer)?;
        }
        for refusal in std::mem::take(&mut self.refused) {
            self.check_refusal(&refusal)?;
        }
        self.check_passed_over()?;
        let all = std::mem::take(&mut self.messages).into_iter();
        let (ended, live): (BTreeMap<_, _>, _) = all.partition(|(_, it)| it.deleted.is_some());
        self.messages = live;
        self.ended.extend(ended.into_keys());
        Ok(())
    }

    /// The messages of an answer are in the order in which they became visible.
    fn check_order(&self, answer: &[(String, u32)]) -> Result {
        let mut latest: Option<(Instant, &str)> = None;
        for (tag, dequeues) in answer {
            let before = self.messages[tag].holds.get(&dequeues.saturating_sub(1));
            let Some(before) = before.filter(|hold| !hold.is_in_doubt) else { continue };
            if let Some((first, other)) = latest
                && before.ends_last() < first
            {
                return Err(format!("{tag} became visible before {other} and came after it"));
            }
            if latest.is_none_or(|(latest, _)| before.ends_first() > latest) {
                latest = Some((before.ends_first(), tag));
            }
        }
        Ok(())
    }

    /// No worker lost a message that it certainly held at the time.
    fn check_refusal(&self, refusal: &Refusal) -> Result {
        let Refusal { tag, dequeues, is_gone, span } = refusal;
        let known = &self.messages[tag];
        let Some(hold) = known.holds.get(dequeues).filter(|hold| !hold.is_in_doubt) else {
            return Ok(());
        };
        let latest = span.answered + SLACK;
        let may_expire = known.lives.is_some();
        let may_be_gone = may_expire && known.gone_first().is_none_or(|end| end <= latest);
        if latest < hold.ends_first() && !(*is_gone && may_be_gone) {
            return Err(format!("{tag} was taken from its holder: {hold:?}, {refusal:?}"));
        }
        Ok(())
    }

    /// No receive that could have taken more has left out a message that was visible all the while.
    fn check_passed_over(&mut self) -> Result {
        for (queue, shorts) in &mut self.shorts {
            shorts.sort_unstable_by_key(|span| span.sent);
            // For each of them, the first answer of all that were sent then or later.
            let mut first_answers: Vec<Instant> = shorts.iter().map(|span| span.answered).collect();
            for at in (1..first_answers.len()).rev() {
                first_answers[at - 1] = first_answers[at - 1].min(first_answers[at]);
            }
            for (tag, known) in self.messages.iter().filter(|(_, known)| known.queue == *queue) {
                let pairs = known.holds.iter().zip(known.holds.iter().skip(1));
                for ((one, hold), (next, later)) in pairs {
                    if hold.is_in_doubt || *next != one + 1 {
                        continue;
                    }
                    let at = shorts.partition_point(|span| span.sent <= hold.ends_last());
                    if first_answers.get(at).is_some_and(|answered| *answered < later.taken.sent) {
                        return Err(format!(
                            "{tag} was visible and passed over: {hold:?}, {later:?}"
                        ));
                    }
                }
            }
        }
        Ok(())
    }

    /// Once the queues have been worked off, everything has come that had to.
    pub(super) fn check_nothing_lost(&self) -> Result {
        let is_lost =
            |known: &MessageHistory| known.is_put && !known.may_be_deleted && known.lives.is_none();
        match self.messages.iter().find(|(_, known)| is_lost(known)) {
            Some((tag, known)) => {
                Err(format!("LOST: {tag} was answered and never came: {known:?}"))
            }
            None => Ok(()),
        }
    }
}

/// No two workers held the message at the same time, and none received it after its deletion or its time to live.
fn check_message(tag: &str, known: &MessageHistory) -> Result {
    if !known.is_sent {
        return Err(format!("{tag} was delivered and no worker has put it"));
    }
    let holds: Vec<(&u32, &Hold)> = known.holds.iter().collect();
    for pair in holds.windows(2) {
        let ((_, one), (number, next)) = (pair[0], pair[1]);
        if !one.is_in_doubt && next.taken.answered + SLACK < one.ends_first() {
            return Err(format!(
                "{tag} was delivered as number {number} while held: {one:?}, {next:?}"
            ));
        }
    }
    let Some((last, hold)) = known.holds.last_key_value() else { return Ok(()) };
    if known.deleted.is_some_and(|deleted| *last > deleted) {
        return Err(format!("{tag} was delivered after its deletion"));
    }
    if *last > 0 && known.gone_last().is_some_and(|gone| hold.span.sent > gone) {
        return Err(format!("{tag} was delivered or changed after its time to live: {known:?}"));
    }
    Ok(())
}

impl fmt::Display for History {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "{} puts answered, {} deliveries, {} deletions, {} requests in doubt",
            self.puts, self.received, self.deleted, self.in_doubt
        )?;
        write!(f, "0 lost, 0 held by two, 0 after their time to live, 0 out of order")
    }
}
