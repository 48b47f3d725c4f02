//! Users and their rules, over the wire.

use std::net::SocketAddr;

use lazuli_keyspace::Persistence;

use super::harness::{Client, KEY, Setup, memory_stores};

async fn as_user(address: SocketAddr, name: &str, password: &str) -> Client {
    let mut client = Client::connect(address).await;
    assert_eq!(client.text(&["AUTH", name, password]).await, "OK");
    client
}

const NO_KEY: &str =
    "-NOPERM this user has no permissions to access one of the keys used as arguments";
const NO_CHANNEL: &str =
    "-NOPERM this user has no permissions to access one of the channels used as arguments";

#[tokio::test]
async fn a_user_may_run_what_its_rules_allow_on_the_keys_and_channels_that_they_name() {
    let address = Setup::default().serve().await.address;
    let mut admin = Client::connect(address).await;
    let rules = ["on", ">pw", "~a*", "%R~b*", "&news*", "+@all", "-flushall", "-config|set"];
    let words: Vec<&str> = ["ACL", "SETUSER", "eve"].into_iter().chain(rules).collect();
    assert_eq!(admin.text(&words).await, "OK");
    assert_eq!(admin.text(&["SET", "b1", "x"]).await, "OK");
    let mut eve = as_user(address, "eve", "pw").await;
    assert_eq!(eve.text(&["SET", "a1", "v"]).await, "OK");
    assert_eq!(eve.text(&["GET", "b1"]).await, "x");
    for refused in [
        &["SET", "b1", "v"][..],
        &["GET", "c"],
        &["MGET", "a1", "c"],
        &["SET", "b1", "v", "GET"],
        &["COPY", "a1", "b1"],
        &["EVAL", "return 1", "1", "c"],
    ] {
        assert_eq!(eve.text(refused).await, NO_KEY, "{refused:?}");
    }
    assert_eq!(eve.text(&["COPY", "b1", "a2"]).await, "1");
    let refused = "-NOPERM this user has no permissions to run the 'flushall' command";
    assert_eq!(eve.text(&["FLUSHALL"]).await, refused);
    let refused = "-NOPERM this user has no permissions to run the 'config|set' command";
    assert_eq!(eve.text(&["CONFIG", "SET", "maxmemory", "0"]).await, refused);
    assert_eq!(eve.text(&["CONFIG", "GET", "maxmemory"]).await, "[maxmemory 0]");
    assert_eq!(eve.text(&["PUBLISH", "news1", "m"]).await, "0");
    assert_eq!(eve.text(&["PUBLISH", "other", "m"]).await, NO_CHANNEL);
    assert_eq!(eve.text(&["SUBSCRIBE", "other"]).await, NO_CHANNEL);
    // A pattern must be one of the rules itself.
    assert_eq!(eve.text(&["PSUBSCRIBE", "new*"]).await, NO_CHANNEL);
    assert_eq!(eve.text(&["PSUBSCRIBE", "news*"]).await, "[psubscribe news* 1]");
}

#[tokio::test]
async fn rules_hold_in_transactions_scripts_and_sorting() {
    let address = Setup::default().serve().await.address;
    let mut admin = Client::connect(address).await;
    admin.text(&["ACL", "SETUSER", "eve", "on", "nopass", "~a*", "+@all", "-flushall"]).await;
    let mut eve = as_user(address, "eve", "any").await;
    assert_eq!(eve.text(&["MULTI"]).await, "OK");
    assert_eq!(eve.text(&["GET", "z"]).await, NO_KEY);
    let aborted = "-EXECABORT Transaction discarded because of previous errors.";
    assert_eq!(eve.text(&["EXEC"]).await, aborted);
    let run = |body: &'static str| ["EVAL", body, "0"];
    let reply = eve.text(&run("return redis.call('get', 'z')")).await;
    let refused = "-ERR The user executing the script can't access at least one of the keys mentioned in the command arguments";
    assert!(reply.starts_with(refused), "{reply}");
    let reply = eve.text(&run("return redis.pcall('flushall')")).await;
    let refused = "-ERR The user executing the script can't run this command or subcommand";
    assert!(reply.starts_with(refused), "{reply}");
    let reply = eve.text(&run("return redis.call('publish', 'x', 'y')")).await;
    assert!(reply.contains("can't publish to the channel mentioned in the command"), "{reply}");
    assert_eq!(eve.text(&run("return redis.acl_check_cmd('get', 'z')")).await, "nil");
    assert_eq!(eve.text(&run("return redis.acl_check_cmd('get', 'a')")).await, "1");
    let refused = "-ERR BY option of SORT denied due to insufficient ACL permissions.";
    assert_eq!(eve.text(&["SORT", "a1", "BY", "x*"]).await, refused);
    assert_eq!(eve.text(&["SORT", "a1", "STORE", "z"]).await, NO_KEY);
    // Rules that change between MULTI and EXEC are those of EXEC.
    assert_eq!(eve.text(&["MULTI"]).await, "OK");
    assert_eq!(eve.text(&["SET", "a1", "v"]).await, "QUEUED");
    assert_eq!(admin.text(&["ACL", "SETUSER", "eve", "-set"]).await, "OK");
    let reply = eve.text(&["EXEC"]).await;
    assert!(reply.contains("NOPERM ACLs rules changed between"), "{reply}");
    assert_eq!(admin.text(&["EXISTS", "a1"]).await, "0");
}

#[tokio::test]
async fn users_are_shown_and_deleted_as_the_service_does_it() {
    let address = Setup::default().serve().await.address;
    let mut admin = Client::connect(address).await;
    assert_eq!(admin.text(&["ACL", "LIST"]).await, "[user default on nopass ~* &* +@all]");
    assert_eq!(admin.text(&["ACL", "SETUSER", "alice"]).await, "OK");
    let rules = ["on", ">pw", "~a*", "%R~b*", "&ch*", "+@read", "-get", "+config|get", "+select|0"];
    let words: Vec<&str> = ["ACL", "SETUSER", "alice"].into_iter().chain(rules).collect();
    assert_eq!(admin.text(&words).await, "OK");
    let words = ["ACL", "SETUSER", "alice", "(+set", "~sel:*", "resetchannels)"];
    assert_eq!(admin.text(&words).await, "OK");
    let digest = "30c952fab122c3f9759f02a6d95c3758b246b4fee239957b2d4fee46e26170c4";
    let listed = format!(
        "[user alice on #{digest} ~a* %R~b* resetchannels &ch* -@all +@read -get +config|get \
         +select|0 (~sel:* resetchannels -@all +set) user default on nopass ~* &* +@all]"
    );
    assert_eq!(admin.text(&["ACL", "LIST"]).await, listed);
    let shown = format!(
        "[flags [on] passwords [{digest}] commands -@all +@read -get +config|get +select|0 keys \
         ~a* %R~b* channels &ch* selectors [[commands -@all +set keys ~sel:* channels ]]]"
    );
    assert_eq!(admin.text(&["ACL", "GETUSER", "alice"]).await, shown);
    assert_eq!(admin.text(&["ACL", "GETUSER", "nobody"]).await, "nil");
    assert_eq!(admin.text(&["ACL", "USERS"]).await, "[alice default]");
    let dry = |words: &'static [&'static str]| {
        ["ACL", "DRYRUN", "alice"].into_iter().chain(words.iter().copied()).collect::<Vec<_>>()
    };
    let refused = "This user has no permissions to run the 'get' command";
    assert_eq!(admin.text(&dry(&["get", "k"])).await, refused);
    let refused = "This user has no permissions to access the 'zz' key";
    assert_eq!(admin.text(&dry(&["hget", "zz", "f"])).await, refused);
    assert_eq!(admin.text(&dry(&["hget", "abc", "f"])).await, "OK");
    assert_eq!(admin.text(&dry(&["select", "0"])).await, "OK");
    assert_eq!(admin.text(&dry(&["set", "sel:1", "v"])).await, "OK");
    assert_eq!(admin.text(&["ACL", "GENPASS"]).await.len(), 64);
    assert_eq!(admin.text(&["ACL", "GENPASS", "5"]).await.len(), 2);
    assert!(admin.text(&["ACL", "GENPASS", "0"]).await.starts_with("-ERR ACL GENPASS argument"));
    assert!(admin.text(&["ACL", "SAVE"]).await.starts_with("-ERR This Redis instance is not"));
    let refused = "-ERR The 'default' user cannot be removed";
    assert_eq!(admin.text(&["ACL", "DELUSER", "default"]).await, refused);
    let mut alice = as_user(address, "alice", "pw").await;
    assert_eq!(admin.text(&["ACL", "DELUSER", "alice", "nobody"]).await, "1");
    // Whoever is connected as the user is disconnected.
    alice.expect_end().await;
    let mut again = Client::connect(address).await;
    let refused = "-WRONGPASS invalid username-password pair or user is disabled.";
    assert_eq!(again.text(&["AUTH", "alice", "pw"]).await, refused);
}

#[tokio::test]
async fn what_is_refused_is_in_the_log_and_passwords_are_in_none() {
    let address = Setup::default().serve().await.address;
    let mut admin = Client::connect(address).await;
    admin.text(&["CONFIG", "SET", "slowlog-log-slower-than", "0"]).await;
    let mut watching = Client::connect(address).await;
    assert_eq!(watching.text(&["MONITOR"]).await, "OK");
    admin.text(&["ACL", "SETUSER", "eve", "on", ">s3cret", "~a*", "+get", "+ping"]).await;
    let mut eve = as_user(address, "eve", "s3cret").await;
    for _ in 0..3 {
        assert_eq!(eve.text(&["GET", "z"]).await, NO_KEY);
    }
    assert!(eve.text(&["SET", "a", "1"]).await.starts_with("-NOPERM"));
    let mut stranger = Client::connect(address).await;
    stranger.text(&["AUTH", "eve", "wr0ng"]).await;
    let log = admin.text(&["ACL", "LOG"]).await;
    for part in [
        "[count 1 reason auth context toplevel object AUTH username eve age-seconds",
        "[count 1 reason command context toplevel object set username eve",
        "[count 3 reason key context toplevel object z username eve",
    ] {
        assert!(log.contains(part), "{part} is not in {log}");
    }
    let slow = admin.text(&["SLOWLOG", "GET", "100"]).await;
    let mut seen = String::new();
    while !seen.contains("wr0ng") && !seen.contains("AUTH\" \"(redacted)\" \"(redacted)\"") {
        seen = super::harness::shown(&watching.reply().await);
        assert!(!seen.contains("s3cret") && !seen.contains("wr0ng"), "{seen}");
    }
    assert!(slow.contains("ACL SETUSER") && !slow.contains("s3cret"), "{slow}");
    assert_eq!(admin.text(&["ACL", "LOG", "RESET"]).await, "OK");
    assert_eq!(admin.text(&["ACL", "LOG"]).await, "[]");
}

#[tokio::test]
async fn the_default_user_can_be_closed_and_access_keys_still_open() {
    let address = Setup::default().serve().await.address;
    let mut admin = as_user(address, "dev", KEY).await;
    assert_eq!(admin.text(&["ACL", "SETUSER", "default", ">own"]).await, "OK");
    let mut stranger = Client::connect(address).await;
    assert_eq!(stranger.text(&["PING"]).await, "-NOAUTH Authentication required.");
    let refused = "-WRONGPASS invalid username-password pair or user is disabled.";
    assert_eq!(stranger.text(&["AUTH", "wrong"]).await, refused);
    assert_eq!(stranger.text(&["AUTH", "own"]).await, "OK");
    assert_eq!(stranger.text(&["ACL", "WHOAMI"]).await, "default");
    assert_eq!(admin.text(&["ACL", "SETUSER", "default", "off"]).await, "OK");
    let mut stranger = Client::connect(address).await;
    assert_eq!(stranger.text(&["AUTH", "own"]).await, refused);
    assert_eq!(stranger.text(&["AUTH", "dev", KEY]).await, "OK");
    // Rules for the name of an account bind those who have its key.
    assert_eq!(admin.text(&["ACL", "SETUSER", "dev", "on", "+ping", "+acl"]).await, "OK");
    let mut bound = as_user(address, "dev", KEY).await;
    assert!(bound.text(&["GET", "k"]).await.starts_with("-NOPERM"));
}

#[tokio::test]
async fn users_are_there_again_after_a_restart_also_where_keys_are_not() {
    let setup = || Setup { persistence: Persistence::None, ..Setup::default() };
    let service = Setup { stores: memory_stores(1), ..setup() }.serve().await;
    let mut admin = Client::connect(service.address).await;
    let words = ["ACL", "SETUSER", "eve", "on", ">pw", "~a*", "+get", "(+set ~b*)"];
    assert_eq!(admin.text(&words).await, "OK");
    assert_eq!(admin.text(&["ACL", "SETUSER", "gone", "on"]).await, "OK");
    assert_eq!(admin.text(&["ACL", "DELUSER", "gone"]).await, "1");
    let before = admin.text(&["ACL", "LIST"]).await;
    let restarted = setup().serve_on(service.engine.clone().unwrap()).await;
    let mut admin = Client::connect(restarted.address).await;
    assert_eq!(admin.text(&["ACL", "LIST"]).await, before);
    let mut eve = as_user(restarted.address, "eve", "pw").await;
    assert_eq!(eve.text(&["GET", "b"]).await, NO_KEY);
    assert_eq!(eve.text(&["SET", "b", "1"]).await, "OK");
}
