//! The path of docs/first-steps.md: its commands on a file of one's own lead to a chart of it.

use std::path::Path;

use crate::program::{Server, ask, exchange, run, stderr, stdout};

const SALES: &str = "order,customer,total\n1,ann,12.5\n2,ben,3\n3,ann,7\n";

/// The commands of the page, without the two that unpack and start the server: `cargo xtask dist --try` shows those.
fn commands() -> Vec<Vec<String>> {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../docs/first-steps.md");
    let text = std::fs::read_to_string(page).unwrap();
    let all: Vec<&str> = text.lines().filter_map(|line| line.strip_prefix("$ ")).collect();
    assert_eq!(all.len(), 5, "five commands are promised");
    let ours = all.into_iter().filter_map(|line| line.strip_prefix("lazuli "));
    ours.map(|line| line.split(' ').map(str::to_owned).collect()).collect()
}

#[test]
fn five_commands_lead_to_a_chart_of_ones_own_data() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("sales.csv"), SALES).unwrap();
    let server = Server::start(folder.path());
    let mut printed = Vec::new();
    for command in commands() {
        let words: Vec<&str> = command.iter().map(String::as_str).collect();
        let output = run(folder.path(), &words);
        assert!(output.status.success(), "{words:?}: {}", stderr(&output));
        printed.push(stdout(&output));
    }
    assert_eq!(printed.len(), 3);
    let mut lines = printed[1].lines();
    let (url, token) = (lines.next().unwrap(), lines.next().unwrap());
    let token = std::fs::read_to_string(folder.path().join(token.split(' ').next_back().unwrap()));
    let form = format!("token={}&next=", token.unwrap().trim());
    let admin = server.endpoint("admin");
    let headers = [("content-type", "application/x-www-form-urlencoded")];
    let answer = exchange(&admin, None, "POST", "/portal/login", &headers, &form).unwrap();
    let cookie = answer.header("set-cookie").unwrap().split(';').next().unwrap().to_owned();
    let path = url.split_once(&admin).unwrap().1;
    let (status, page) = ask(&admin, "GET", path, &[("cookie", &cookie)], "");
    assert_eq!(status, 200);
    assert!(page.contains("<svg") && page.contains("tables/devstoreaccount1/sales"), "{page}");
}

#[test]
fn a_container_is_found_by_a_part_of_its_name_that_no_other_has() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(folder.path());
    for name in ["alpha", "alphabet"] {
        server.command(&["table", "create", name]);
    }
    let found = server.command(&["portal", "alphab"]);
    assert!(found.contains("/portal/containers/tables%2Fdevstoreaccount1%2Falphabet"), "{found}");
    let several = run(folder.path(), &["portal", "alph"]);
    assert!(stderr(&several).contains("is in several names"), "{}", stderr(&several));
    // The last part of a name is enough, in any case, although another name has it in it.
    let shown = server.command(&["map", "show", "ALPHA"]);
    assert!(shown.starts_with("name        tables/devstoreaccount1/alpha\n"), "{shown}");
    let listed = server.json(&["partition", "list", "--map", "Alphabet"]);
    assert_eq!(listed["partitions"].as_array().unwrap().len(), 1);
    let none = run(folder.path(), &["portal", "beta"]);
    assert!(stderr(&none).contains("no container has `beta`"), "{}", stderr(&none));
    // Programs get errors as they get answers.
    let none = run(folder.path(), &["portal", "beta", "--json"]);
    let told: serde_json::Value = serde_json::from_str(&stderr(&none)).unwrap();
    assert_eq!(told["error"]["hint"], "`lazuli map list` lists them");
}
