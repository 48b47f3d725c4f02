//! Where a running server can be reached: on the terminal, in the ready file, and in `admin.json` of the data folder.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use crate::failure::{Failure, Result};
use crate::folder::{read_small, write_for_this_run};
use crate::fronts::HTTP_SCHEMES;

/// One address that something listens on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Endpoint {
    /// What is served there, such as `tables`.
    pub name: &'static str,
    pub secure: bool,
    pub address: SocketAddr,
}

impl Endpoint {
    /// The address as clients of the front take it: a URL, or for Kafka what goes into `bootstrap.servers`.
    pub fn url(&self) -> String {
        let schemes = crate::fronts::find(self.name).map_or(HTTP_SCHEMES, |front| front.schemes);
        let scheme = if self.secure { schemes.1 } else { schemes.0 };
        format!("{scheme}{}", self.address)
    }
}

/// Addresses for people and programs, each once: a front may have the same one with TLS and without.
fn listed(endpoints: &[Endpoint]) -> Vec<(&'static str, String)> {
    let mut listed: Vec<(&'static str, String)> = Vec::new();
    for endpoint in endpoints {
        let one = (endpoint.name, endpoint.url());
        if !listed.contains(&one) {
            listed.push(one);
        }
    }
    listed
}

/// A front that was left out because its default port is taken.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NotStarted {
    pub name: &'static str,
    pub reason: String,
}

/// The one line that says that everything accepts, and which fronts were left out.
pub fn ready_line(endpoints: &[Endpoint], not_started: &[NotStarted]) -> String {
    let open = listed(endpoints).into_iter().map(|(name, url)| format!("{name}={url}"));
    let left_out = not_started.iter().map(|one| format!("{}=not-started", one.name));
    let all: Vec<_> = open.chain(left_out).collect();
    format!("lazuli ready {}", all.join(" "))
}

/// Why fronts were left out, by name.
pub fn reasons(not_started: &[NotStarted]) -> Value {
    not_started.iter().map(|one| (one.name.to_owned(), json!(one.reason))).collect()
}

/// One address by name; what is served both ways has its HTTPS under `NAME-https`, and that of the bus is `bus-tls`. Further
/// listeners of a front, which are the nodes of a cluster, are `NAME-node-1` and so on.
pub fn by_name(endpoints: &[Endpoint]) -> Value {
    let mut by_name = serde_json::Map::new();
    let mut listeners: BTreeMap<(&str, bool), Vec<SocketAddr>> = BTreeMap::new();
    for Endpoint { name: front, address, secure } in endpoints {
        let own = listeners.entry((front, *secure)).or_default();
        if !own.contains(address) {
            own.push(*address);
        }
        let place = own.iter().position(|it| it == address).unwrap_or_default();
        let mut name = match place {
            0 => (*front).to_owned(),
            place => format!("{front}-node-{place}"),
        };
        let url = Endpoint { name: front, secure: *secure, address: *address }.url();
        match by_name.get(&name) {
            // One that has the same address both ways is named once.
            Some(known) if *known == url => continue,
            Some(_) => name.push_str(if url.starts_with("https://") { "-https" } else { "-tls" }),
            None => {}
        }
        by_name.insert(name, json!(url));
    }
    Value::Object(by_name)
}

/// What the ready file says.
pub fn ready_json(
    endpoints: &[Endpoint],
    not_started: &[NotStarted],
    token_file: Option<&Path>,
) -> Value {
    json!({
        "pid": std::process::id(),
        "endpoints": by_name(endpoints),
        "not_started": reasons(not_started),
        "admin_token_file": token_file,
    })
}

/// Writes the ready file.
pub fn write_ready_file(path: &Path, content: &Value) -> Result<()> {
    write_for_this_run(path, &format!("{content:#}\n"), 0o644)
}

/// `admin.json`: how commands find the server that uses a data folder.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AdminFile {
    pub url: String,
}

impl AdminFile {
    fn path(data: &Path) -> PathBuf {
        data.join("admin.json")
    }

    pub(crate) fn write(&self, data: &Path) -> Result<()> {
        let content = json!({ "url": self.url, "pid": std::process::id() });
        write_for_this_run(&Self::path(data), &format!("{content:#}\n"), 0o600)
    }

    /// The server is gone, so commands need not look for it. If this fails they find no server there.
    pub(crate) fn remove(data: &Path) {
        let _ = std::fs::remove_file(Self::path(data));
    }

    /// None if no server has written it.
    pub fn read(data: &Path) -> Result<Option<Self>> {
        let path = Self::path(data);
        let Some(text) = read_small(&path)? else { return Ok(None) };
        let content: Value = serde_json::from_str(&text).unwrap_or(Value::Null);
        match content["url"].as_str() {
            Some(url) => Ok(Some(Self { url: url.to_owned() })),
            None => {
                let message = format!("{} is damaged", path.display());
                Err(Failure::new("file-error", message).hint("name the admin API with --admin"))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn endpoints() -> Vec<Endpoint> {
        let address = "127.0.0.1:10002".parse().unwrap();
        let admin = "127.0.0.1:10010".parse().unwrap();
        vec![
            Endpoint { name: "tables", secure: false, address },
            Endpoint { name: "tables", secure: true, address },
            Endpoint { name: "admin", secure: false, address: admin },
        ]
    }

    fn not_started() -> NotStarted {
        NotStarted { name: "blobs", reason: "taken".to_owned() }
    }

    #[test]
    fn the_ready_line_names_every_endpoint_and_every_front_that_is_left_out() {
        assert_eq!(
            ready_line(&endpoints(), &[not_started()]),
            "lazuli ready tables=http://127.0.0.1:10002 tables=https://127.0.0.1:10002 \
             admin=http://127.0.0.1:10010 blobs=not-started"
        );
    }

    #[test]
    fn fronts_that_speak_no_http_are_named_as_their_clients_take_them() {
        let address = "127.0.0.1:9092".parse().unwrap();
        let both = |name| [false, true].map(|secure| Endpoint { name, secure, address });
        let all: Vec<_> = ["kafka", "bus"].into_iter().flat_map(both).collect();
        assert_eq!(
            ready_line(&all, &[]),
            "lazuli ready kafka=127.0.0.1:9092 bus=sb://127.0.0.1:9092 bus=amqps://127.0.0.1:9092"
        );
        let by_name = by_name(&all);
        assert_eq!(by_name["kafka"], "127.0.0.1:9092");
        assert_eq!(by_name["bus"], "sb://127.0.0.1:9092");
        assert_eq!(by_name["bus-tls"], "amqps://127.0.0.1:9092");
        assert_eq!(by_name.as_object().unwrap().len(), 3);
    }

    #[test]
    fn the_nodes_of_a_cluster_have_names_of_their_own() {
        let at = |port| SocketAddr::from(([127, 0, 0, 1], port));
        let both =
            |address| [false, true].map(|secure| Endpoint { name: "cache", secure, address });
        let all: Vec<_> = [6379, 7001, 7002].into_iter().flat_map(|port| both(at(port))).collect();
        let by_name = by_name(&all);
        assert_eq!(by_name["cache"], "redis://127.0.0.1:6379");
        assert_eq!(by_name["cache-tls"], "rediss://127.0.0.1:6379");
        assert_eq!(by_name["cache-node-1"], "redis://127.0.0.1:7001");
        assert_eq!(by_name["cache-node-2-tls"], "rediss://127.0.0.1:7002");
        assert_eq!(by_name.as_object().unwrap().len(), 6);
    }

    #[test]
    fn the_ready_file_lists_endpoints_by_name() {
        let content =
            ready_json(&endpoints(), &[not_started()], Some(Path::new("/data/admin-token")));
        assert_eq!(content["endpoints"]["tables"], "http://127.0.0.1:10002");
        assert_eq!(content["endpoints"]["tables-https"], "https://127.0.0.1:10002");
        assert_eq!(content["endpoints"]["admin"], "http://127.0.0.1:10010");
        assert_eq!(content["not_started"]["blobs"], "taken");
        assert_eq!(content["admin_token_file"], "/data/admin-token");
        assert_eq!(content["pid"], std::process::id());
    }

    #[test]
    fn commands_find_what_the_server_wrote() {
        let folder = tempfile::tempdir().unwrap();
        assert_eq!(AdminFile::read(folder.path()).unwrap(), None);
        let file = AdminFile { url: "http://127.0.0.1:7".to_owned() };
        file.write(folder.path()).unwrap();
        assert_eq!(AdminFile::read(folder.path()).unwrap(), Some(file));
        AdminFile::remove(folder.path());
        assert_eq!(AdminFile::read(folder.path()).unwrap(), None);
    }
}
