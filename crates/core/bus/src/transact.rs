//! Transactions of clients: sends and settlements on one shard, all or none.

use std::sync::Arc;

use lazuli_engine::{EngineReason, Error, Result, Transaction, Tx};

use crate::BusReason;
use crate::bus::Bus;
use crate::endpoint::Endpoint;
use crate::fragment::{Fragment, Place, Woken};
use crate::limits::TRANSACTION_OPERATIONS_MAX;
use crate::message::{NewMessage, Settlement, fragment_of};
use crate::send::check_message;
use crate::session::SessionLock;
use crate::settle::settle_one;
use crate::shared::Shared;

/// One step of a transaction.
#[derive(Clone, Debug)]
pub enum BusOperation {
    Send { to: Endpoint, message: NewMessage },
    Settle { from: Endpoint, session: Option<SessionLock>, settlement: Settlement },
}

struct Transact {
    shared: Arc<Shared>,
    /// With the fragment of each.
    operations: Vec<(Place, BusOperation)>,
    seed: u64,
}

impl Transaction for Transact {
    /// What each place's entity made possible.
    type Output = Vec<(Place, u32, Woken)>;

    async fn run(&self, tx: &mut Tx<'_>) -> Result<Self::Output> {
        let mut fragments: Vec<Fragment> = Vec::new();
        for (nth, (place, operation)) in self.operations.iter().enumerate() {
            let at = match fragments.iter().position(|it| it.place == *place) {
                Some(at) => at,
                None => {
                    fragments.push(Fragment::load(tx, place, &self.shared).await?);
                    fragments.len() - 1
                }
            };
            let fragment = &mut fragments[at];
            match operation {
                BusOperation::Send { message, .. } => {
                    let seed = self.seed.wrapping_add(nth as u64);
                    fragment.accept(tx, message, seed).await.map_err(|error| error.at(nth))?;
                }
                BusOperation::Settle { from, session, settlement } => {
                    let (line, session) = (from.0.line, session.as_ref());
                    let outcome = settle_one(fragment, tx, line, session, settlement).await?;
                    outcome.map_err(|error| error.at(nth))?;
                }
            }
        }
        let mut woken = Vec::new();
        for fragment in fragments {
            let (place, entity) = (fragment.place.clone(), fragment.config.entity.number);
            woken.push((place, entity, fragment.save(tx)?));
        }
        Ok(woken)
    }
}

impl Bus {
    /// All or none of these operations. What they touch must be on one shard; messages to partitioned entities need a key,
    /// and all of them the same. A refusal says by its position which operation it is about.
    pub async fn transact(&self, operations: Vec<BusOperation>) -> Result<()> {
        if operations.len() > TRANSACTION_OPERATIONS_MAX {
            let most = TRANSACTION_OPERATIONS_MAX;
            let message = format!("a transaction of more than {most} operations");
            return Err(Error::too_large(BusReason::QuotaExceeded, message));
        }
        if operations.is_empty() {
            return Ok(());
        }
        let mut placed = Vec::with_capacity(operations.len());
        let mut key: Option<String> = None;
        for operation in operations {
            let place = match &operation {
                BusOperation::Send { to, message } => {
                    to.check_sends()?;
                    check_message(message)?;
                    to.place(transaction_fragment(to, message, &mut key)?)?
                }
                BusOperation::Settle { from, settlement, .. } => {
                    from.place(fragment_of(settlement.token.sequence_number))?
                }
            };
            placed.push((place, operation));
        }
        let mut targets = Vec::new();
        for (place, _) in &placed {
            let target = (place.container, place.route.clone());
            if !targets.contains(&target) {
                targets.push(target);
            }
        }
        let seed = self.engine.env().random.next_u64();
        let transact = Transact { shared: self.shared.clone(), operations: placed, seed };
        let woken = self.engine.write_many(&targets, transact).await.map_err(|error| {
            if error.is(EngineReason::CrossShard) {
                let message = "the entities of the transaction are not on one shard";
                return Error::invalid(BusReason::TransactionSpans, message);
            }
            crate::bus::gone(error)
        })?;
        for (place, entity, woken) in woken {
            self.shared.fire(place.container, entity, woken);
        }
        Ok(())
    }
}

/// The fragment of a message within a transaction (M4).
fn transaction_fragment(
    to: &Endpoint,
    message: &NewMessage,
    key: &mut Option<String>,
) -> Result<u16> {
    if to.fragments() == 1 {
        return Ok(0);
    }
    let own = message.session_id.as_ref().or(message.partition_key.as_ref());
    let refused = |message: &str| Err(Error::invalid(BusReason::TransactionKey, message));
    let Some(own) = own else {
        return refused("a message of a transaction on a partitioned entity needs a partition key");
    };
    match key {
        Some(key) if key != own => {
            return refused("all messages of a transaction have the same partition key");
        }
        _ => *key = Some(own.clone()),
    }
    Ok(to.fragment_of(own))
}
