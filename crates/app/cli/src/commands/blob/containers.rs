//! `lazuli blob create|delete`: containers.

use serde_json::json;

use super::address::container;
use super::find;
use crate::args::service::Service;
use crate::commands::remote::session::{Ask, Refusal, Session};
use crate::failure::Result;
use crate::output;

const RESOURCE: &str = "restype=container";

pub(super) fn create(name: &str, service: &Service) -> Result<()> {
    let name = container(name)?;
    let mut session = Session::new(find(service)?)?;
    let path = format!("/{name}");
    session.expect(Ask { query: RESOURCE, ..Ask::new("PUT", &path) })?;
    output::changed(service.target.json, &json!({ "container": name }), || {
        format!("created container {name}")
    });
    Ok(())
}

/// Creates a container unless it is there.
pub(in crate::commands) fn ensure(session: &mut Session, name: &str) -> Result<()> {
    let path = format!("/{name}");
    let answer = session.ask(Ask { query: RESOURCE, ..Ask::new("PUT", &path) })?.answer;
    let refusal = Refusal::of(&answer);
    match answer.status {
        200..=299 => Ok(()),
        409 if refusal.code == "ContainerAlreadyExists" => Ok(()),
        _ => Err(refusal.failure()),
    }
}

pub(super) fn delete(name: &str, service: &Service) -> Result<()> {
    let name = container(name)?;
    let mut session = Session::new(find(service)?)?;
    let path = format!("/{name}");
    session.expect(Ask { query: RESOURCE, ..Ask::new("DELETE", &path) })?;
    output::changed(service.target.json, &json!({ "container": name }), || {
        format!("deleted container {name}")
    });
    Ok(())
}
