//! Entities of the bus, and hubs, that files of the operator name, made at start.

use std::path::Path;

use lazuli_azure::auth::Accounts;

use crate::accounts::PUBLISHED_NAME;
use crate::core::Core;
use crate::failure::{Failure, Result};
use crate::settings::Settings;

/// Makes what the settings `servicebus-config` and `eventhubs-config` name and is not there yet: in the account of
/// development, or else in the first account.
pub(crate) async fn configure(settings: &Settings, core: &Core, accounts: &Accounts) -> Result<()> {
    let names = accounts.names();
    let published = names.iter().find(|name| *name == PUBLISHED_NAME);
    let namespace = published.or(names.first());
    if let Some(path) = &settings.servicebus_config {
        let (text, namespace) = read("servicebus-config", path, namespace)?;
        let made = lazuli_bus::configure(&core.bus, namespace, &text).await;
        let made = made.map_err(|why| failed("servicebus-config", path, &why))?;
        tracing::info!(made, namespace, "made the entities of servicebus-config");
    }
    if let Some(path) = &settings.eventhubs_config {
        let (text, namespace) = read("eventhubs-config", path, namespace)?;
        let made = lazuli_bus::configure_hubs(&core.logs, namespace, &text).await;
        let made = made.map_err(|why| failed("eventhubs-config", path, &why))?;
        tracing::info!(made, namespace, "made the hubs of eventhubs-config");
    }
    Ok(())
}

fn failed(setting: &'static str, path: &Path, why: &str) -> Failure {
    Failure::new(setting, format!("{setting} {} cannot be used: {why}", path.display()))
}

/// The file, and the namespace that it is for.
fn read<'n>(
    setting: &'static str,
    path: &Path,
    namespace: Option<&'n String>,
) -> Result<(String, &'n String)> {
    let text = std::fs::read_to_string(path);
    let text = text.map_err(|error| failed(setting, path, &error.to_string()))?;
    let none = || failed(setting, path, "there is no account");
    Ok((text, namespace.ok_or_else(none)?))
}
