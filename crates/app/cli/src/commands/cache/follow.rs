//! `lazuli cache import --from`: the cache follows a running server until it has all of its keys.

use std::time::Duration;

use lazuli_console::progress::{Figures, Meter};
use lazuli_console::{Failure, Result, confirm, output};
use lazuli_http::uri::percent_decode;
use serde_json::json;

use super::Cache;
use crate::args::cache::Import;

/// How often the cache is asked how far it is.
const PERIOD: Duration = Duration::from_millis(200);
const PORT: &str = "6379";

/// A server to copy.
#[derive(Debug, PartialEq, Eq)]
struct Source {
    host: String,
    port: String,
    user: String,
    password: String,
}

impl Source {
    /// Reads `redis://[[USER]:PASSWORD@]HOST[:PORT]`.
    fn parse(url: &str) -> Option<Self> {
        let rest = url.strip_prefix("redis://")?.trim_end_matches('/');
        let (who, place) = rest.rsplit_once('@').unwrap_or(("", rest));
        let (user, password) = who.split_once(':').unwrap_or(("", who));
        let has_port = place.rsplit_once(':').filter(|(_, port)| port.parse::<u16>().is_ok());
        let (host, port) = has_port.unwrap_or((place, PORT));
        let host = host.trim_start_matches('[').trim_end_matches(']').to_owned();
        let is_plain = !host.is_empty() && !host.contains(['/', '?', ' ']);
        let text = |it: &str| percent_decode(it).ok().map(|it| it.into_owned());
        let (user, password) = (text(user)?, text(password)?);
        is_plain.then(|| Self { host, port: port.to_owned(), user, password })
    }
}

pub(super) fn run(url: &str, wanted: &Import) -> Result<()> {
    let source = Source::parse(url).ok_or_else(|| {
        let failure = Failure::usage(format!("`{url}` is no address such as redis://host:6379"));
        failure.hint("redis://:PASSWORD@HOST:PORT names a password; TLS is not spoken")
    })?;
    let question = "replace everything in the cache by the keys of that server?";
    if !wanted.yes && !confirm::ask(question)? {
        return Err(Failure::failed("nothing was changed"));
    }
    let (mut cache, _) = Cache::find(&wanted.place)?;
    let login = [("masteruser", &source.user), ("masterauth", &source.password)];
    for (name, value) in login.into_iter().filter(|_| !source.password.is_empty()) {
        cache.ask(&[b"CONFIG", b"SET", name.as_bytes(), value.as_bytes()])?;
    }
    cache.ask(&[b"REPLICAOF", source.host.as_bytes(), source.port.as_bytes()])?;
    let as_json = wanted.place.target.json;
    let mut meter = Meter::new("copied", "keys", as_json, Figures::default(), None);
    let copied = wait(&mut cache, &mut meter);
    meter.finish();
    if copied.is_err() || !wanted.stay {
        cache.ask(&[b"REPLICAOF", b"NO", b"ONE"])?;
        if !source.password.is_empty() {
            cache.ask(&[b"CONFIG", b"SET", b"masterauth", b""])?;
        }
    }
    let keys = copied?;
    let answer = json!({ "keys": keys, "following": wanted.stay });
    output::changed(as_json, &answer, || match wanted.stay {
        true => format!(
            "copied {keys} keys; the cache goes on following, until `redis-cli REPLICAOF NO ONE`"
        ),
        false => format!("copied {keys} keys"),
    });
    Ok(())
}

/// Waits until the copy is whole and what changed meanwhile has come. How many keys there are.
fn wait(cache: &mut Cache, meter: &mut Meter) -> Result<u64> {
    loop {
        let fields = cache.info("replication")?;
        let of = |name: &str| fields.iter().find(|it| it.0 == name).map(|it| it.1.as_str());
        if of("master_link_status") == Some("up") {
            return keys(cache);
        }
        if let Some(trouble) = of("lazuli_link_trouble").filter(|it| !it.is_empty()) {
            return Err(Failure::failed(format!("the server cannot be copied: {trouble}")));
        }
        let bytes = of("master_sync_read_bytes").and_then(|it| it.parse().ok()).unwrap_or_default();
        meter.show(Figures { items: keys(cache)?, bytes });
        std::thread::sleep(PERIOD);
    }
}

/// How many keys all databases have.
fn keys(cache: &mut Cache) -> Result<u64> {
    let fields = cache.info("keyspace")?;
    let counts = fields.iter().filter_map(|(_, value)| {
        value.split(',').next()?.strip_prefix("keys=")?.parse::<u64>().ok()
    });
    Ok(counts.sum())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_of_servers_are_read() {
        let read = |url| Source::parse(url).map(|it| [it.host, it.port, it.user, it.password]);
        let of = |parts: [&str; 4]| Some(parts.map(str::to_owned));
        assert_eq!(read("redis://a"), of(["a", "6379", "", ""]));
        assert_eq!(read("redis://a:7/"), of(["a", "7", "", ""]));
        assert_eq!(read("redis://:p%40@[::1]:7"), of(["::1", "7", "", "p@"]));
        assert_eq!(read("redis://u:p@a.b:7"), of(["a.b", "7", "u", "p"]));
        for bad in ["", "a:7", "redis://", "rediss://a", "redis://a/b"] {
            assert_eq!(read(bad), None, "{bad}");
        }
    }
}
