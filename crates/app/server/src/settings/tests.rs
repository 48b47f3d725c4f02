//! Which value wins, what is refused, and what is printed.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use super::*;

fn sources(flags: &[(&'static str, &str)], variables: &[(&str, &str)]) -> Sources {
    Sources {
        flags: flags.iter().map(|(name, text)| (*name, (*text).to_owned())).collect(),
        variables: variables.iter().map(|(n, t)| ((*n).to_owned(), (*t).to_owned())).collect(),
        file: None,
        // A folder that does not exist holds no settings file.
        folder: PathBuf::from("/nonexistent"),
    }
}

fn with_file(mut sources: Sources, text: &str) -> (Sources, tempfile::TempDir) {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join(FILE_DEFAULT), text).unwrap();
    sources.folder = folder.path().to_owned();
    (sources, folder)
}

fn wrong(sources: &Sources) -> String {
    match sources.texts().and_then(|texts| Settings::read(&texts).map(|_| ())) {
        Ok(()) => panic!("these settings must be refused"),
        Err(wrong) => wrong.to_string(),
    }
}

#[test]
fn the_defaults_are_a_server_on_loopback_that_syncs() {
    let settings = Settings::read(&sources(&[], &[]).texts().unwrap()).unwrap();
    assert!(settings.host.is_loopback());
    let ports: Vec<_> = settings.fronts.iter().map(|it| (it.front.name, it.port)).collect();
    let default = [
        ("blobs", 10_000),
        ("queues", 10_001),
        ("tables", 10_002),
        ("documents", 8_081),
        ("kafka", 9_092),
        ("bus", 5_672),
        ("cache", 6_379),
        ("search", 10_003),
        ("sql", 5_433),
    ];
    assert_eq!(ports, default.map(|(name, port)| (name, Port::Default(port))));
    assert_eq!(settings.durability, Durability::Synced);
    assert_eq!(settings.data, PathBuf::from("./lazuli-data"));
    assert!(settings.ready_file.is_none() && settings.accounts.is_none());
}

#[test]
fn a_flag_wins_over_a_variable_a_variable_over_the_file_the_file_over_the_default() {
    let file = "table-port = 1\nadmin-port = 1\nlog-level = \"warn\"\n";
    let (sources, _folder) = with_file(
        sources(&[("table-port", "3")], &[("LAZULI_TABLE_PORT", "2"), ("LAZULI_ADMIN_PORT", "2")]),
        file,
    );
    let texts = sources.texts().unwrap();
    let origin = |name: &str| texts.get(name).map(|(text, origin)| (text, origin.clone()));
    assert_eq!(origin("table-port"), Some(("3", Origin::Flag)));
    assert_eq!(origin("admin-port"), Some(("2", Origin::Variable)));
    let path = sources.folder.join(FILE_DEFAULT);
    assert_eq!(origin("log-level"), Some(("warn", Origin::File(path))));
    assert_eq!(origin("host"), Some(("127.0.0.1", Origin::Default)));
}

#[test]
fn a_file_named_by_flag_wins_over_the_one_in_the_folder_and_must_exist() {
    let (mut sources, folder) = with_file(sources(&[], &[]), "table-port = 1\n");
    let other = folder.path().join("other.toml");
    sources.file = Some(other.clone());
    assert!(wrong(&sources).contains("cannot read"));
    std::fs::write(&other, "table-port = 7").unwrap();
    assert_eq!(sources.texts().unwrap().get("table-port").unwrap().0, "7");
}

#[test]
fn unknown_names_are_refused_with_the_nearest_known_one() {
    let error = wrong(&sources(&[], &[("LAZULI_TABEL_PORT", "1")]));
    assert_eq!(
        error,
        "unknown environment variable LAZULI_TABEL_PORT: did you mean LAZULI_TABLE_PORT?"
    );
    let (sources, _folder) = with_file(sources(&[], &[]), "table_port = 1");
    let error = wrong(&sources);
    assert!(error.ends_with("unknown setting table_port: did you mean table-port?"), "{error}");
}

#[test]
fn a_wrong_value_is_refused_with_what_is_expected_and_where_it_stands() {
    let error = wrong(&sources(&[("table-port", "70000")], &[]));
    assert_eq!(
        error,
        "table-port takes a port from 0 to 65535, or off, not `70000` (flag --table-port)"
    );
    let error = wrong(&sources(&[], &[("LAZULI_DURABILITY", "maybe")]));
    assert_eq!(
        error,
        "durability takes one of synced, relaxed, not `maybe` \
         (environment variable LAZULI_DURABILITY)"
    );
    let (sources, _folder) = with_file(sources(&[], &[]), "host = \"a\"\nhost = [");
    assert!(wrong(&sources).contains("line "));
}

#[test]
fn free_ports_are_taken_where_no_other_is_set() {
    let read = |flags: &[(&'static str, &str)]| {
        Settings::read(&sources(flags, &[]).texts().unwrap()).unwrap()
    };
    let free = read(&[("ports", "free"), ("table-port", "7"), ("blob-port", "off")]);
    let ports: Vec<_> = free.fronts.iter().map(|it| it.port).collect();
    assert_eq!(ports[..3], [Port::Off, Port::Asked(0), Port::Asked(7)]);
    assert!(ports[3..].iter().all(|port| *port == Port::Asked(0)));
    assert_eq!(free.admin_port, 0);
    assert_eq!(read(&[("ports", "free"), ("admin-port", "9")]).admin_port, 9);
    assert_eq!(
        wrong(&sources(&[("ports", "any")], &[])).split(',').next(),
        Some("ports takes one of usual")
    );
}

#[test]
fn what_is_set_for_one_front_is_not_set_for_the_others() {
    let flags = [("tls", "only"), ("table-tls", "off"), ("blob-port", "off"), ("queue-port", "0")];
    let flags = sources(&flags, &[("LAZULI_QUEUE_CONNECTIONS_MAX", "7")]);
    let settings = Settings::read(&flags.texts().unwrap()).unwrap();
    let [blobs, queues, tables, documents, ..] = &settings.fronts[..] else {
        panic!("four fronts")
    };
    assert_eq!((blobs.port, queues.port), (Port::Off, Port::Asked(0)));
    assert_eq!((blobs.listening.tls, tables.listening.tls), (TlsMode::Only, TlsMode::Off));
    // Its own default stands back behind what is set for all.
    assert_eq!(documents.listening.tls, TlsMode::Only);
    assert_eq!(queues.listening.net.connections_max, 7);
    assert_eq!(tables.listening.net.connections_max, settings.listening.net.connections_max);
    let hours = |hours: u64| Duration::from_secs(hours * 3600);
    assert_eq!(blobs.listening.http.request_timeout, hours(2));
    assert!(tables.listening.http.request_timeout < hours(1));
    assert!(wrong(&sources(&[("table-allow-addresses", "here")], &[])).contains("such as"));
}

#[test]
fn certificates_need_their_key_and_https() {
    assert!(wrong(&sources(&[("tls", "only"), ("tls-cert", "c")], &[])).contains("tls-key"));
    let files = [("tls-cert", "c"), ("tls-key", "k")];
    let beside = Settings::read(&sources(&files, &[]).texts().unwrap()).unwrap();
    assert_eq!(beside.fronts[3].listening.tls, TlsMode::Beside);
    let off = [("tls", "off"), files[0], files[1]];
    assert!(wrong(&sources(&off, &[])).contains("tls is off"));
}

#[test]
fn secrets_are_masked_and_never_repeated_in_errors() {
    let sources = sources(&[], &[("LAZULI_ACCOUNTS", "one11:SECRET!")]);
    assert!(!wrong(&sources).contains("SECRET"));
    let texts = sources.texts().unwrap();
    assert!(!format!("{:?}{}", lines(&texts), json(&texts)).contains("SECRET"));
    assert_eq!(json(&texts)["accounts"]["value"], crate::secret::MASK);
    assert_eq!(json(&texts)["accounts"]["origin"], "environment");
    assert_eq!(json(&texts)["table-port"]["value"], "10002");
}

#[test]
fn short_admin_tokens_are_refused() {
    assert!(wrong(&sources(&[], &[("LAZULI_ADMIN_TOKEN", "short")])).contains("at least 16"));
}

#[test]
fn every_setting_can_be_set_in_every_place_but_secrets_by_flag() {
    let variables: BTreeMap<_, _> =
        TABLE.iter().map(|row| (row.variable(), "x".to_owned())).collect();
    let all = Sources { variables, folder: PathBuf::from("/nonexistent"), ..Sources::default() };
    let texts = all.texts().unwrap();
    assert!(TABLE.iter().all(|row| texts.get(row.name) == Some(("x", &Origin::Variable))));
}
