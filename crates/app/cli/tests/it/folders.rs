//! Folders that are missing, older or swapped when the server starts: nothing that was answered is lost, what is in doubt
//! is not served, all the rest is, and the operator is told what to do.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use crate::program::{ACCOUNT, PUBLISHED_KEY, Server, ask, lazuli, run, stderr, stdout};
use serde_json::Value;

/// Larger than what is kept in rows.
const BLOB_BYTES: usize = 200_000;
/// How long anything here may take on a busy machine.
const PATIENCE: Duration = Duration::from_secs(60);
/// How long is asked for what must not be served.
const WITHHELD_FOR: Duration = Duration::from_secs(2);
const FIRST: &str = "shard-0001";
const SECOND: &str = "two";

/// A data folder, with what is done to its parts while no server runs.
struct Place {
    folder: tempfile::TempDir,
}

impl Place {
    fn new() -> Self {
        Self { folder: tempfile::tempdir().unwrap() }
    }

    fn path(&self) -> &Path {
        self.folder.path()
    }

    fn data(&self, part: &str) -> PathBuf {
        self.path().join("lazuli-data").join(part)
    }

    fn start(&self) -> Server {
        Server::start_with(self.path(), &["--blob-collect-interval", "1s"], &[])
    }

    fn copy(&self, part: &str, to: &str) {
        let (from, to) = (self.data(part), self.path().join(to));
        assert!(Command::new("cp").arg("-a").args([&from, &to]).status().unwrap().success());
    }

    /// Puts a copy where the part is, which goes.
    fn put_back(&self, from: &str, part: &str) {
        std::fs::remove_dir_all(self.data(part)).unwrap();
        let (from, to) = (self.path().join(from), self.data(part));
        assert!(Command::new("cp").arg("-a").args([&from, &to]).status().unwrap().success());
    }

    fn log(&self) -> String {
        std::fs::read_to_string(self.path().join("stderr.txt")).unwrap()
    }

    fn run(&self, arguments: &[&str]) -> std::process::Output {
        run(self.path(), arguments)
    }

    fn findings(&self) -> Vec<(String, String)> {
        let found: Value =
            serde_json::from_str(&stdout(&self.run(&["fsck", "--json"]))).unwrap_or_default();
        let one = |it: &Value| {
            let text = |name: &str| it[name].as_str().unwrap().to_owned();
            (text("shard"), text("code"))
        };
        found["findings"].as_array().unwrap().iter().map(one).collect()
    }
}

fn stop(mut server: Server) {
    server.signal("-TERM");
    assert!(server.wait().success());
}

fn content(name: &str) -> Vec<u8> {
    let seed = name.bytes().fold(7u32, |sum, byte| sum.wrapping_mul(31) + u32::from(byte));
    (0..BLOB_BYTES as u32).map(|at| (at ^ seed).wrapping_mul(2_654_435_761) as u8).collect()
}

fn put_blob(place: &Place, server: &Server, name: &str) {
    std::fs::write(place.path().join(name), content(name)).unwrap();
    let target = format!("az://files/{name}");
    server.command(&["blob", "cp", name, &target, "--create", "--account", ACCOUNT]);
}

/// Whether the blob is served as it was put; none if it is not served.
fn blob(place: &Place, name: &str) -> Option<bool> {
    let done = download(place, name).output().unwrap();
    done.status
        .success()
        .then(|| std::fs::read(place.path().join("down")).unwrap() == content(name))
}

/// The command that reads a blob into the file `down`.
fn download(place: &Place, name: &str) -> Command {
    let _ = std::fs::remove_file(place.path().join("down"));
    let source = format!("az://files/{name}");
    lazuli(place.path(), &["blob", "cp", &source, "down", "--account", ACCOUNT])
}

/// Whether a blob cannot be read. The command asks again for a while, longer than anybody here waits for it.
fn is_withheld(place: &Place, name: &str) -> bool {
    let mut asking = download(place, name).spawn().unwrap();
    let began = Instant::now();
    while began.elapsed() < WITHHELD_FOR {
        if let Some(status) = asking.try_wait().unwrap() {
            return !status.success();
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    asking.kill().unwrap();
    asking.wait().unwrap();
    true
}

fn assert_blob(place: &Place, name: &str) {
    assert_eq!(blob(place, name), Some(true), "{name}: {}", place.log());
}

fn create_table(server: &Server, name: &str) {
    let body = format!(r#"{{"TableName":"{name}"}}"#);
    let (status, body) = server.tables(PUBLISHED_KEY, "POST", "/devstoreaccount1/Tables", &body);
    assert_eq!(status, 201, "{body}");
}

fn put_row(server: &Server, table: &str, row: u32) {
    let path = format!("/devstoreaccount1/{table}(PartitionKey='p',RowKey='{row}')");
    assert_eq!(server.tables(PUBLISHED_KEY, "PUT", &path, r#"{"a":"b"}"#).0, 204);
}

fn row(server: &Server, table: &str, row: u32) -> u16 {
    let path = format!("/devstoreaccount1/{table}(PartitionKey='p',RowKey='{row}')");
    server.tables(PUBLISHED_KEY, "GET", &path, "").0
}

/// A table on the first shard, one on the second.
fn two_shards(server: &Server) {
    server.command(&["shard", "add", SECOND]);
    for (table, shard) in [("ones", FIRST), ("twos", SECOND)] {
        create_table(server, table);
        let list = server.json(&["partition", "list"]);
        let all = list["partitions"].as_array().unwrap();
        let of_table = |it: &&Value| it["map"].as_str().unwrap().ends_with(table);
        let partition = all.iter().find(of_table).unwrap();
        if partition["shard"] != shard {
            server.command(&["partition", "move", &partition["id"].to_string(), "--to", shard]);
        }
        put_row(server, table, 1);
    }
}

fn shard(server: &Server, name: &str) -> Value {
    let list = server.json(&["shard", "list"]);
    list["shards"].as_array().unwrap().iter().find(|it| it["name"] == name).unwrap().clone()
}

fn page(server: &Server, path: &str) -> String {
    ask(&server.endpoint("admin"), "GET", path, &[], "").1
}

fn metric(server: &Server, name: &str) -> f64 {
    let page = page(server, "/metrics");
    let line = page.lines().find_map(|line| line.strip_prefix(name));
    line.unwrap_or_else(|| panic!("no metric {name}")).trim().parse().unwrap()
}

fn wait_until(what: &str, is: impl Fn() -> bool) {
    let began = Instant::now();
    while !is() {
        assert!(began.elapsed() < PATIENCE, "{what}");
        std::thread::sleep(Duration::from_millis(50));
    }
}

/// Waits until the catalog knows how far everything has come.
fn wait_for_floors(server: &Server) {
    wait_until("nothing is recorded", || metric(server, "lazuli_floors_behind ") == 0.0);
}

fn block_files(place: &Place) -> usize {
    let folders = std::fs::read_dir(place.data("blocks")).unwrap().flatten();
    let folders = folders.filter(|it| it.path().is_dir());
    let files = folders.flat_map(|it| std::fs::read_dir(it.path()).unwrap().flatten());
    files.filter(|it| it.file_name() != "swept").count()
}

#[test]
fn a_missing_folder_of_blocks_is_told_and_no_number_comes_again() {
    let place = Place::new();
    let server = place.start();
    for name in ["old-1", "old-2", "old-3"] {
        put_blob(&place, &server, name);
    }
    stop(server);
    std::fs::remove_dir_all(place.data("blocks")).unwrap();
    let server = place.start();
    for name in ["new-1", "new-2", "new-3"] {
        put_blob(&place, &server, name);
    }
    // What is left of the old ones is garbage now, and names the files that they had.
    for name in ["old-1", "old-2", "old-3"] {
        server.command(&["blob", "rm", &format!("az://files/{name}")]);
    }
    assert!(place.log().contains("block files"), "{}", place.log());
    assert!(page(&server, "/healthz").contains("blocks"), "{}", page(&server, "/healthz"));
    assert_eq!(server.json(&["status"])["blocks"], "in doubt");
    assert_eq!(metric(&server, "lazuli_block_files_removed_total "), 0.0);
    let preview = server.command(&["blocks", "repair"]);
    assert!(preview.contains("lazuli blocks repair --accept"), "{preview}");
    server.command(&["blocks", "repair", "--accept"]);
    assert_eq!(page(&server, "/healthz"), "ok\n");
    wait_until("garbage is not collected", || {
        metric(&server, "lazuli_block_files_removed_total ") >= 3.0
    });
    for name in ["new-1", "new-2", "new-3"] {
        assert_blob(&place, name);
    }
    stop(server);
    assert_eq!(place.findings(), []);
}

#[test]
fn an_older_folder_of_blocks_is_told_and_nothing_is_swept_until_it_is_accepted() {
    let place = Place::new();
    let server = place.start();
    put_blob(&place, &server, "first");
    stop(server);
    place.copy("blocks", "older");
    let server = place.start();
    put_blob(&place, &server, "second");
    drop(server);
    place.copy("blocks", "newer");
    place.put_back("older", "blocks");
    assert!(place.findings().contains(&("blocks".to_owned(), "folder-older".to_owned())));
    let server = place.start();
    assert!(page(&server, "/healthz").contains("blocks"));
    put_blob(&place, &server, "third");
    assert_blob(&place, "first");
    assert_blob(&place, "third");
    assert!(is_withheld(&place, "second"));
    stop(server);
    // The right folder comes back, over what was written meanwhile.
    let (from, to) = (place.path().join("newer/."), place.data("blocks"));
    assert!(Command::new("cp").arg("-a").args([&from, &to]).status().unwrap().success());
    let server = place.start();
    assert_eq!(page(&server, "/healthz"), "ok\n");
    for name in ["first", "second", "third"] {
        assert_blob(&place, name);
    }
    stop(server);
    assert_eq!(place.findings(), []);
}

/// An older copy of the first shard's folder: made between two runs, or in the last one; put back after a stop or a kill.
fn older_shard(copied_in_run: bool, killed: bool) {
    let place = Place::new();
    let server = place.start();
    two_shards(&server);
    put_blob(&place, &server, "before");
    let server = if copied_in_run {
        wait_for_floors(&server);
        place.copy(&format!("shards/{FIRST}"), "older");
        server
    } else {
        stop(server);
        place.copy(&format!("shards/{FIRST}"), "older");
        place.start()
    };
    put_row(&server, "ones", 2);
    put_blob(&place, &server, "after");
    put_row(&server, "twos", 2);
    if killed {
        wait_for_floors(&server);
        drop(server);
    } else {
        stop(server);
    }
    place.copy(&format!("shards/{FIRST}"), "newer");
    place.put_back("older", &format!("shards/{FIRST}"));
    assert!(place.findings().contains(&(FIRST.to_owned(), "folder-older".to_owned())));
    let files = block_files(&place);

    for _ in 0..2 {
        let server = place.start();
        assert_eq!(shard(&server, FIRST)["state"], "refused");
        assert_eq!(shard(&server, SECOND)["state"], "online");
        assert!(page(&server, "/healthz").contains(FIRST));
        assert_eq!(metric(&server, "lazuli_shards_refused "), 1.0);
        assert!(place.log().contains("is an older copy"), "{}", place.log());
        assert_eq!((row(&server, "ones", 1), row(&server, "ones", 2)), (503, 503));
        assert_eq!((row(&server, "twos", 1), row(&server, "twos", 2)), (200, 200));
        assert!(is_withheld(&place, "after"));
        // A look at the garbage comes after the sweep.
        std::thread::sleep(Duration::from_millis(1_500));
        drop(server);
    }
    assert_eq!(block_files(&place), files);

    // The right folder comes back, and all is as before.
    place.put_back("newer", &format!("shards/{FIRST}"));
    let server = place.start();
    assert_eq!(page(&server, "/healthz"), "ok\n");
    assert_eq!((row(&server, "ones", 1), row(&server, "ones", 2)), (200, 200));
    assert_blob(&place, "before");
    assert_blob(&place, "after");
    stop(server);
    assert_eq!(place.findings(), []);
}

#[test]
fn an_older_copy_of_a_shard_is_refused_and_its_blobs_stay() {
    older_shard(false, false);
}

#[test]
fn an_older_copy_of_a_shard_is_refused_after_a_kill() {
    older_shard(false, true);
}

#[test]
fn a_copy_of_a_shard_from_the_last_run_is_refused() {
    older_shard(true, false);
}

#[test]
fn a_copy_of_a_shard_from_the_last_run_is_refused_after_a_kill() {
    older_shard(true, true);
}

#[test]
fn an_older_shard_is_taken_only_when_the_operator_says_so() {
    let place = Place::new();
    let server = place.start();
    two_shards(&server);
    stop(server);
    place.copy(&format!("shards/{FIRST}"), "older");
    let server = place.start();
    put_row(&server, "ones", 2);
    stop(server);
    place.put_back("older", &format!("shards/{FIRST}"));
    let server = place.start();
    let preview = server.command(&["shard", "repair", FIRST]);
    assert!(preview.contains("older copy"), "{preview}");
    assert!(preview.contains("tables/devstoreaccount1/ones"), "{preview}");
    assert!(preview.contains(&format!("lazuli shard repair {FIRST} --accept")), "{preview}");
    assert_eq!(row(&server, "ones", 1), 503, "a preview changes nothing");
    let accepted = server.command(&["shard", "repair", FIRST, "--accept"]);
    assert!(accepted.contains("as it is"), "{accepted}");
    assert_eq!((row(&server, "ones", 1), row(&server, "ones", 2)), (200, 404));
    assert_eq!(page(&server, "/healthz"), "ok\n");
    let nothing = server.command(&["shard", "repair", FIRST]);
    assert!(nothing.contains("nothing is wrong"), "{nothing}");
    put_row(&server, "ones", 3);
    drop(server);
    let server = place.start();
    assert_eq!((row(&server, "ones", 1), row(&server, "ones", 3)), (200, 200));
    stop(server);
    assert_eq!(place.findings(), []);
}

#[test]
fn swapped_folders_are_refused_and_told_by_their_names() {
    let place = Place::new();
    let server = place.start();
    two_shards(&server);
    stop(server);
    let (first, second) = (format!("shards/{FIRST}"), format!("shards/{SECOND}"));
    let swap = || {
        std::fs::rename(place.data(&first), place.path().join("aside")).unwrap();
        std::fs::rename(place.data(&second), place.data(&first)).unwrap();
        std::fs::rename(place.path().join("aside"), place.data(&second)).unwrap();
    };
    swap();
    let mut found = place.findings();
    found.sort();
    let swapped = |name: &str| (name.to_owned(), "folder-of-other".to_owned());
    assert_eq!(found, [swapped(FIRST), swapped(SECOND)]);
    let server = place.start();
    for (name, other) in [(FIRST, SECOND), (SECOND, FIRST)] {
        let shard = shard(&server, name);
        assert_eq!(shard["state"], "refused");
        assert!(shard["error"].as_str().unwrap().contains(other), "{shard}");
    }
    assert_eq!((row(&server, "ones", 1), row(&server, "twos", 1)), (503, 503));
    let refused = place.run(&["shard", "repair", FIRST, "--accept"]);
    assert!(!refused.status.success());
    assert!(stderr(&refused).contains("put each folder back"), "{}", stderr(&refused));
    stop(server);
    swap();
    let server = place.start();
    assert_eq!((row(&server, "ones", 1), row(&server, "twos", 1)), (200, 200));
    stop(server);
    assert_eq!(place.findings(), []);
}

/// An older copy of the catalog, from between two runs or from the last one.
fn older_catalog(copied_in_run: bool) {
    let place = Place::new();
    let server = place.start();
    two_shards(&server);
    put_blob(&place, &server, "before");
    let server = if copied_in_run {
        place.copy("catalog", "older");
        server
    } else {
        stop(server);
        place.copy("catalog", "older");
        place.start()
    };
    create_table(&server, "later");
    put_row(&server, "later", 1);
    put_blob(&place, &server, "after");
    stop(server);
    place.copy("catalog", "newer");
    place.put_back("older", "catalog");
    let files = block_files(&place);
    for _ in 0..2 {
        let server = place.start();
        for name in [FIRST, SECOND] {
            let shard = shard(&server, name);
            assert_eq!(shard["state"], "refused");
            assert!(shard["error"].as_str().unwrap().contains("the catalog is"), "{shard}");
        }
        assert_eq!(row(&server, "ones", 1), 503);
        drop(server);
    }
    assert!(place.findings().contains(&(FIRST.to_owned(), "catalog-older".to_owned())));
    assert_eq!(block_files(&place), files);
    place.put_back("newer", "catalog");
    let server = place.start();
    assert_eq!((row(&server, "ones", 1), row(&server, "later", 1)), (200, 200));
    assert_blob(&place, "before");
    assert_blob(&place, "after");
    stop(server);
    assert_eq!(place.findings(), []);
}

#[test]
fn an_older_copy_of_the_catalog_is_refused_by_the_shards() {
    older_catalog(false);
}

#[test]
fn a_copy_of_the_catalog_from_the_last_run_is_refused_by_the_shards() {
    older_catalog(true);
}

#[test]
fn a_missing_catalog_beside_shards_is_refused() {
    let place = Place::new();
    let server = place.start();
    two_shards(&server);
    stop(server);
    std::fs::rename(place.data("catalog"), place.path().join("aside")).unwrap();
    for arguments in [&["serve", "--ports", "free"][..], &["fsck"]] {
        let refused = place.run(arguments);
        assert_eq!(refused.status.code(), Some(1));
        assert!(stderr(&refused).contains("lazuli catalog rebuild"), "{}", stderr(&refused));
        assert!(!place.data("catalog").join("store").exists());
    }
    // An empty folder in its place is no catalog either.
    let _ = std::fs::remove_dir_all(place.data("catalog"));
    std::fs::create_dir(place.data("catalog")).unwrap();
    assert_eq!(place.run(&["fsck"]).status.code(), Some(1));
    std::fs::remove_dir_all(place.data("catalog")).unwrap();
    std::fs::rename(place.path().join("aside"), place.data("catalog")).unwrap();
    let server = place.start();
    assert_eq!((row(&server, "ones", 1), row(&server, "twos", 1)), (200, 200));
    stop(server);
}

#[test]
fn a_lost_catalog_is_made_again_from_the_shards() {
    let place = Place::new();
    let server = place.start();
    two_shards(&server);
    put_blob(&place, &server, "kept");
    let keys = server.json(&["account", "create", "another"]);
    // Partitions with a history: one is cut, one part of it moves.
    let list = server.json(&["partition", "list"]);
    let all = list["partitions"].as_array().unwrap();
    let of_ones = |it: &&Value| it["map"].as_str().unwrap().ends_with("ones");
    let id = all.iter().find(of_ones).unwrap()["id"].to_string();
    put_row(&server, "ones", 2);
    server.command(&["partition", "move", &id, "--to", SECOND]);
    wait_for_floors(&server);
    drop(server);
    std::fs::remove_dir_all(place.data("catalog")).unwrap();

    let preview = place.run(&["catalog", "rebuild"]);
    assert!(preview.status.success(), "{}", stderr(&preview));
    let text = stdout(&preview);
    assert!(text.contains("lazuli catalog rebuild --accept"), "{text}");
    assert!(text.contains(FIRST) && text.contains(SECOND), "{text}");
    assert!(!place.data("catalog").exists(), "a preview changes nothing");
    let rebuilt = place.run(&["catalog", "rebuild", "--accept", "--json"]);
    assert!(rebuilt.status.success(), "{}", stderr(&rebuilt));
    let found: Value = serde_json::from_str(&stdout(&rebuilt)).unwrap();
    assert_eq!(found["problems"], Value::Array(vec![]), "{found}");
    assert_eq!((&found["rebuilt"], &found["differences_left"]), (&true.into(), &0.into()));

    let server = place.start();
    assert_eq!(page(&server, "/healthz"), "ok\n");
    assert_eq!((row(&server, "ones", 1), row(&server, "ones", 2)), (200, 200));
    assert_eq!(row(&server, "twos", 1), 200);
    assert_blob(&place, "kept");
    let accounts = server.json(&["account", "list", "--keys"]);
    let accounts = accounts["accounts"].as_array().unwrap();
    let another = accounts.iter().find(|it| it["name"] == "another").unwrap();
    assert_eq!(another["key1"], keys["key1"]);
    // It goes on as before: new maps, new blobs, moves, another start.
    create_table(&server, "later");
    put_row(&server, "later", 1);
    put_row(&server, "ones", 3);
    put_blob(&place, &server, "more");
    stop(server);
    assert_eq!(place.findings(), []);
    let again = place.run(&["catalog", "rebuild"]);
    assert!(stderr(&again).contains("there is a catalog"), "{}", stderr(&again));
    let server = place.start();
    assert_eq!((row(&server, "ones", 3), row(&server, "later", 1)), (200, 200));
    assert_blob(&place, "kept");
    assert_blob(&place, "more");
    stop(server);
}
