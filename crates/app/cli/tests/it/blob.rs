//! Blobs in and out of folders with the real program: every size and name, what differs and what is gone.

use std::collections::BTreeMap;
use std::os::unix::fs::symlink;
use std::path::Path;

use crate::program::{PUBLISHED_KEY, Server, lazuli, run, stderr, stdout};

const BLOCK: usize = 8 * 1024 * 1024;

/// Names that escaping, XML or a shell could break.
const HOSTILE: [&str; 8] = [
    "plain.txt",
    "a b/c+d%20e?f#g&h=i.json",
    "äöü/😀 <&>\"'.html",
    "deep/er/and/deeper/x",
    " spaces around ",
    "new\nline\tand\u{1}control",
    "-r",
    "az:/x",
];

fn bytes(size: usize, seed: u8) -> Vec<u8> {
    (0..size).map(|at| (at as u32).wrapping_mul(2_654_435_761).to_be_bytes()[0] ^ seed).collect()
}

fn write(root: &Path, name: &str, content: &[u8]) {
    let path = root.join(name);
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(path, content).unwrap();
}

/// All files below a folder, by name.
fn tree(root: &Path) -> BTreeMap<String, Vec<u8>> {
    let mut all = BTreeMap::new();
    let mut open = vec![root.to_owned()];
    while let Some(folder) = open.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                open.push(path);
            } else {
                let name = path.strip_prefix(root).unwrap().to_str().unwrap().to_owned();
                all.insert(name, std::fs::read(path).unwrap());
            }
        }
    }
    all
}

fn names(server: &Server, place: &str) -> Vec<String> {
    let listed = server.json(&["blob", "ls", "--recursive", place]);
    let blobs = listed["blobs"].as_array().unwrap().iter();
    blobs.map(|blob| blob["name"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn a_folder_goes_up_and_comes_down_the_same() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(folder.path());
    let up = folder.path().join("up");
    for (number, name) in HOSTILE.into_iter().enumerate() {
        write(&up, name, &bytes(1000 * number, number as u8));
    }
    for size in [BLOCK - 1, BLOCK, BLOCK + 1, 3 * BLOCK + 12_345] {
        write(&up, &format!("large/{size}.bin"), &bytes(size, 9));
    }
    let copied = server.json(&["blob", "cp", "-r", "up", "az://files/some/where", "--create"]);
    assert_eq!(copied["transferred"], 12);
    let expected = tree(&up);
    let sum: usize = expected.values().map(Vec::len).sum();
    assert_eq!((&copied["bytes"], &copied["failed"]), (&sum.into(), &0.into()));
    let mut listed = names(&server, "az://files/some/");
    listed.sort();
    let names: Vec<String> = expected.keys().map(|name| format!("some/where/{name}")).collect();
    assert_eq!(listed, names);
    server.command(&["blob", "cp", "-r", "az://files/some/where/", "down", "--parallel", "3"]);
    assert!(tree(&folder.path().join("down")) == expected);
    // Large and small blobs have a sum and a type.
    let listed = server.json(&["blob", "ls", "-r", "az://files/some/where/"]);
    assert!(listed["blobs"].as_array().unwrap().iter().all(|blob| blob["md5"].is_string()));
}

#[test]
fn single_files_go_where_they_are_told() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(folder.path());
    assert_eq!(server.command(&["blob", "create", "one"]), "created container one\n");
    write(folder.path(), "f.txt", b"content");
    server.command(&["blob", "cp", "f.txt", "az://one"]);
    server.command(&["blob", "cp", "f.txt", "az://one/x/"]);
    server.command(&["blob", "cp", "./f.txt", "az://one/y"]);
    assert_eq!(names(&server, "az://one"), ["f.txt", "x/f.txt", "y"]);
    std::fs::create_dir(folder.path().join("into")).unwrap();
    server.command(&["blob", "cp", "az://one/x/f.txt", "into"]);
    server.command(&["blob", "cp", "az://one/y", "into/other"]);
    server.command(&["blob", "cp", "az://one/y", "new/"]);
    let got = tree(&folder.path().join("into"));
    assert_eq!(got.keys().collect::<Vec<_>>(), ["f.txt", "other"]);
    assert_eq!(std::fs::read(folder.path().join("new/y")).unwrap(), b"content");
    let missing = run(folder.path(), &["blob", "cp", "az://one/z", "."]);
    assert_eq!(missing.status.code(), Some(1));
    assert!(stderr(&missing).contains("there is no blob az://one/z"), "{}", stderr(&missing));
    assert_eq!(run(folder.path(), &["blob", "cp", "into", "az://one"]).status.code(), Some(2));
    assert_eq!(server.command(&["blob", "ls"]), "one\n");
    let listed = server.command(&["blob", "ls", "az://one"]);
    let columns: Vec<Vec<&str>> =
        listed.lines().map(|line| line.split_whitespace().collect()).collect();
    assert_eq!(columns[0], ["-", "-", "x/"]);
    assert_eq!((columns[1][0], columns[1][2]), ("7", "f.txt"));
    assert_eq!(server.command(&["blob", "delete", "az://one"]), "deleted container one\n");
    assert_eq!(server.command(&["blob", "ls"]), "");
}

#[test]
fn a_synchronization_sends_only_what_differs() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(folder.path());
    let up = folder.path().join("up");
    for name in ["a", "b/c", "b/d", "e"] {
        write(&up, name, &bytes(5000, name.as_bytes()[0]));
    }
    write(&up, "large", &bytes(2 * BLOCK, 1));
    let sync = |more: &[&str]| {
        server.json(&[&["blob", "sync", "up", "az://mirror/m", "--create"][..], more].concat())
    };
    let planned = sync(&["--dry-run"]);
    assert_eq!(planned["tasks"].as_array().unwrap().len(), 5);
    assert_eq!(server.command(&["blob", "ls"]), "", "a dry run does nothing");
    let figures = |answer: &serde_json::Value| {
        ["transferred", "unchanged", "removed"].map(|name| answer[name].as_u64().unwrap())
    };
    assert_eq!(figures(&sync(&[])), [5, 0, 0]);
    assert_eq!(figures(&sync(&[])), [0, 5, 0]);
    // The same size, and one byte of another value; a file that is gone; one that is new.
    let mut large = bytes(2 * BLOCK, 1);
    large[BLOCK] ^= 1;
    write(&up, "large", &large);
    std::fs::remove_file(up.join("b/c")).unwrap();
    write(&up, "f", b"new");
    assert_eq!(figures(&sync(&[])), [2, 3, 0]);
    assert!(names(&server, "az://mirror/").contains(&"m/b/c".to_owned()));
    assert_eq!(figures(&sync(&["--delete"])), [0, 5, 1]);
    let down = ["blob", "sync", "az://mirror/m", "down", "--delete"];
    write(&folder.path().join("down"), "stale", b"x");
    assert_eq!(figures(&server.json(&down)), [5, 0, 1]);
    assert!(tree(&folder.path().join("down")) == tree(&up));
    assert_eq!(figures(&server.json(&down)), [0, 5, 0]);
    // From container to container, by the sums of both.
    let across = ["blob", "sync", "az://mirror/m", "az://second", "--create"];
    assert_eq!(figures(&server.json(&across)), [5, 0, 0]);
    assert_eq!(figures(&server.json(&across)), [0, 5, 0]);
    assert_eq!(names(&server, "az://second"), ["a", "b/d", "e", "f", "large"]);
}

#[test]
fn blobs_are_copied_within_the_service_and_removed() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(folder.path());
    let up = folder.path().join("up");
    for name in ["p/1 %.html", "p/2", "pq"] {
        write(&up, name, name.as_bytes());
    }
    server.command(&["blob", "cp", "-r", "up", "az://first", "--create"]);
    server.command(&["blob", "cp", "az://first/pq", "az://first/copy/"]);
    server.command(&["blob", "cp", "-r", "az://first/p", "az://second/to", "--create"]);
    assert_eq!(names(&server, "az://second"), ["to/1 %.html", "to/2"]);
    server.command(&["blob", "cp", "az://second/to/1 %.html", "one"]);
    assert_eq!(std::fs::read(folder.path().join("one")).unwrap(), b"p/1 %.html");
    // What lies below `p` does not begin with `pq`.
    let removed = server.command(&["blob", "rm", "-r", "az://first/p"]);
    let mut lines: Vec<_> = removed.lines().collect();
    lines.sort_unstable();
    assert_eq!(lines, ["removed az://first/p/1 %.html", "removed az://first/p/2"]);
    assert_eq!(server.command(&["blob", "rm", "az://first/pq"]), "removed az://first/pq\n");
    assert_eq!(names(&server, "az://first"), ["copy/pq"]);
    let again = run(folder.path(), &["blob", "rm", "az://first/pq"]);
    assert_eq!(again.status.code(), Some(1));
    assert_eq!(server.json(&["blob", "rm", "-r", "az://second"])["removed"], 2);
    assert_eq!(run(folder.path(), &["blob", "rm", "az://second"]).status.code(), Some(2));
}

#[test]
fn links_are_followed_only_if_asked() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(folder.path());
    let up = folder.path().join("up");
    write(&up, "file", b"x");
    write(&folder.path().join("elsewhere"), "linked", b"x");
    symlink(folder.path().join("elsewhere"), up.join("link")).unwrap();
    symlink(&up, up.join("circle")).unwrap();
    server.command(&["blob", "cp", "-r", "up", "az://plain", "--create"]);
    assert_eq!(names(&server, "az://plain"), ["file"]);
    server.command(&["blob", "cp", "-r", "up", "az://all", "--create", "--follow-links"]);
    assert_eq!(names(&server, "az://all"), ["file", "link/linked"]);
}

#[test]
fn any_endpoint_is_reached_with_a_connection_string_and_over_tls() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start_with(folder.path(), &["--tls", "only"], &[]);
    write(folder.path(), "f", &bytes(2 * BLOCK, 3));
    server.command(&["blob", "cp", "f", "az://things", "--create"]);
    let connection = format!(
        "AccountName=devstoreaccount1;AccountKey={PUBLISHED_KEY};BlobEndpoint=https://{}/devstoreaccount1",
        server.endpoint("blobs")
    );
    let elsewhere = tempfile::tempdir().unwrap();
    let copy = ["blob", "cp", "az://things/f", ".", "--connection", "WHERE"];
    let certificate = folder.path().join("lazuli-data/tls/cert.pem");
    let mut command = lazuli(elsewhere.path(), &copy);
    let copied = command.env("WHERE", connection).env("SSL_CERT_FILE", certificate).output();
    let copied = copied.unwrap();
    assert_eq!(stdout(&copied), "copied 1 blob, 16.0 MiB\n", "{}", stderr(&copied));
    assert!(std::fs::read(elsewhere.path().join("f")).unwrap() == bytes(2 * BLOCK, 3));
}

#[test]
fn patterns_choose_what_is_copied_and_removed() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(folder.path());
    for name in ["a.csv", "b.txt", "old/c.csv"] {
        let path = folder.path().join("tree").join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, name).unwrap();
    }
    server.command(&["blob", "create", "chosen"]);
    let copy = ["blob", "cp", "-r", "tree", "az://chosen/", "--include", "*.csv"];
    server.command(&[&copy[..], &["--exclude", "old/**"]].concat());
    let listed = |server: &Server| {
        let listed = server.json(&["blob", "ls", "-r", "az://chosen"]);
        let blobs = listed["blobs"].as_array().unwrap().clone();
        blobs.iter().map(|blob| blob["name"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(listed(&server), ["a.csv"]);
    server.command(&["blob", "cp", "-r", "tree", "az://chosen/"]);
    let remove = ["blob", "rm", "-r", "az://chosen", "--exclude", "*.txt"];
    let would = server.command(&[&remove[..], &["--dry-run"]].concat());
    assert_eq!(would.lines().count(), 2, "{would}");
    assert_eq!(listed(&server).len(), 3, "nothing is removed yet");
    server.command(&remove);
    assert_eq!(listed(&server), ["b.txt"]);
    let wrong = run(folder.path(), &["blob", "cp", "tree/a.csv", "az://chosen/", "--include", "x"]);
    assert_eq!(wrong.status.code(), Some(2), "{}", stderr(&wrong));
}
