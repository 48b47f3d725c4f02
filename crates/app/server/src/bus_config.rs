//! Entities of the bus that a file of the operator names, made at start.

use lazuli_azure::auth::Accounts;
use lazuli_bus_shape::{Bus, BusSettings};

use crate::accounts::PUBLISHED_NAME;
use crate::core::Core;
use crate::failure::{Failure, Result};
use crate::settings::Settings;

/// Makes what the setting `servicebus-config` names and is not there yet: in the account of development, or else in the
/// first account.
pub(crate) async fn configure(settings: &Settings, core: &Core, accounts: &Accounts) -> Result<()> {
    let Some(path) = &settings.servicebus_config else { return Ok(()) };
    let failed = |why: String| {
        let message = format!("servicebus-config {} cannot be used: {why}", path.display());
        Failure::new("servicebus-config", message)
    };
    let text = std::fs::read_to_string(path).map_err(|error| failed(error.to_string()))?;
    let names = accounts.names();
    let published = names.iter().find(|name| *name == PUBLISHED_NAME);
    let namespace = published.or(names.first());
    let namespace = namespace.ok_or_else(|| failed("there is no account".to_owned()))?;
    let bus = Bus::new(core.engine.clone(), lazuli_bus::reader(), BusSettings::default());
    let made = lazuli_bus::configure(&bus, namespace, &text).await.map_err(failed)?;
    tracing::info!(made, namespace, "made the entities of servicebus-config");
    Ok(())
}
