//! Workers that take messages from one queue and put them into another one, each in a transaction.

use std::net::SocketAddr;

use lazuli_amqp::performative::RECEIVER;
use lazuli_amqp::{DeliveryState, Map, Terminus};
use lazuli_trial::{Result, alive};

use super::workers::{Worker, message, until_killed};
use super::{Event, FROM, TO};

pub(super) fn work(address: SocketAddr, round: u64, worker: usize) -> Result<Vec<Event>> {
    until_killed(address, round, worker, |worker| {
        let sender = alive!(worker.bus.sender(Terminus::target(FROM)));
        let target = alive!(worker.bus.sender(Terminus::target(TO)));
        let coordinator = alive!(worker.bus.sender(Terminus::coordinator()));
        let source = Terminus::source(FROM);
        let link = alive!(worker.bus.receiver(source, false, Map::default()));
        let mut receiver = link.map_err(|condition| format!("refused: {condition}"))?;
        loop {
            let tag = worker.tag();
            alive!(worker.send(sender, FROM, &tag));
            for delivered in alive!(worker.receive(&mut receiver, FROM, 0)) {
                let transaction = alive!(worker.bus.declare(coordinator));
                let within = |outcome: Option<DeliveryState>| DeliveryState::Transactional {
                    transaction: transaction.clone(),
                    outcome: outcome.map(Box::new),
                };
                let payload = message(&delivered.text, None, None);
                let id = worker.bus.put(target, &payload, 0, Some(within(None)));
                alive!(worker.bus.said(id, RECEIVER));
                let done = within(Some(DeliveryState::Accepted));
                let settled = alive!(worker.bus.settle(delivered.id, done));
                expect(&settled)?;
                let keeps = worker.random.below(5) > 0;
                alive!(end(worker, coordinator, &transaction, &delivered.text, keeps));
            }
        }
    })
}

/// Ends a transaction. One whose lock is over by then does nothing.
fn end(
    worker: &mut Worker,
    coordinator: u32,
    transaction: &bytes::Bytes,
    tag: &str,
    keeps: bool,
) -> Result<Option<()>> {
    let answer = worker.bus.discharge(coordinator, transaction, !keeps)?;
    let keeps = match &answer {
        Some(DeliveryState::Rejected(Some(error))) if error.condition.0.ends_with("lock-lost") => {
            false
        }
        Some(DeliveryState::Accepted) | None => keeps,
        Some(other) => return Err(format!("a discharge was answered with {other:?}")),
    };
    let answered = answer.is_some();
    worker.events.push(Event::Moved { tag: tag.to_owned(), keeps, answered });
    Ok(answered.then_some(()))
}

fn expect(settled: &DeliveryState) -> Result {
    match settled {
        DeliveryState::Transactional { .. } => Ok(()),
        other => Err(format!("a settlement in a transaction was answered with {other:?}")),
    }
}
