//! A server on a disk that gets full: by its own data, then to the last byte by somebody else.
//!
//! It needs a small file system of its own, which only root may mount: `cargo xtask crash disk-full` runs it. Where
//! mounting is not allowed it says so and ends.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use crate::program::{ACCOUNT, PUBLISHED_KEY, Server, ask};

const DISK: &str = "size=200m";
const BLOB_BYTES: usize = 1024 * 1024;
const ENTITY_BYTES: usize = 30_000;
/// How long anything may take that is not to take long.
const PATIENCE: Duration = Duration::from_secs(60);
const AT_ONCE: Duration = Duration::from_secs(3);

/// A file system in memory. Unmounted when dropped.
struct Disk(PathBuf);

impl Disk {
    fn mount(path: &Path) -> Option<Self> {
        std::fs::create_dir(path).unwrap();
        let mut mount = Command::new("mount");
        mount.args(["-t", "tmpfs", "-o", DISK, "tmpfs"]).arg(path);
        let is_mounted = mount.output().is_ok_and(|output| output.status.success());
        is_mounted.then(|| Self(path.to_owned()))
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("-l").arg(&self.0).status();
    }
}

/// A signed request to the Blobs front.
fn blob(server: &Server, method: &str, path: &str, query: &str, body: &str) -> u16 {
    let mark = if query.is_empty() { "" } else { "?" };
    let path = format!("/{ACCOUNT}/{path}{mark}{query}");
    server.blobs(method, &path, &[("x-ms-blob-type", "BlockBlob")], body).0
}

fn put_blob(server: &Server, number: usize) -> u16 {
    blob(server, "PUT", &format!("box/blob-{number:04}"), "", &"b".repeat(BLOB_BYTES))
}

fn entity(number: usize) -> String {
    format!("/{ACCOUNT}/things(PartitionKey='p',RowKey='{number:04}')")
}

fn insert(server: &Server, number: usize) -> u16 {
    let text = format!("{number:05}").repeat(ENTITY_BYTES / 5);
    let body = format!(r#"{{"PartitionKey":"p","RowKey":"{number:04}","Text":"{text}"}}"#);
    server.tables(PUBLISHED_KEY, "POST", &format!("/{ACCOUNT}/things"), &body).0
}

/// Repeats until it is refused, and says how often it went well and how long the refusal took.
fn until_refused(mut request: impl FnMut(usize) -> u16) -> (usize, Duration) {
    for number in 0..2_000 {
        let began = Instant::now();
        match request(number) {
            201 => {}
            503 => return (number, began.elapsed()),
            status => panic!("status {status} at {number}"),
        }
    }
    panic!("the disk does not get full");
}

fn until(what: &str, mut is_so: impl FnMut() -> bool) -> Duration {
    let began = Instant::now();
    while !is_so() {
        assert!(began.elapsed() < PATIENCE, "{what}");
        std::thread::sleep(Duration::from_millis(20));
    }
    began.elapsed()
}

/// Takes what is left of the disk.
fn fill(path: &Path) {
    let mut file = std::fs::File::create(path).unwrap();
    let piece = vec![1; 64 * 1024];
    while file.write_all(&piece).is_ok() {}
    while file.write_all(&[1]).is_ok() {}
}

fn health(server: &Server) -> (u16, String) {
    ask(&server.endpoint("admin"), "GET", "/healthz", &[], "")
}

fn check_all(server: &Server, blobs: std::ops::Range<usize>, entities: std::ops::Range<usize>) {
    for number in blobs {
        let path = format!("box/blob-{number:04}");
        assert_eq!(blob(server, "GET", &path, "", ""), 200, "{path}");
    }
    for number in entities {
        let (status, body) = server.tables(PUBLISHED_KEY, "GET", &entity(number), "");
        let text = format!("{number:05}").repeat(ENTITY_BYTES / 5);
        assert!(status == 200 && body.contains(&text), "{}", entity(number));
    }
}

#[test]
#[ignore = "mounts a file system: cargo xtask crash disk-full"]
fn a_full_disk_serves_reads_and_deletions_and_comes_back() {
    let folder = tempfile::tempdir().unwrap();
    let Some(disk) = Disk::mount(&folder.path().join("disk")) else {
        return println!("skipped: this user may not mount a file system");
    };
    let data = disk.0.join("data");
    let flags = ["--data", data.to_str().unwrap()];
    let mut server = Server::start_with(folder.path(), &flags, &[]);
    assert_eq!(blob(&server, "PUT", "box", "restype=container", ""), 201);
    let made = format!("/{ACCOUNT}/Tables");
    assert_eq!(server.tables(PUBLISHED_KEY, "POST", &made, r#"{"TableName":"things"}"#).0, 201);
    for number in 0..200 {
        assert_eq!(insert(&server, number), 201);
    }
    let (blobs, took) = until_refused(|number| put_blob(&server, number));
    println!("full after {blobs} blobs; the refusal took {took:?}");
    assert!(took < AT_ONCE);
    let (more, took) = until_refused(|number| insert(&server, 200 + number));
    let entities = 200 + more;
    println!("and after {entities} entities; the refusal took {took:?}");
    let (status, text) = health(&server);
    print!("healthz: {status} {text}");
    assert!(status == 503 && text.contains("shard-0001 full"), "{text}");
    check_all(&server, 0..blobs, 0..entities);

    let filler = disk.0.join("filler");
    fill(&filler);
    println!("somebody else took the rest of the disk");
    check_all(&server, 0..blobs, 0..entities);
    let refused = Instant::now();
    assert_eq!(insert(&server, 9_000), 503);
    println!("a write is refused in {:?}", refused.elapsed());
    let took = until("a deletion on a full disk", || {
        (200..300).contains(&blob(&server, "DELETE", "box/blob-0000", "", ""))
    });
    println!("the first deletion was taken after {took:?}; {}", health(&server).1.trim_end());
    for number in 1..blobs / 2 {
        let path = format!("box/blob-{number:04}");
        assert_eq!(blob(&server, "DELETE", &path, "", ""), 202, "{path}");
        assert_eq!(blob(&server, "GET", &path, "", ""), 404, "{path}");
    }
    let took = until("room again", || insert(&server, 9_001) == 201);
    println!("half of the blobs deleted; writes are taken {took:?} later");
    std::fs::remove_file(&filler).unwrap();
    let took = until("well again", || health(&server).0 == 200);
    println!("the rest of the disk given back; all is well after {took:?}");
    check_all(&server, blobs / 2..blobs, 0..entities);
    server.signal("-KILL");
    server.wait();
    drop(server);
    let server = Server::start_with(folder.path(), &flags, &[]);
    check_all(&server, blobs / 2..blobs, 0..entities);
    assert_eq!(health(&server), (200, "ok\n".to_owned()));
    println!(
        "killed and started again: {} blobs, {entities} entities, none lost",
        blobs - blobs / 2
    );
}
