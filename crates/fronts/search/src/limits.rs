//! The named limits of the front: those of the service, and those for safety.

use std::time::Duration;

/// The longest request body of the service.
pub const REQUEST_BYTES_MAX: usize = 16 * 1024 * 1024;
/// The most actions of one request.
pub const ACTIONS_MAX: usize = 1_000;
/// The longest address that queries may have; longer ones are posted.
pub const URL_BYTES_MAX: usize = 8 * 1024;
/// How many results a page has if the request does not say.
pub const TOP_DEFAULT: usize = 50;
/// The most results of one page.
pub const TOP_MAX: usize = 1_000;
/// The most results that can be skipped.
pub const SKIP_MAX: usize = 100_000;
/// The most suggestions.
pub const SUGGESTIONS_MAX: usize = 100;
/// How many suggestions there are if the request does not say.
pub const SUGGESTIONS_DEFAULT: usize = 5;
/// The most keys for queries of an account.
pub const QUERY_KEYS_MAX: usize = 50;
/// The most indexes of an account: those of the service's largest tier.
pub const INDEXES_MAX: usize = 3_000;
/// The most synonym maps of an account.
pub const SYNONYM_MAPS_MAX: usize = 20;
/// The most aliases of an account.
pub const ALIASES_MAX: usize = 3_000;
/// The longest name of a synonym map, an alias or a key.
pub const NAME_CHARS_MAX: usize = 128;
/// How long a search waits for a text index that is being opened or filled, and a request that asked for it for its visibility.
pub const WAIT_MAX: Duration = Duration::from_secs(20);
/// The pause between two commits of a text index, so that changes share them: with a commit it stays within 100 ms.
pub const COMMIT_PAUSE: Duration = Duration::from_millis(40);
/// Changes that are applied before a commit at the latest.
pub const COMMIT_CHANGES: usize = 10_000;
/// How often indexes are looked for that another process has made.
pub const LOOK_INTERVAL: Duration = Duration::from_secs(5);
/// The same while slices of some index are to be moved.
pub const SPREAD_INTERVAL: Duration = Duration::from_millis(250);
/// How often a follower looks by itself where other processes write into the same stores.
pub const SHARED_POLL: Duration = Duration::from_millis(50);
/// How often it looks where this process writes alone, in case a wake-up was lost to an error.
pub const ALONE_POLL: Duration = Duration::from_secs(30);
/// How long an index must be quiet before its writer is closed.
pub const REST_AFTER: Duration = Duration::from_secs(10);
/// How often change records that are in are deleted.
pub const TRIM_INTERVAL: Duration = Duration::from_secs(60);
/// The wait after an error of a follower.
pub const RETRY_PAUSE: Duration = Duration::from_millis(500);
/// How long keys for queries are remembered before they are read again.
pub const KEYS_REMEMBERED: Duration = Duration::from_secs(2);
/// Deletions that are remembered until their change records are deleted.
pub const DELETIONS_MAX: usize = 200_000;
/// Searches that run at the same time; more wait for their turn.
pub const SEARCHES_AT_ONCE: usize = 64;
/// The pause after a graph of neighbours could not be built.
pub const GROWTH_RETRY_PAUSE: Duration = Duration::from_secs(60);
