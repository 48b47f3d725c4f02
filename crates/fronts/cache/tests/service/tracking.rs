//! Clients that keep copies of keys, and are told when they are out of date.

use std::net::SocketAddr;

use super::harness::{Client, Setup, shown};

async fn resp3(address: SocketAddr, options: &[&str]) -> Client {
    let mut client = Client::connect(address).await;
    client.call(&["HELLO", "3"]).await;
    let words: Vec<&str> = ["CLIENT", "TRACKING", "ON"].iter().chain(options).copied().collect();
    assert_eq!(client.text(&words).await, "OK");
    client
}

async fn next(client: &mut Client) -> String {
    shown(&client.reply().await)
}

#[tokio::test]
async fn a_client_is_told_once_when_a_key_that_it_has_read_changes() {
    let address = Setup::default().serve().await.address;
    let mut writer = Client::connect(address).await;
    let mut reader = resp3(address, &[]).await;
    assert_eq!(reader.text(&["MGET", "a", "b"]).await, "[nil nil]");
    writer.text(&["SET", "a", "1"]).await;
    assert_eq!(next(&mut reader).await, ">[invalidate [a]]");
    // It is told again only when it has read again; another key does not concern it.
    writer.text(&["SET", "a", "2"]).await;
    writer.text(&["SET", "c", "2"]).await;
    writer.text(&["DEL", "b"]).await;
    writer.text(&["SET", "b", "2", "PX", "30"]).await;
    assert_eq!(next(&mut reader).await, ">[invalidate [b]]");
    // Keys that expire have changed as well, and so have all when a database is cleared.
    reader.text(&["GET", "b"]).await;
    assert_eq!(next(&mut reader).await, ">[invalidate [b]]");
    reader.text(&["GET", "a"]).await;
    writer.text(&["FLUSHALL"]).await;
    assert_eq!(next(&mut reader).await, ">[invalidate nil]");
    assert_eq!(reader.text(&["CLIENT", "TRACKING", "OFF"]).await, "OK");
    assert_eq!(reader.text(&["GET", "a"]).await, "nil");
    writer.text(&["SET", "a", "3"]).await;
    assert_eq!(reader.text(&["PING"]).await, "PONG");
}

#[tokio::test]
async fn scripts_and_transactions_read_and_write_for_tracking_too() {
    let address = Setup::default().serve().await.address;
    let mut writer = Client::connect(address).await;
    let mut reader = resp3(address, &[]).await;
    reader.text(&["EVAL", "return redis.call('GET', KEYS[1])", "1", "s"]).await;
    writer.text(&["EVAL", "return redis.call('SET', KEYS[1], 1)", "1", "s"]).await;
    assert_eq!(next(&mut reader).await, ">[invalidate [s]]");
    reader.text(&["MULTI"]).await;
    reader.text(&["GET", "t"]).await;
    assert_eq!(reader.text(&["EXEC"]).await, "[nil]");
    writer.text(&["INCR", "t"]).await;
    assert_eq!(next(&mut reader).await, ">[invalidate [t]]");
}

#[tokio::test]
async fn own_changes_are_told_unless_the_client_does_not_want_them() {
    let address = Setup::default().serve().await.address;
    let mut loud = resp3(address, &[]).await;
    loud.text(&["GET", "k"]).await;
    assert_eq!(loud.text(&["SET", "k", "1"]).await, "OK");
    assert_eq!(next(&mut loud).await, ">[invalidate [k]]");
    let mut quiet = resp3(address, &["NOLOOP"]).await;
    quiet.text(&["GET", "k"]).await;
    assert_eq!(quiet.text(&["SET", "k", "2"]).await, "OK");
    assert_eq!(quiet.text(&["PING"]).await, "PONG");
}

#[tokio::test]
async fn prefixes_tell_of_keys_that_nobody_has_read() {
    let address = Setup::default().serve().await.address;
    let mut writer = Client::connect(address).await;
    let mut reader = resp3(address, &["BCAST", "PREFIX", "user:", "PREFIX", "cart:"]).await;
    writer.text(&["SET", "other", "1"]).await;
    writer.text(&["MSET", "cart:1", "1", "user:1", "1", "none", "1"]).await;
    let told = next(&mut reader).await;
    assert!(told == ">[invalidate [cart:1 user:1]]", "{told}");
    let info = reader.text(&["CLIENT", "TRACKINGINFO"]).await;
    assert_eq!(info, "{flags [on bcast] redirect 0 prefixes [cart: user:]}");
    let refused = reader.text(&["CLIENT", "TRACKING", "ON", "BCAST", "PREFIX", "user:1"]).await;
    assert!(refused.starts_with("-ERR Prefix 'user:1' overlaps with an existing prefix 'user:'."));
}

#[tokio::test]
async fn a_client_chooses_key_by_key_what_it_keeps() {
    let address = Setup::default().serve().await.address;
    let mut writer = Client::connect(address).await;
    let mut reader = resp3(address, &["OPTIN"]).await;
    reader.text(&["GET", "a"]).await;
    assert_eq!(reader.text(&["CLIENT", "CACHING", "YES"]).await, "OK");
    reader.text(&["GET", "b"]).await;
    reader.text(&["GET", "c"]).await;
    writer.text(&["MSET", "a", "1", "b", "1", "c", "1"]).await;
    assert_eq!(next(&mut reader).await, ">[invalidate [b]]");
    assert_eq!(reader.text(&["PING"]).await, "PONG");
    let mut reader = resp3(address, &["OPTOUT"]).await;
    assert_eq!(reader.text(&["CLIENT", "CACHING", "NO"]).await, "OK");
    reader.text(&["GET", "a"]).await;
    reader.text(&["GET", "b"]).await;
    writer.text(&["MSET", "a", "2", "b", "2"]).await;
    assert_eq!(next(&mut reader).await, ">[invalidate [b]]");
    let refused = "-ERR CLIENT CACHING YES is only valid when tracking is enabled in OPTIN mode.";
    assert_eq!(reader.text(&["CLIENT", "CACHING", "YES"]).await, refused);
}

#[tokio::test]
async fn messages_go_to_another_client_that_speaks_the_older_protocol() {
    let address = Setup::default().serve().await.address;
    let (mut reader, mut listener) =
        (Client::connect(address).await, Client::connect(address).await);
    let id = listener.text(&["CLIENT", "ID"]).await;
    listener.text(&["SUBSCRIBE", "__redis__:invalidate"]).await;
    let words = ["CLIENT", "TRACKING", "ON", "REDIRECT", &id];
    assert_eq!(reader.text(&words).await, "OK");
    assert_eq!(reader.text(&["CLIENT", "GETREDIR"]).await, id);
    reader.text(&["GET", "k"]).await;
    assert_eq!(reader.text(&["SET", "k", "1"]).await, "OK");
    assert_eq!(next(&mut listener).await, "[message __redis__:invalidate [k]]");
    let refused = "-ERR The client ID you want redirect to does not exist";
    let words = ["CLIENT", "TRACKING", "ON", "REDIRECT", "999999"];
    assert_eq!(reader.text(&words).await, refused);
    let mut other = Client::connect(address).await;
    assert_eq!(other.text(&["CLIENT", "GETREDIR"]).await, "-1");
    let refused = "-ERR CLIENT CACHING can be called only when the client is in tracking mode with OPTIN or OPTOUT mode enabled";
    assert_eq!(other.text(&["CLIENT", "CACHING", "YES"]).await, refused);
}
