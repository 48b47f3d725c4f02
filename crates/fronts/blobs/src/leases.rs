//! Leases of blobs and containers.

use lazuli_engine::Lsn;
use lazuli_http::{Response, StatusCode};
use lazuli_shapes::blob::{Conditions, Lease, LeaseAction};

use crate::error::{Result, refused};
use crate::{Front, OnBlob, OnContainer, response};

pub(crate) async fn blob(
    on: &OnBlob<'_>,
    action: LeaseAction,
    conditions: &Conditions,
) -> Result<Response> {
    let action = on.front.identified(action);
    let done = on.front.blobs.lease(&on.address, action.clone(), conditions).await;
    let (record, left) = done.map_err(refused)?;
    Ok(answer(&action, record.changed, &record.lease, left))
}

pub(crate) async fn container(
    on: &OnContainer<'_>,
    action: LeaseAction,
    conditions: &Conditions,
) -> Result<Response> {
    let action = on.front.identified(action);
    let done = on.front.blobs.lease_container(&on.address, action.clone(), conditions).await;
    let (record, left) = done.map_err(refused)?;
    Ok(answer(&action, record.changed, &record.lease, left))
}

impl Front {
    /// Gives a lease an id if the client proposed none.
    fn identified(&self, action: LeaseAction) -> LeaseAction {
        match action {
            LeaseAction::Acquire { id, seconds } if id.is_empty() => {
                LeaseAction::Acquire { id: self.new_id(), seconds }
            }
            action => action,
        }
    }

    /// An id that nothing else has.
    pub(crate) fn new_id(&self) -> String {
        self.blobs.engine().env().ids.next_id().to_string()
    }
}

fn answer(action: &LeaseAction, version: Lsn, lease: &Lease, left: u32) -> Response {
    let status = match action {
        LeaseAction::Acquire { .. } => StatusCode::CREATED,
        LeaseAction::Renew { .. } | LeaseAction::Change { .. } | LeaseAction::Release { .. } => {
            StatusCode::OK
        }
        LeaseAction::Break { .. } => StatusCode::ACCEPTED,
    };
    let answer = response::changed(Response::new(status), (version, version.millis()));
    match (action, &lease.id) {
        (LeaseAction::Break { .. }, _) => answer.with("x-ms-lease-time", left.to_string()),
        (LeaseAction::Release { .. }, _) | (_, None) => answer,
        (_, Some(id)) => answer.with("x-ms-lease-id", id),
    }
}
