//! What `packaging` tells a container: the settings of its compose file start a server, and its ports are the real ones.

use std::path::Path;

use crate::program::{Server, run, stdout};

fn packaged(name: &str) -> String {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../packaging");
    std::fs::read_to_string(folder.join(name)).unwrap()
}

/// The environment of the compose file.
fn variables() -> Vec<(String, String)> {
    let text = packaged("compose.yaml");
    let pairs = text.lines().filter_map(|line| line.trim().split_once(": "));
    let ours = pairs.filter(|(name, _)| name.starts_with("LAZULI_"));
    ours.map(|(name, value)| (name.to_owned(), value.trim_matches('"').to_owned())).collect()
}

#[test]
fn the_compose_file_starts_a_server_that_other_machines_may_administer() {
    let folder = tempfile::tempdir().unwrap();
    let mut variables = variables();
    assert!(variables.len() >= 5, "{variables:?}");
    for (name, value) in &mut variables {
        if name == "LAZULI_ADMIN_REMOTE" {
            // A free port, since others may run this test at the same time.
            *value = value.replace(":10011", ":0");
        }
    }
    let variables: Vec<(&str, &str)> =
        variables.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
    let server = Server::start_with(folder.path(), &[], &variables);
    assert!(server.ready["endpoints"]["admin-https"].as_str().unwrap().starts_with("https://"));
}

#[test]
fn the_image_exposes_the_default_ports_of_all_fronts() {
    let folder = tempfile::tempdir().unwrap();
    let settings = stdout(&run(folder.path(), &["config", "--json"]));
    let settings: serde_json::Value = serde_json::from_str(&settings).unwrap();
    let (image, compose) = (packaged("Dockerfile"), packaged("compose.yaml"));
    let exposed = image.lines().find_map(|line| line.strip_prefix("EXPOSE ")).unwrap();
    let exposed: Vec<&str> = exposed.split(' ').collect();
    for (name, setting) in settings.as_object().unwrap() {
        let is_front = name.ends_with("-port") && name != "admin-port";
        let port = setting["value"].as_str().unwrap_or_default();
        if is_front && port.parse::<u16>().is_ok_and(|port| port != 0) {
            assert!(exposed.contains(&port), "the image does not expose {name} {port}");
            assert!(compose.contains(&format!(":{port}:{port}\"")), "{name} {port}");
        }
    }
}
