//! Which account of which service a command talks to, and its credential.
//!
//! A service is named by an endpoint or by a connection string. Their keys come from the environment alone: the flags of a
//! process are visible to every user of the machine.

use std::path::PathBuf;

use lazuli_azure::auth::Key;
use lazuli_console::{Failure, Result};
use lazuli_http::uri::percent_encode;

const KEY_VARIABLE: &str = "AZURE_STORAGE_KEY";
const DOCUMENTS_KEY_VARIABLE: &str = "AZURE_COSMOS_KEY";
const SAS_VARIABLE: &str = "AZURE_STORAGE_SAS_TOKEN";
/// The published account of development, which every emulator knows.
const DEVELOPMENT_ACCOUNT: &str = "devstoreaccount1";
const DEVELOPMENT_KEY: &str =
    "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw==";
/// Where connection strings without an endpoint lead to.
const SUFFIX_DEFAULT: &str = "core.windows.net";

/// The protocol that an account is used with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Protocol {
    Blobs,
    Queues,
    Tables,
    Documents,
}

impl Protocol {
    /// The name of the running server's endpoint.
    pub fn endpoint(self) -> &'static str {
        match self {
            Self::Blobs => "blobs",
            Self::Queues => "queues",
            Self::Tables => "tables",
            Self::Documents => "documents",
        }
    }

    /// The field of connection strings that names its endpoint.
    fn field(self) -> &'static str {
        match self {
            Self::Blobs => "BlobEndpoint",
            Self::Queues => "QueueEndpoint",
            Self::Tables => "TableEndpoint",
            Self::Documents => "AccountEndpoint",
        }
    }

    /// The label behind the account in the service's own host names.
    fn label(self) -> &'static str {
        match self {
            Self::Blobs => "blob",
            Self::Queues => "queue",
            Self::Tables => "table",
            Self::Documents => "documents",
        }
    }

    /// The endpoint that `UseDevelopmentStorage=true` stands for.
    fn development(self) -> &'static str {
        match self {
            Self::Blobs => "http://127.0.0.1:10000/devstoreaccount1",
            Self::Queues => "http://127.0.0.1:10001/devstoreaccount1",
            Self::Tables => "http://127.0.0.1:10002/devstoreaccount1",
            Self::Documents => "http://127.0.0.1:8081",
        }
    }
}

/// What proves that a request may be made.
#[derive(Debug)]
pub enum Credential {
    Key(Box<Key>),
    /// A shared access signature: a query without its question mark.
    Sas(String),
}

/// One account of one service.
#[derive(Debug)]
pub struct Account {
    pub protocol: Protocol,
    pub secure: bool,
    /// Host and port as the address has them.
    pub authority: String,
    /// What every path begins with: nothing, or a slash and the account.
    pub root: String,
    pub name: String,
    pub credential: Credential,
    /// A certificate to trust beside those of the system.
    pub certificate: Option<PathBuf>,
}

impl Account {
    /// The account that the connection string in this environment variable names.
    pub fn from_variable(protocol: Protocol, variable: &str) -> Result<Self> {
        connection(protocol, &read_variable(variable)?)
    }

    /// The account at an endpoint, with the key or the shared access signature of the environment.
    pub fn at_endpoint(protocol: Protocol, url: &str, account: Option<&str>) -> Result<Self> {
        Self::new(protocol, url, account, credential(protocol)?)
    }

    /// The account at an endpoint, with its key.
    pub fn with_key(protocol: Protocol, url: &str, account: &str, key: &str) -> Result<Self> {
        Self::new(protocol, url, Some(account), self::key(key)?)
    }

    fn new(
        protocol: Protocol,
        url: &str,
        account: Option<&str>,
        credential: Credential,
    ) -> Result<Self> {
        let wrong =
            || Failure::usage(format!("`{url}` is no address such as http://127.0.0.1:10000/name"));
        let (secure, rest) = match (url.strip_prefix("https://"), url.strip_prefix("http://")) {
            (Some(rest), _) => (true, rest),
            (None, Some(rest)) => (false, rest),
            _ => return Err(wrong()),
        };
        let (authority, path) = rest.split_once('/').unwrap_or((rest, ""));
        let path = path.trim_end_matches('/');
        let fit = |text: &str| text.bytes().all(|byte| byte.is_ascii_graphic());
        if authority.is_empty() || path.contains(['/', '?', '#']) || !fit(authority) || !fit(path) {
            return Err(wrong());
        }
        if protocol == Protocol::Documents {
            // An account of documents is known by its key alone, and stands in no path.
            let name = account.unwrap_or("documents").to_owned();
            let (authority, root, certificate) = (authority.to_owned(), String::new(), None);
            return match path.is_empty() {
                true => {
                    Ok(Self { protocol, secure, authority, root, name, credential, certificate })
                }
                false => Err(wrong()),
            };
        }
        let name = account_of(authority, path, account).ok_or_else(|| {
            Failure::usage("the endpoint names no account").hint("name it with --account")
        })?;
        // The service has the account in its host name, emulators have it in the path.
        let in_host = authority.split('.').next() == Some(name.as_str());
        let root = match (path, in_host) {
            ("", true) => String::new(),
            ("", false) => format!("/{}", percent_encode(&name)),
            (path, _) => format!("/{path}"),
        };
        let authority = authority.to_owned();
        let certificate = None;
        Ok(Self { protocol, secure, authority, root, name, credential, certificate })
    }

    /// The address that paths follow on, for people and for requests in transactions.
    pub fn base(&self) -> String {
        let scheme = if self.secure { "https" } else { "http" };
        format!("{scheme}://{}{}", self.authority, self.root)
    }
}

/// The account that is asked for, or the one that the address names: in its path, or as the first label of its host.
fn account_of(authority: &str, path: &str, asked: Option<&str>) -> Option<String> {
    let label = authority.split_once('.').map(|(label, _)| label);
    let label = label.filter(|label| !label.bytes().all(|byte| byte.is_ascii_digit()));
    let named = if path.is_empty() { label } else { Some(path) };
    asked.or(named).map(str::to_owned)
}

fn key(text: &str) -> Result<Credential> {
    let key = Key::from_base64(text);
    key.map(|key| Credential::Key(Box::new(key)))
        .map_err(|_| Failure::usage("the account's key is not base64"))
}

fn sas(text: &str) -> Credential {
    Credential::Sas(text.trim().trim_start_matches('?').to_owned())
}

fn read_variable(name: &str) -> Result<String> {
    std::env::var(name).map_err(|_| {
        Failure::usage(format!("there is no environment variable {name}"))
            .hint("--connection takes the name of a variable, not the connection string itself")
    })
}

fn credential(protocol: Protocol) -> Result<Credential> {
    if protocol == Protocol::Documents {
        let found = std::env::var(DOCUMENTS_KEY_VARIABLE);
        let missing = |_| Failure::usage(format!("--endpoint needs {DOCUMENTS_KEY_VARIABLE}"));
        return key(&found.map_err(missing)?);
    }
    match (std::env::var(KEY_VARIABLE), std::env::var(SAS_VARIABLE)) {
        (Ok(text), _) => key(&text),
        (Err(_), Ok(text)) => Ok(sas(&text)),
        _ => Err(Failure::usage(format!(
            "--endpoint needs a key: set {KEY_VARIABLE}, or {SAS_VARIABLE}"
        ))),
    }
}

/// Reads `AccountName=…;AccountKey=…;BlobEndpoint=…`. Errors do not repeat a value.
fn connection(protocol: Protocol, text: &str) -> Result<Account> {
    let fields: Vec<(&str, &str)> =
        text.split(';').filter_map(|field| field.trim().split_once('=')).collect();
    let field = |name: &str| {
        let found = fields.iter().find(|(it, _)| it.eq_ignore_ascii_case(name));
        found.map(|(_, value)| *value).filter(|value| !value.is_empty())
    };
    if field("UseDevelopmentStorage").is_some_and(|value| value.eq_ignore_ascii_case("true")) {
        let url = protocol.development();
        return Account::with_key(protocol, url, DEVELOPMENT_ACCOUNT, DEVELOPMENT_KEY);
    }
    let credential = match (field("AccountKey"), field("SharedAccessSignature")) {
        (Some(text), _) => key(text)?,
        (None, Some(text)) => sas(text),
        _ => return Err(Failure::usage("the connection string has no AccountKey")),
    };
    let account = field("AccountName");
    let url = match (field(protocol.field()), account) {
        (Some(url), _) => url.to_owned(),
        (None, Some(account)) => {
            let scheme = field("DefaultEndpointsProtocol").unwrap_or("https");
            let suffix = field("EndpointSuffix").unwrap_or(SUFFIX_DEFAULT);
            format!("{scheme}://{account}.{}.{suffix}", protocol.label())
        }
        _ => return Err(Failure::usage("the connection string has no AccountName")),
    };
    Account::new(protocol, &url, account, credential)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn connection(text: &str) -> Result<Account> {
        super::connection(Protocol::Tables, text)
    }

    fn shown(account: Result<Account>) -> (String, String) {
        let account = account.unwrap();
        (account.base(), account.name)
    }

    #[test]
    fn connection_strings_read_as_the_service_hands_them_out() {
        let azure = "DefaultEndpointsProtocol=https;AccountName=mine;AccountKey=a2V5MQ==;\
                     EndpointSuffix=core.windows.net";
        let expected = ("https://mine.table.core.windows.net".to_owned(), "mine".to_owned());
        assert_eq!(shown(connection(azure)), expected);
        let blobs = super::connection(Protocol::Blobs, azure).unwrap();
        assert_eq!(blobs.base(), "https://mine.blob.core.windows.net");
        let emulator = "AccountName=dev;AccountKey=a2V5MQ==;TableEndpoint=http://[::1]:7/dev/;";
        assert_eq!(
            shown(connection(emulator)),
            ("http://[::1]:7/dev".to_owned(), "dev".to_owned())
        );
        let sas = "TableEndpoint=https://mine.table.x.y/;SharedAccessSignature=?sv=1&sig=a%3D";
        let account = connection(sas).unwrap();
        assert_eq!((account.root.as_str(), account.name.as_str()), ("", "mine"));
        assert!(matches!(account.credential, Credential::Sas(text) if text == "sv=1&sig=a%3D"));
        assert_eq!(shown(connection("UseDevelopmentStorage=true")).1, "devstoreaccount1");
    }

    #[test]
    fn what_is_wrong_is_said_without_the_key() {
        for bad in ["", "AccountName=a", "AccountName=a;AccountKey=SECRET!", "AccountKey=a2V5MQ=="]
        {
            let failure = connection(bad).unwrap_err().to_string();
            assert!(!failure.contains("SECRET") && !failure.contains("a2V5"), "{failure}");
        }
    }

    #[test]
    fn endpoints_name_their_account_in_host_or_path() {
        let place = |url: &str, account: Option<&str>| {
            let credential = Credential::Sas(String::new());
            Account::new(Protocol::Tables, url, account, credential)
        };
        assert_eq!(shown(place("http://localhost:1/dev", None)).1, "dev");
        assert_eq!(shown(place("http://127.0.0.1:1", Some("dev"))).0, "http://127.0.0.1:1/dev");
        assert_eq!(shown(place("https://mine.table.x.y/", None)).1, "mine");
        for bad in ["", "ftp://x", "http://", "http://a/b/c", "http://a\r\nb/c", "http://a/?b"] {
            assert!(place(bad, Some("a")).is_err(), "{bad}");
        }
        assert!(place("http://127.0.0.1:1", None).is_err());
    }
}
