//! Transactions of one connection: what is done in one is gathered, and done when the client discharges it.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use bytes::Bytes;
use lazuli_amqp::transaction::Request;
use lazuli_amqp::{Attaching, Delivery, DeliveryState, Incoming, condition};
use lazuli_bus_shape::BusOperation;
use lazuli_net::Outcome;

use crate::error::{Fault, Result, from_core};
use crate::limits::{TRANSACTION_OPERATIONS_MAX, TRANSACTIONS_MAX};
use crate::peer::{Peer, requests};

#[derive(Default)]
pub(crate) struct Transactions {
    open: Mutex<HashMap<Bytes, Vec<BusOperation>>>,
    next: AtomicU64,
}

fn unknown() -> Fault {
    Fault::new(404, condition::UNKNOWN_TRANSACTION, "There is no such transaction.")
}

impl Transactions {
    fn declare(&self) -> Result<Bytes> {
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        if open.len() >= TRANSACTIONS_MAX {
            let text = "The connection has too many open transactions.";
            return Err(Fault::new(403, condition::RESOURCE_LIMIT, text));
        }
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        let name = Bytes::copy_from_slice(&number.to_be_bytes());
        open.insert(name.clone(), Vec::new());
        Ok(name)
    }

    /// Adds operations to a transaction; all of them or none.
    pub(crate) fn add(&self, transaction: &Bytes, operations: Vec<BusOperation>) -> Result<()> {
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        let gathered = open.get_mut(transaction).ok_or_else(unknown)?;
        if gathered.len() + operations.len() > TRANSACTION_OPERATIONS_MAX {
            let text =
                format!("A transaction has at most {TRANSACTION_OPERATIONS_MAX} operations.");
            return Err(Fault::new(403, condition::RESOURCE_LIMIT, text));
        }
        gathered.extend(operations);
        Ok(())
    }

    fn take(&self, transaction: &Bytes) -> Result<Vec<BusOperation>> {
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        open.remove(transaction).ok_or_else(unknown)
    }
}

/// Accepts a link that controls transactions. Those that are open when it ends are rolled back.
pub(crate) fn serve(peer: Arc<Peer>, attaching: Attaching) {
    let Some(link) = attaching.receive(requests()) else { return };
    tokio::spawn(control(peer, link));
}

async fn control(peer: Arc<Peer>, mut link: Incoming) {
    let mut declared = Vec::new();
    while let Some(delivery) = link.next().await {
        answer(&peer, delivery, &mut declared).await;
    }
    for transaction in declared {
        let _ = peer.transactions.take(&transaction);
    }
}

async fn answer(peer: &Peer, delivery: Delivery, declared: &mut Vec<Bytes>) {
    let began = Instant::now();
    let request = Request::read(&delivery.payload);
    let (name, result) = match request {
        Ok(Request::Declare) => {
            let result = peer.transactions.declare();
            declared.extend(result.iter().cloned());
            ("DeclareTransaction", result.map(DeliveryState::Declared))
        }
        Ok(Request::Discharge { transaction, fail }) => {
            declared.retain(|one| *one != transaction);
            ("DischargeTransaction", discharge(peer, &transaction, fail).await)
        }
        Err(error) => ("DeclareTransaction", Err(error.into())),
    };
    let outcome = result.as_ref().map_or_else(Fault::outcome, |_| Outcome::Ok);
    peer.front.metrics.observe(name, outcome, began.elapsed());
    delivery.settle(result.unwrap_or_else(|fault| DeliveryState::rejected(fault.into())));
}

async fn discharge(peer: &Peer, transaction: &Bytes, fail: bool) -> Result<DeliveryState> {
    let operations = peer.transactions.take(transaction)?;
    if !fail && !operations.is_empty() {
        peer.front.bus.transact(operations).await.map_err(from_core)?;
    }
    Ok(DeliveryState::Accepted)
}
