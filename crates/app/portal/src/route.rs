//! Paths of the portal to pages: one closed enum, matched without `_`.

use lazuli_http::uri::percent_decode;

use crate::pages::accounts::AccountsPage;
use crate::pages::change::PartitionChange;
use crate::pages::explorer::ExplorerPage;
use crate::pages::jobs::Steer;
use crate::pages::messaging::MessagingPage;
use crate::pages::rebalance::Balance;
use crate::pages::shards::ShardsPage;
use crate::pages::sql::SqlPage;

/// Where the portal begins. Everything else on the port is the admin API.
pub const ROOT: &str = "/portal";

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Route {
    Style,
    Script,
    Icon,
    Login,
    Logout,
    /// What has changed on a page, as it changes.
    Live,
    Overview,
    Shards(ShardsPage),
    Accounts(AccountsPage),
    Services,
    /// What one front tells.
    Service {
        name: String,
    },
    /// Sharded SQL databases.
    Sql(SqlPage),
    Rebalance,
    /// Begins or stops carrying out plans.
    Balance(Balance),
    Backups,
    /// A backup of a partition, as a file.
    Backup {
        id: u64,
    },
    Audit,
    Settings,
    Containers,
    Container {
        name: String,
    },
    Partition {
        id: u64,
    },
    /// What a change of a partition would do.
    PreviewChange {
        id: u64,
        change: PartitionChange,
    },
    /// The change itself.
    MakeChange {
        id: u64,
        change: PartitionChange,
    },
    Advice,
    Jobs,
    /// Pauses, resumes or cancels a job.
    SteerJob {
        number: u64,
        steer: Steer,
    },
    /// What is stored in tables, blobs and queues.
    Explorer(ExplorerPage),
    /// Queues, topics and hubs.
    Messaging(MessagingPage),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NoRoute {
    Path,
    Method,
}

impl Route {
    /// The route of a path below [`ROOT`].
    pub(crate) fn parse(method: &str, path: &str) -> Result<Self, NoRoute> {
        let below = path.strip_prefix(ROOT).ok_or(NoRoute::Path)?;
        let pieces: Result<Vec<String>, NoRoute> = below
            .split('/')
            .filter(|piece| !piece.is_empty())
            .map(|piece| percent_decode(piece).map(Into::into).map_err(|_| NoRoute::Path))
            .collect();
        let pieces = pieces?;
        let pieces: Vec<&str> = pieces.iter().map(String::as_str).collect();
        let route = match pieces.as_slice() {
            ["static", "portal.css"] => Self::Style,
            ["static", "portal.js"] => Self::Script,
            ["static", "icon.svg"] => Self::Icon,
            ["login"] => Self::Login,
            ["logout"] => Self::Logout,
            ["live"] => Self::Live,
            [] => Self::Overview,
            ["accounts", rest @ ..] => {
                Self::Accounts(AccountsPage::parse(rest).ok_or(NoRoute::Path)?)
            }
            ["services"] => Self::Services,
            ["services", name] => Self::Service { name: (*name).to_owned() },
            ["sql", rest @ ..] => Self::Sql(SqlPage::parse(rest).ok_or(NoRoute::Path)?),
            ["rebalance"] => Self::Rebalance,
            ["rebalance", word] => Self::Balance(Balance::parse(word).ok_or(NoRoute::Path)?),
            ["backups"] => Self::Backups,
            ["audit"] => Self::Audit,
            ["settings"] => Self::Settings,
            ["containers"] => Self::Containers,
            ["shards", rest @ ..] => Self::Shards(ShardsPage::parse(rest).ok_or(NoRoute::Path)?),
            ["containers", name] => Self::Container { name: (*name).to_owned() },
            ["partitions", id] => Self::Partition { id: number(id)? },
            ["partitions", id, "backup"] => Self::Backup { id: number(id)? },
            ["partitions", id, change] => {
                let (id, change) =
                    (number(id)?, PartitionChange::parse(change).ok_or(NoRoute::Path)?);
                match method {
                    "POST" => Self::MakeChange { id, change },
                    _ => Self::PreviewChange { id, change },
                }
            }
            ["advice"] => Self::Advice,
            ["jobs"] => Self::Jobs,
            ["jobs", job, steer] => Self::SteerJob {
                number: number(job)?,
                steer: Steer::parse(steer).ok_or(NoRoute::Path)?,
            },
            ["explorer", rest @ ..] => {
                Self::Explorer(ExplorerPage::parse(rest).ok_or(NoRoute::Path)?)
            }
            ["messaging", rest @ ..] => {
                Self::Messaging(MessagingPage::parse(rest).ok_or(NoRoute::Path)?)
            }
            _ => return Err(NoRoute::Path),
        };
        let (get, post) = route.methods();
        match method {
            "GET" if get => Ok(route),
            "POST" if post => Ok(route),
            _ => Err(NoRoute::Method),
        }
    }

    /// Whether it takes GET, and whether it takes POST.
    fn methods(&self) -> (bool, bool) {
        match self {
            Self::Style | Self::Script | Self::Icon | Self::Live => (true, false),
            Self::Overview | Self::Containers | Self::Container { .. } => (true, false),
            Self::Services | Self::Service { .. } | Self::Rebalance => (true, false),
            Self::Backup { .. } | Self::Audit | Self::Settings => (true, false),
            Self::Backups => (true, true),
            Self::Shards(page) => (true, page.changes()),
            Self::Sql(page) => (true, page.changes()),
            Self::Accounts(page) => page.methods(),
            Self::Balance(_) => (false, true),
            Self::Partition { .. } | Self::PreviewChange { .. } => (true, false),
            Self::Jobs | Self::Advice => (true, false),
            Self::Explorer(place) => (!place.changes(), place.changes()),
            Self::Messaging(place) => (!place.changes(), place.changes()),
            Self::Login => (true, true),
            Self::Logout => (false, true),
            Self::MakeChange { .. } | Self::SteerJob { .. } => (false, true),
        }
    }
}

fn number(piece: &str) -> Result<u64, NoRoute> {
    piece.parse().map_err(|_| NoRoute::Path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_name_pages_and_their_parameters() {
        let parse = Route::parse;
        assert_eq!(parse("GET", "/portal"), Ok(Route::Overview));
        assert_eq!(parse("GET", "/portal/"), Ok(Route::Overview));
        let keys = Route::Accounts(AccountsPage::Keys("a/b".to_owned()));
        assert_eq!(parse("POST", "/portal/accounts/a%2Fb/keys"), Ok(keys));
        let container = Route::Container { name: "tables/mine/orders".to_owned() };
        assert_eq!(parse("GET", "/portal/containers/tables%2Fmine%2Forders"), Ok(container));
        let (id, change) = (7, PartitionChange::ReadOnly);
        let path = "/portal/partitions/7/read-only";
        assert_eq!(parse("GET", path), Ok(Route::PreviewChange { id, change }));
        assert_eq!(parse("POST", path), Ok(Route::MakeChange { id, change }));
    }

    #[test]
    fn what_is_no_page_says_why() {
        let parse = Route::parse;
        assert_eq!(parse("GET", "/v1/status"), Err(NoRoute::Path));
        assert_eq!(parse("GET", "/portal/nothing"), Err(NoRoute::Path));
        assert_eq!(parse("GET", "/portal/partitions/x"), Err(NoRoute::Path));
        assert_eq!(parse("POST", "/portal/partitions/7/explode"), Err(NoRoute::Path));
        assert_eq!(parse("GET", "/portal/%zz"), Err(NoRoute::Path));
        assert_eq!(parse("GET", "/portal/logout"), Err(NoRoute::Method));
        assert_eq!(parse("DELETE", "/portal/"), Err(NoRoute::Method));
    }
}
