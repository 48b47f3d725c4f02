//! Where copies may come from, what is said to whom there, and what is shown of it.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener};
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Arc, OnceLock};
use std::thread;
use std::time::Duration;

use lazuli_blobs::Limits;
use lazuli_http::client::{OwnAddresses, Sources};

use super::access::signed_for;
use super::raw::Server;

/// Long enough for a request on this machine to arrive.
const MOMENT: Duration = Duration::from_millis(100);

/// Another server, which says the same to everybody and remembers what it was asked.
struct Other {
    address: SocketAddr,
    heads: Receiver<String>,
}

impl Other {
    fn start(answer: impl Into<String>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let (address, answer) = (listener.local_addr().unwrap(), answer.into());
        let (sender, heads) = channel();
        thread::spawn(move || {
            for stream in listener.incoming() {
                let (mut stream, mut head) = (stream.unwrap(), vec![0; 4096]);
                let length = stream.read(&mut head).unwrap_or(0);
                let text = String::from_utf8_lossy(&head[..length]).into_owned();
                let _ = stream.write_all(answer.as_bytes());
                if sender.send(text).is_err() {
                    return;
                }
            }
        });
        Self { address, heads }
    }

    fn hello() -> Self {
        Self::start("HTTP/1.1 200 OK\r\ncontent-length: 5\r\nconnection: close\r\n\r\nhello")
    }

    /// The head of the next request, if there was one.
    fn asked(&self) -> Option<String> {
        self.heads.recv_timeout(MOMENT).ok()
    }
}

/// A server with a container, whose fronts and named hosts are these.
fn server(fronts: &[SocketAddr], hosts: &[&str]) -> Server {
    let own =
        OwnAddresses { fronts: fronts.to_vec(), admins: vec![([127, 0, 0, 1], 10_010).into()] };
    let hosts = hosts.iter().map(|host| (*host).to_owned()).collect();
    let sources = Sources { own: Arc::new(OnceLock::from(own)), hosts };
    let source_timeout = Duration::from_secs(5);
    let server = Server::with_limits(Limits { sources, source_timeout, ..Limits::default() });
    server.done("PUT /dev/con?restype=container");
    server.done("PUT /dev/con/append\nx-ms-blob-type: AppendBlob");
    server.done("PUT /dev/con/page\nx-ms-blob-type: PageBlob\nx-ms-blob-content-length: 512");
    server
}

/// Every operation that reads from a source.
fn operations(source: &str) -> [String; 6] {
    let source = format!("x-ms-copy-source: {source}\nx-ms-copy-source-authorization: Bearer hush");
    let zero = "content-length: 0";
    [
        format!("PUT /dev/con/copy\n{source}"),
        format!("PUT /dev/con/copy\nx-ms-requires-sync: true\n{source}"),
        format!("PUT /dev/con/put\nx-ms-blob-type: BlockBlob\n{zero}\n{source}"),
        format!("PUT /dev/con/block?comp=block&blockid=YQ==\n{zero}\n{source}"),
        format!("PUT /dev/con/append?comp=appendblock\n{zero}\n{source}"),
        format!(
            "PUT /dev/con/page?comp=page\nx-ms-page-write: update\nx-ms-range: bytes=0-511\n\
             x-ms-source-range: bytes=0-511\n{zero}\n{source}"
        ),
    ]
}

#[test]
fn no_port_of_this_machine_is_a_source_but_those_of_the_fronts() {
    let other = Other::hello();
    let server = server(&[([127, 0, 0, 1], 10_000).into()], &["localhost", "127.0.0.1"]);
    let port = other.address.port();
    for host in ["127.0.0.1", "localhost", "127.1", "2130706433", "0.0.0.0", "[::ffff:127.0.0.1]"] {
        for port in [port, 10_010] {
            for operation in operations(&format!("http://{host}:{port}/v1/accounts?keys=true")) {
                assert_eq!(server.refusal(&operation), "403 CannotVerifyCopySource", "{operation}");
            }
        }
    }
    assert_eq!(other.asked(), None);
}

#[test]
fn the_authorization_of_a_source_goes_to_fronts_and_named_hosts_alone() {
    let (front, named, stranger) = (Other::hello(), Other::hello(), Other::hello());
    let host = named.address.to_string();
    let server = server(&[front.address], &[&host]);
    for (other, is_asked) in [(&front, true), (&named, true), (&stranger, false)] {
        let [copy, ..] = operations(&format!("http://{}/dev/con/b", other.address));
        let expected = if is_asked { "202 without a code" } else { "403 CannotVerifyCopySource" };
        assert_eq!(server.refusal(&copy), expected);
        let head = other.asked();
        assert_eq!(head.is_some(), is_asked);
        assert!(head.is_none_or(|head| head.contains("authorization: Bearer hush\r\n")));
    }
}

#[test]
fn a_source_that_sends_on_to_another_server_is_none() {
    let target = Other::hello();
    let answer = format!(
        "HTTP/1.1 302 Found\r\nlocation: http://{}/\r\ncontent-length: 0\r\n\r\n",
        target.address
    );
    let front = Other::start(answer);
    let server = server(&[front.address, target.address], &[]);
    for operation in operations(&format!("http://{}/dev/con/b", front.address)) {
        assert_eq!(server.refusal(&operation), "400 CannotVerifyCopySource", "{operation}");
        assert!(front.asked().is_some());
    }
    assert_eq!(target.asked(), None);
}

#[test]
fn a_source_that_cannot_be_read_is_never_our_failure() {
    let closed = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let broken = Other::start("HTTP/1.1 500 Internal Server Error\r\ncontent-length: 0\r\n\r\n");
    let short =
        Other::start("HTTP/1.1 200 OK\r\ncontent-length: 9\r\nconnection: close\r\n\r\nhello");
    let noise = Other::start("hello");
    let fronts = [closed, broken.address, short.address, noise.address];
    let server = server(&fronts, &["no-such-host.invalid"]);
    for (source, status) in [
        (closed.to_string(), "400"),
        (broken.address.to_string(), "503"),
        (short.address.to_string(), "400"),
        (noise.address.to_string(), "400"),
        ("no-such-host.invalid".to_owned(), "400"),
        ("another-host.invalid".to_owned(), "403"),
        ("no-such-host.invalid:1".to_owned(), "400"),
    ] {
        let [copy, sync, put, block, ..] = operations(&format!("http://{source}/dev/con/b"));
        for operation in [copy, sync, put, block] {
            let expected = format!("{status} CannotVerifyCopySource");
            assert_eq!(server.refusal(&operation), expected, "{operation}");
        }
    }
}

#[test]
fn a_source_in_an_account_that_is_not_there_or_not_shared_is_refused() {
    let server = server(&[], &[]);
    server.done("PUT /other/con?restype=container");
    server.done("PUT /other/con/b\nx-ms-blob-type: BlockBlob\n\nhello");
    let signed = signed_for("other", "r", "o");
    let wrong = signed.replace("sp=r", "sp=rw");
    for (source, status) in [
        ("nobody/con/b".to_owned(), "403"),
        ("other/con/b".to_owned(), "401"),
        ("other/con/none".to_owned(), "401"),
        ("other/none/b".to_owned(), "401"),
        (format!("other/con/b?{wrong}"), "403"),
        ("other/con/b?sv=2021-12-02&sr=b&se=2100-01-01&sig=%25".to_owned(), "403"),
        (format!("other/con/b?{signed}&sig=AAEC"), "403"),
        (format!("other/con/none?{signed}"), "404"),
        (format!("other/none/b?{signed}"), "404"),
    ] {
        for operation in &operations(&format!("http://127.0.0.1:10000/{source}"))[..4] {
            // The token is for sources on other servers.
            let operation = operation.replace("\nx-ms-copy-source-authorization: Bearer hush", "");
            let expected = format!("{status} CannotVerifyCopySource");
            assert_eq!(server.refusal(&operation), expected, "{operation}");
        }
    }
}

#[test]
fn the_signature_of_a_source_is_shown_to_nobody() {
    let front = Other::hello();
    let server = server(&[front.address], &[]);
    server.done("PUT /other/con?restype=container");
    server.done("PUT /other/con/b\nx-ms-blob-type: BlockBlob\n\nhello");
    let signed = signed_for("other", "r", "o");
    let signature = signed.rsplit_once("sig=").unwrap().1;
    for (name, source) in [
        ("here", "http://127.0.0.1:10000/other/con/b".to_owned()),
        ("there", format!("http://{}/other/con/b", front.address)),
    ] {
        for (more, name) in
            [("", name.to_owned()), ("\nx-ms-requires-sync: true", format!("{name}-sync"))]
        {
            server.done(&format!("PUT /dev/con/{name}{more}\nx-ms-copy-source: {source}?{signed}"));
            for method in ["HEAD", "GET"] {
                let shown = server.header(&format!("{method} /dev/con/{name}"), "x-ms-copy-source");
                assert!(shown.starts_with(&source) && shown.contains("sig=XXXXX"), "{shown}");
                assert!(!shown.contains(signature), "{shown}");
            }
        }
    }
    let list = server.done("GET /dev/con?restype=container&comp=list&include=copy");
    assert_eq!(list.matches("sig=XXXXX").count(), 4, "{list}");
    assert!(!list.contains(signature), "{list}");
}

#[test]
fn a_signature_that_is_none_or_there_twice_is_forbidden() {
    let server = server(&[], &[]);
    let signed = signed_for("dev", "rl", "sco");
    let get = |query: &str| server.refusal(&format!("GET /dev/con/append?{query}"));
    assert_eq!(get(&signed), "200 without a code");
    let without = signed.rsplit_once("&sig=").unwrap().0;
    let of_blob = "sp=r&se=2100-01-01&sv=2021-12-02&sr=b";
    for query in [
        format!("{without}&sig=%25"),
        format!("{without}&sig=abc"),
        format!("{without}&sig="),
        format!("{signed}&sig=AAEC"),
        format!("sig=AAEC&{signed}"),
        format!("{of_blob}&sig=%25"),
        format!("{of_blob}&sig=AAEC&sig=AAEC"),
    ] {
        assert_eq!(get(&query), "403 AuthenticationFailed", "{query}");
    }
}
