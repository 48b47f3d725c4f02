//! Which account of which service a command talks to, as it is typed.

use clap::Args as ClapArgs;

use super::Target;

/// The most connections of one command.
pub(crate) const PARALLEL_MAX: u64 = 64;

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
    pub(crate) endpoint: Option<String>,
    /// The account [default: the running server's first one, or the one that the endpoint names]
    #[arg(long, value_name = "NAME", conflicts_with = "connection")]
    pub(crate) account: Option<String>,
    /// The environment variable that holds a connection string, such as AZURE_STORAGE_CONNECTION_STRING
    #[arg(long, value_name = "VARIABLE")]
    pub(crate) connection: Option<String>,
    #[command(flatten)]
    pub(crate) target: Target,
}
