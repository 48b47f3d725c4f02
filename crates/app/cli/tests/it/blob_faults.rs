//! Blobs of a service that lies, breaks off or is hostile: nothing is written that should not be, and what fails is said.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::Output;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};

use crate::program::{PUBLISHED_KEY, lazuli, stderr, stdout};

/// The MD5 sum of `good`.
const GOOD_SUM: &str = "dV+FwnI7s5OBxzeaYEFg2A==";

struct Asked {
    method: String,
    target: String,
    body: Vec<u8>,
}

/// Status, headers and body; none hangs up.
type Answer = Option<(u16, Vec<(&'static str, String)>, Vec<u8>)>;
type Handler = dyn Fn(&Asked) -> Answer + Send + Sync;

/// A service that answers as a test wants it to.
struct Fake {
    endpoint: String,
}

impl Fake {
    fn start(handler: impl Fn(&Asked) -> Answer + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let endpoint = format!("http://{}/fake", listener.local_addr().unwrap());
        let handler: Arc<Handler> = Arc::new(handler);
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let handler = Arc::clone(&handler);
                std::thread::spawn(move || serve(&stream, &*handler));
            }
        });
        Self { endpoint }
    }

    fn run(&self, folder: &Path, arguments: &[&str]) -> Output {
        let mut command = lazuli(folder, arguments);
        command.args(["--endpoint", &self.endpoint]).env("AZURE_STORAGE_KEY", PUBLISHED_KEY);
        command.output().unwrap()
    }
}

fn serve(stream: &TcpStream, handler: &Handler) {
    let mut input = BufReader::new(stream);
    loop {
        let mut head = Vec::new();
        loop {
            let mut line = String::new();
            if input.read_line(&mut line).unwrap_or(0) == 0 {
                return;
            }
            if line.trim().is_empty() {
                break;
            }
            head.push(line);
        }
        let mut first = head[0].split_whitespace().map(str::to_owned);
        let (method, target) = (first.next().unwrap(), first.next().unwrap());
        let length = head.iter().find_map(|line| line.strip_prefix("content-length: "));
        let mut body = vec![0; length.map_or(0, |text| text.trim().parse().unwrap())];
        input.read_exact(&mut body).unwrap();
        let asked = Asked { method, target, body };
        let Some((status, headers, body)) = handler(&asked) else { return };
        let mut text = format!("HTTP/1.1 {status} Said\r\n");
        if !headers.iter().any(|(name, _)| *name == "content-length") {
            text.push_str(&format!("content-length: {}\r\n", body.len()));
        }
        for (name, value) in headers {
            text.push_str(&format!("{name}: {value}\r\n"));
        }
        let mut bytes = format!("{text}\r\n").into_bytes();
        if asked.method != "HEAD" {
            bytes.extend(body);
        }
        if (&mut &*stream).write_all(&bytes).is_err() {
            return;
        }
    }
}

fn headers(size: usize, md5: &str) -> Vec<(&'static str, String)> {
    vec![
        ("content-length", size.to_string()),
        ("content-md5", md5.to_owned()),
        ("etag", "\"0x1\"".to_owned()),
        ("last-modified", "Thu, 01 Jan 2026 00:00:00 GMT".to_owned()),
    ]
}

fn listed(names: &[&str]) -> Vec<u8> {
    let blob = |name: &&str| {
        format!(
            "<Blob><Name>{name}</Name><Properties><Etag>0x1</Etag><Content-Length>4</Content-Length>\
             <Last-Modified>Thu, 01 Jan 2026 00:00:00 GMT</Last-Modified></Properties></Blob>"
        )
    };
    let blobs: String = names.iter().map(blob).collect();
    format!("<EnumerationResults><Blobs>{blobs}</Blobs><NextMarker/></EnumerationResults>").into()
}

fn files(folder: &Path) -> Vec<String> {
    let mut names: Vec<String> = std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}

#[test]
fn content_with_another_sum_never_becomes_a_file() {
    let folder = tempfile::tempdir().unwrap();
    let fake = Fake::start(|asked| {
        let is_good = asked.target.ends_with("/good");
        let body = if is_good { "good" } else { "evil" };
        Some((200, headers(4, GOOD_SUM), body.into()))
    });
    let good = fake.run(folder.path(), &["blob", "cp", "az://c/good", "."]);
    assert!(good.status.success(), "{}", stderr(&good));
    assert_eq!(stdout(&good), "copied 1 blob, 4 B\n");
    std::fs::write(folder.path().join("evil"), "before").unwrap();
    let evil = fake.run(folder.path(), &["blob", "cp", "az://c/evil", "."]);
    assert_eq!(evil.status.code(), Some(1));
    assert!(stderr(&evil).contains("another MD5 sum"), "{}", stderr(&evil));
    assert_eq!(files(folder.path()), ["evil", "good"]);
    assert_eq!(std::fs::read(folder.path().join("evil")).unwrap(), b"before");
}

#[test]
fn ranges_of_a_large_blob_are_checked_as_a_whole() {
    const BLOCK: usize = 8 << 20;
    let folder = tempfile::tempdir().unwrap();
    let fake = Fake::start(|asked| {
        let size = if asked.target.ends_with("/even") { 2 * BLOCK } else { 2 * BLOCK + 1 };
        match asked.method.as_str() {
            "HEAD" => Some((200, headers(size, GOOD_SUM), Vec::new())),
            _ => Some((206, Vec::new(), vec![7; BLOCK])),
        }
    });
    for (name, reason) in [("even", "another MD5 sum"), ("uneven", "another range")] {
        let refused = fake.run(folder.path(), &["blob", "cp", &format!("az://c/{name}"), "."]);
        assert_eq!(refused.status.code(), Some(1));
        let said = stderr(&refused);
        assert!(said.contains(reason) && said.ends_with("error: 1 of 1 failed\n"), "{said}");
        assert!(files(folder.path()).is_empty(), "{:?}", files(folder.path()));
    }
}

#[test]
fn no_name_of_a_list_is_written_outside_the_folder() {
    let folder = tempfile::tempdir().unwrap();
    let outside = tempfile::tempdir().unwrap();
    let names =
        ["../evil", "/tmp/evil", "a/../../evil", "a\\..\\evil", "a//b", "link/evil", "ok/x"];
    let fake = Fake::start(move |asked| {
        let body = if asked.target.contains("comp=list") { listed(&names) } else { b"good".into() };
        Some((200, Vec::new(), body))
    });
    let target = folder.path().join("into");
    std::fs::create_dir(&target).unwrap();
    symlink(outside.path(), target.join("link")).unwrap();
    let done = fake.run(folder.path(), &["blob", "cp", "--recursive", "az://c", "into"]);
    assert_eq!(done.status.code(), Some(1));
    let said = stderr(&done);
    assert!(said.ends_with("error: 6 of 7 failed\n"), "{said}");
    assert!(said.contains("could lead out") && said.contains("symbolic link"), "{said}");
    assert_eq!(files(folder.path()), ["into"]);
    assert_eq!(files(&target), ["link", "ok"]);
    assert!(files(outside.path()).is_empty());
    assert_eq!(std::fs::read(target.join("ok/x")).unwrap(), b"good");
    // A synchronization that could not transfer everything removes nothing.
    std::fs::write(target.join("mine"), "mine").unwrap();
    let synced = fake.run(folder.path(), &["blob", "sync", "--delete", "az://c", "into"]);
    assert_eq!(synced.status.code(), Some(1));
    assert!(stderr(&synced).contains("nothing was removed"), "{}", stderr(&synced));
    assert!(target.join("mine").exists());
}

#[test]
fn a_busy_service_and_a_lost_connection_are_asked_again() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("f.txt"), "good").unwrap();
    let count = Arc::new(AtomicU32::new(0));
    let taken = Arc::new(Mutex::new(Vec::new()));
    let (attempts, bodies) = (Arc::clone(&count), Arc::clone(&taken));
    let fake = Fake::start(move |asked| match attempts.fetch_add(1, Ordering::SeqCst) {
        0 => Some((503, vec![("x-ms-error-code", "ServerBusy".to_owned())], Vec::new())),
        1 => None,
        _ => {
            bodies.lock().unwrap().push(asked.body.clone());
            Some((201, Vec::new(), Vec::new()))
        }
    });
    let done = fake.run(folder.path(), &["blob", "cp", "f.txt", "az://c/"]);
    assert!(done.status.success(), "{}", stderr(&done));
    assert_eq!(count.load(Ordering::SeqCst), 3);
    assert_eq!(*taken.lock().unwrap(), [b"good"]);
}

#[test]
fn what_is_refused_is_said_and_counted() {
    let folder = tempfile::tempdir().unwrap();
    for number in 0..150 {
        std::fs::write(folder.path().join(format!("{number}")), "x").unwrap();
    }
    let fake = Fake::start(|_| {
        let body = "<Error><Code>ContainerNotFound</Code><Message>There is none.\nTime:x</Message></Error>";
        Some((404, Vec::new(), body.into()))
    });
    let done = fake.run(folder.path(), &["blob", "cp", "-r", ".", "az://c", "--parallel", "4"]);
    assert_eq!(done.status.code(), Some(1));
    let said = stderr(&done);
    assert!(said.contains("There is none (ContainerNotFound)"), "{said}");
    assert!(said.contains("error: gave up after 10"), "{said}");
    for bad in [&["blob", "cp", "a", "b"][..], &["blob", "rm", "a"], &["blob", "ls", "az://A"]] {
        assert_eq!(fake.run(folder.path(), bad).status.code(), Some(2), "{bad:?}");
    }
}

#[test]
fn a_synchronization_is_timed_from_its_beginning() {
    let folder = tempfile::tempdir().unwrap();
    let fake = Fake::start(|_| {
        std::thread::sleep(std::time::Duration::from_millis(700));
        Some((200, vec![("content-type", "application/xml".to_owned())], listed(&[])))
    });
    let synced = fake.run(folder.path(), &["blob", "sync", "--json", "az://c", "into"]);
    assert!(synced.status.success(), "{}", stderr(&synced));
    let answer: serde_json::Value = serde_json::from_str(&stdout(&synced)).unwrap();
    assert!(answer["seconds"].as_f64().unwrap() >= 0.7, "{answer}");
}
