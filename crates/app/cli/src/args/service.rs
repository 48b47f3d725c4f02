//! Which account of which service a command talks to, as it is typed.

use std::sync::Arc;

use clap::Args as ClapArgs;
use lazuli_console::{Failure, Result};
use lazuli_transfer::account::{Account, Protocol};

use super::Target;
use crate::client::{self, Client};

/// Where keys come from, at the end of a command's help.
macro_rules! keys_help {
    () => {
        "Keys are never flags. With --endpoint the key is AZURE_STORAGE_KEY of the environment, \
         or AZURE_STORAGE_SAS_TOKEN is used instead of one."
    };
}
pub(crate) use keys_help;

/// One account of a service that speaks the protocol of the command.
#[derive(Clone, Debug, ClapArgs)]
pub(crate) struct Service {
    /// An endpoint of the service, with its account if that is part of the path [default: the running server's]
    #[arg(long, value_name = "URL", conflicts_with = "connection")]
    endpoint: Option<String>,
    /// The account [default: the running server's first one, or the one that the endpoint names]
    #[arg(long, value_name = "NAME", conflicts_with = "connection")]
    account: Option<String>,
    /// The environment variable that holds a connection string, such as AZURE_STORAGE_CONNECTION_STRING
    #[arg(long, value_name = "VARIABLE")]
    connection: Option<String>,
    #[command(flatten)]
    pub(crate) target: Target,
}

/// Options of a command, and the account that it is for.
#[derive(Debug, ClapArgs)]
pub(crate) struct On<T: ClapArgs> {
    #[command(flatten)]
    pub(crate) options: T,
    #[command(flatten)]
    pub(crate) service: Service,
}

impl Service {
    pub(crate) fn tables(&self) -> Result<Arc<Account>> {
        self.find(Protocol::Tables)
    }

    pub(crate) fn blobs(&self) -> Result<Arc<Account>> {
        self.find(Protocol::Blobs)
    }

    pub(crate) fn queues(&self) -> Result<Arc<Account>> {
        self.find(Protocol::Queues)
    }

    pub(crate) fn documents(&self) -> Result<Arc<Account>> {
        self.find(Protocol::Documents)
    }

    fn find(&self, protocol: Protocol) -> Result<Arc<Account>> {
        let found = match (&self.connection, &self.endpoint) {
            (Some(variable), _) => Account::from_variable(protocol, variable),
            (None, Some(url)) => Account::at_endpoint(protocol, url, self.account.as_deref()),
            (None, None) => self.running(protocol),
        };
        found.map(Arc::new)
    }

    /// An account of the running server, which reports its endpoints and keys over the admin API.
    fn running(&self, protocol: Protocol) -> Result<Account> {
        let admin = Client::find(&self.target)?;
        let status = admin.get("/v1/status")?;
        let name = protocol.endpoint();
        let endpoint = status["endpoints"][name].as_str();
        let endpoint =
            endpoint.ok_or_else(|| Failure::failed(format!("the server does not serve {name}")))?;
        let listed = admin.get("/v1/accounts?keys=true")?;
        let mut accounts = listed["accounts"].as_array().into_iter().flatten();
        let asked = self.account.as_deref();
        let account = accounts.find(|one| asked.is_none_or(|name| one["name"] == name));
        let account = account.ok_or_else(|| {
            Failure::failed("the server has no such account")
                .hint("`lazuli account list` lists them")
        })?;
        let text = |field: &str| account[field].as_str().unwrap_or_default();
        let mut found = Account::with_key(protocol, endpoint, text("name"), text("key1"))?;
        let settings = client::settings(&self.target)?;
        found.certificate = client::own_certificate(&settings.data, settings.tls_files.as_ref());
        Ok(found)
    }
}
