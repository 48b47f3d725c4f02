//! Exports and imports that are interrupted go on where they were: nothing is missing, nothing is doubled.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::{Duration, Instant};

use crate::program::{PUBLISHED_KEY, Server, lazuli, run, stderr, stdout};
use serde_json::Value;

const PATIENCE: Duration = Duration::from_secs(60);

/// Lines of many partitions, some with several entities in a row.
fn lines(from: usize, to: usize) -> String {
    let line = |n: usize| {
        let partition = n / 3 % 50;
        format!("{{\"PartitionKey\":\"p{partition:02}\",\"RowKey\":\"{n:05}\",\"N\":{n}}}\n")
    };
    (from..to).map(line).collect()
}

fn wait_until(what: &str, mut is_so: impl FnMut() -> bool) {
    let began = Instant::now();
    while !is_so() {
        assert!(began.elapsed() < PATIENCE, "{what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// A number in a progress file; none while there is no file.
fn kept(path: &Path, name: &str) -> Option<u64> {
    let text = std::fs::read_to_string(path).ok()?;
    serde_json::from_str::<Value>(&text).unwrap()["at"][name].as_u64()
}

fn end(mut child: Child) {
    child.kill().unwrap();
    child.wait().unwrap();
}

fn count(server: &Server, table: &str) -> usize {
    server.command(&["table", "export", table, "--select", "RowKey"]).lines().count()
}

#[test]
fn a_killed_import_goes_on_with_nothing_missing_and_nothing_doubled() {
    const HALF: usize = 700;
    const ALL: usize = 1500;
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(folder.path());
    let progress = folder.path().join("import.progress");
    // An insert that is made twice would be refused, so this mode proves that nothing is doubled.
    let import = [
        "table",
        "import",
        "things",
        "--create",
        "--mode",
        "insert",
        "--progress",
        "import.progress",
        "--json",
    ];
    let mut child =
        lazuli(folder.path(), &import).stdin(Stdio::piped()).stdout(Stdio::null()).spawn().unwrap();
    let mut input = child.stdin.take().unwrap();
    let half = lines(0, HALF);
    input.write_all(half.as_bytes()).unwrap();
    input.write_all(b"{\"PartitionKey\":\"torn").unwrap();
    let done = || kept(&progress, "offset") == Some(half.len() as u64);
    wait_until("the half is not written", done);
    end(child);
    assert_eq!(count(&server, "things"), HALF);

    std::fs::write(folder.path().join("all.jsonl"), lines(0, ALL)).unwrap();
    let resume = |from: &str| {
        let mut command: Command = lazuli(folder.path(), &[&import[..], &["--resume"]].concat());
        command.stdin(std::fs::File::open(folder.path().join(from)).unwrap());
        command.output().unwrap()
    };
    // As if the last second had not been kept: everything is sent again, and found to be there.
    let text = std::fs::read_to_string(&progress).unwrap();
    let mut early: Value = serde_json::from_str(&text).unwrap();
    early["at"] = serde_json::json!({ "offset": 0, "line": 1, "written": 0, "skipped": 0 });
    std::fs::write(&progress, early.to_string()).unwrap();
    let resumed = resume("all.jsonl");
    assert!(resumed.status.success(), "{}", stderr(&resumed));
    let summary: Value = serde_json::from_str(&stdout(&resumed)).unwrap();
    assert_eq!(summary["written"], ALL);
    assert!(!progress.exists());
    let exported = server.command(&["table", "export", "things", "--select", "N"]);
    let mut found: Vec<&str> = exported.lines().collect();
    let expected = lines(0, ALL);
    let mut expected: Vec<&str> = expected.lines().collect();
    found.sort_unstable();
    expected.sort_unstable();
    assert_eq!(found, expected);
}

#[test]
fn a_resumed_insert_still_refuses_what_is_another_entity() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(folder.path());
    std::fs::write(folder.path().join("in.jsonl"), lines(0, 20) + "broken\n").unwrap();
    let import = ["table", "import", "things", "in.jsonl", "--create", "--mode", "insert"];
    assert_eq!(run(folder.path(), &import).status.code(), Some(1));
    assert_eq!(count(&server, "things"), 20);
    let other = lines(0, 20) + "{\"PartitionKey\":\"p00\",\"RowKey\":\"00000\",\"N\":7}\n";
    std::fs::write(folder.path().join("in.jsonl"), other).unwrap();
    let refused = run(folder.path(), &[&import[..], &["--resume"]].concat());
    assert!(stderr(&refused).starts_with("error: line 21: "), "{}", stderr(&refused));
    // Another table has its own progress with the same file, and another file is not gone on with.
    let elsewhere = ["table", "import", "others", "in.jsonl", "--create", "--mode", "insert"];
    let refused = run(folder.path(), &elsewhere);
    assert!(stderr(&refused).starts_with("error: line 21: "), "{}", stderr(&refused));
    assert_eq!(count(&server, "others"), 20);
    assert!(folder.path().join("in.jsonl.2.progress").exists());
    std::fs::write(folder.path().join("in.jsonl"), "short\n").unwrap();
    let changed = run(folder.path(), &[&import[..], &["--resume"]].concat());
    assert!(stderr(&changed).contains("--restart"), "{}", stderr(&changed));
}

#[test]
fn an_import_of_csv_that_was_interrupted_before_its_first_entity_goes_on() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(folder.path());
    let rows: String = (0..50).map(|n| format!("p,{n:03},{n}\n")).collect();
    std::fs::write(folder.path().join("in.csv"), format!("PartitionKey,RowKey,N\n{rows}")).unwrap();
    let import = ["table", "import", "things", "in.csv", "--create"];
    // What is there as soon as the first batch is sent, and stays if the program is ended then.
    let done = run(folder.path(), &[&import[..], &["--progress", "kept"]].concat());
    assert!(done.status.success(), "{}", stderr(&done));
    let url = server.endpoint("tables");
    let work = serde_json::json!({
        "import": format!("http://{url}/devstoreaccount1"), "account": "devstoreaccount1",
        "table": "things", "format": "csv", "mode": "replace",
    });
    let at = serde_json::json!({ "offset": 0, "line": 1, "written": 0, "skipped": 0 });
    let kept = serde_json::json!({ "work": work, "at": at });
    std::fs::write(folder.path().join("in.csv.progress"), kept.to_string()).unwrap();
    let refused = run(folder.path(), &import);
    assert!(stderr(&refused).contains("was interrupted"), "{}", stderr(&refused));
    let resumed = run(folder.path(), &[&import[..], &["--resume"]].concat());
    assert!(resumed.status.success(), "{}", stderr(&resumed));
    assert_eq!(count(&server, "things"), 50);
    assert!(!folder.path().join("in.csv.progress").exists());
}

/// A service that says what it was asked for and waits to be told what to answer.
struct Script {
    port: u16,
    asked: Receiver<String>,
    answers: Sender<String>,
}

impl Script {
    fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let (ask, asked) = channel();
        let (answers, answer) = channel::<String>();
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let mut stream = stream.unwrap();
                while let Some(line) = request_line(&mut stream) {
                    ask.send(line).unwrap();
                    let Ok(answer) = answer.recv() else { return };
                    // No answer at all ends the connection.
                    if answer.is_empty() || stream.write_all(answer.as_bytes()).is_err() {
                        break;
                    }
                }
            }
        });
        Self { port, asked, answers }
    }

    fn asked(&self) -> String {
        self.asked.recv_timeout(PATIENCE).unwrap()
    }

    fn answer(&self, status: &str, body: &str) {
        let length = body.len();
        let answer = format!("HTTP/1.1 {status}\r\ncontent-length: {length}\r\n\r\n{body}");
        self.answers.send(answer).unwrap();
    }

    fn page(&self, number: usize, next: bool) {
        let body = format!(
            "{{\"value\":[{{\"PartitionKey\":\"p\",\"RowKey\":\"{number}\",\"P{number}\":\"x\"}}]}}"
        );
        let next = match next {
            true => format!(
                "x-ms-continuation-NextPartitionKey: 1!a/{number}+=\r\n\
                 x-ms-continuation-NextRowKey: r {number}\r\n"
            ),
            false => String::new(),
        };
        let length = body.len();
        let answer = format!("HTTP/1.1 200 OK\r\n{next}content-length: {length}\r\n\r\n{body}");
        self.answers.send(answer).unwrap();
    }
}

/// Reads a request and returns its first line; none at the end.
fn request_line(stream: &mut TcpStream) -> Option<String> {
    let mut input = BufReader::new(stream);
    let mut first = String::new();
    input.read_line(&mut first).ok().filter(|read| *read > 0)?;
    let mut length = 0;
    loop {
        let mut line = String::new();
        input.read_line(&mut line).ok().filter(|read| *read > 0)?;
        if let Some(value) = line.strip_prefix("content-length: ") {
            length = value.trim().parse().unwrap();
        }
        if line == "\r\n" {
            input.read_exact(&mut vec![0; length]).ok()?;
            return Some(first);
        }
    }
}

#[test]
fn a_killed_export_goes_on_at_its_page_and_a_busy_service_is_asked_again() {
    let folder = tempfile::tempdir().unwrap();
    let service = Script::start();
    let endpoint = format!("http://127.0.0.1:{}/dev", service.port);
    let export = ["table", "export", "things", "out.csv", "--endpoint", &endpoint];
    let start = |more: &[&str]| {
        let mut command = lazuli(folder.path(), &[&export[..], more].concat());
        command.env("AZURE_STORAGE_KEY", PUBLISHED_KEY).stdout(Stdio::null());
        command.spawn().unwrap()
    };
    let child = start(&[]);
    assert!(service.asked().starts_with("GET /dev/things() HTTP/1.1"));
    service
        .answers
        .send("HTTP/1.1 503 Busy\r\nretry-after: 1\r\ncontent-length: 0\r\n\r\n".to_owned())
        .unwrap();
    assert!(service.asked().starts_with("GET /dev/things() HTTP/1.1"));
    service.page(1, true);
    let second = "GET /dev/things()?NextPartitionKey=1%21a%2F1%2B%3D&NextRowKey=r%201 HTTP/1.1\r\n";
    assert_eq!(service.asked(), second);
    // More than a second after it began, so the first page is kept.
    let progress = folder.path().join("out.csv.progress");
    assert_eq!(kept(&progress, "entities"), Some(1));
    end(child);
    assert!(!folder.path().join("out.csv").exists());
    // What was written behind the last page that is kept does not count.
    let part = folder.path().join("out.csv.part");
    let torn = std::fs::read_to_string(&part).unwrap() + "{\"PartitionKey\":\"torn";
    std::fs::write(&part, torn).unwrap();
    assert_eq!(run_with_key(folder.path(), &export), Some(1), "it has to be asked for");

    // The answer that nobody waits for any more.
    service.page(2, true);
    let mut child = start(&["--resume"]);
    assert_eq!(service.asked(), second);
    service.page(2, true);
    assert!(service.asked().contains("NextPartitionKey=1%21a%2F2%2B%3D"));
    service.page(3, false);
    assert!(child.wait().unwrap().success());
    let csv = std::fs::read_to_string(folder.path().join("out.csv")).unwrap();
    let rows = "PartitionKey,RowKey,P1,P1@type,P2,P2@type,P3,P3@type\n\
                p,1,x,Edm.String,,,,\np,2,,,x,Edm.String,,\np,3,,,,,x,Edm.String\n";
    assert_eq!(csv, rows);
    assert!(!progress.exists() && !part.exists());
}

#[test]
fn an_insert_whose_answer_got_lost_is_found_to_be_made() {
    let folder = tempfile::tempdir().unwrap();
    let service = Script::start();
    let endpoint = format!("http://127.0.0.1:{}/dev", service.port);
    std::fs::write(folder.path().join("in.jsonl"), lines(0, 1)).unwrap();
    let import =
        ["table", "import", "things", "in.jsonl", "--mode", "insert", "--endpoint", &endpoint];
    for there in ["0", "7"] {
        let mut command = lazuli(folder.path(), &import);
        command.env("AZURE_STORAGE_KEY", PUBLISHED_KEY).stdout(Stdio::null()).stderr(Stdio::null());
        let mut child = command.spawn().unwrap();
        assert!(service.asked().starts_with("POST /dev/things HTTP/1.1"));
        service.answers.send(String::new()).unwrap();
        assert!(service.asked().starts_with("POST /dev/things HTTP/1.1"));
        service.answer("409 Conflict", r#"{"odata.error":{"code":"EntityAlreadyExists"}}"#);
        let get = "GET /dev/things(PartitionKey='p00',RowKey='00000') HTTP/1.1\r\n";
        assert_eq!(service.asked(), get);
        let entity = format!(r#"{{"N":{there},"PartitionKey":"p00","RowKey":"00000"}}"#);
        service.answer("200 OK", &entity);
        let expected = if there == "0" { 0 } else { 1 };
        assert_eq!(child.wait().unwrap().code(), Some(expected), "{there}");
    }
}

fn run_with_key(folder: &Path, arguments: &[&str]) -> Option<i32> {
    let mut command = lazuli(folder, arguments);
    command.env("AZURE_STORAGE_KEY", PUBLISHED_KEY).output().unwrap().status.code()
}
