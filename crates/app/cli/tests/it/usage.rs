//! Wrong usage ends with exit code 2 and a sentence; `config` says what is in force.

use crate::program::{lazuli, run, stderr, stdout};

#[test]
fn unknown_flags_commands_and_settings_are_wrong_usage() {
    let folder = tempfile::tempdir().unwrap();
    for arguments in [
        &["serve", "--tabel-port", "1"][..],
        &["serve", "--table-port", "many"],
        &["serve", "--accounts", "secrets:are"],
        &["nothing"],
        &[],
        &["account", "rotate-key", "mine", "--key", "3"],
        &["shard"],
    ] {
        let output = run(folder.path(), arguments);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}");
        assert!(!stderr(&output).is_empty());
    }
    let output = lazuli(folder.path(), &["serve"]).env("LAZULI_TABEL_PORT", "1").output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    assert!(stderr(&output).contains("did you mean LAZULI_TABLE_PORT?"), "{}", stderr(&output));
    assert!(std::fs::read_dir(folder.path()).unwrap().next().is_none(), "nothing was made");
}

#[test]
fn config_prints_what_is_in_force_and_where_it_comes_from() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("lazuli.toml"), "table-port = 7\nadmin-port = 8\n").unwrap();
    let output = lazuli(folder.path(), &["config", "--table-port", "9"])
        .env("LAZULI_ACCOUNTS", "mine:c2VjcmV0")
        .env("LAZULI_LOG_LEVEL", "debug")
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", stderr(&output));
    let text = stdout(&output);
    let row = |name: &str| {
        let line = text.lines().find(|line| line.starts_with(name)).unwrap();
        line.split_whitespace().skip(1).map(str::to_owned).collect::<Vec<_>>()
    };
    assert_eq!(row("SETTING"), ["VALUE", "FROM"]);
    assert_eq!(row("table-port"), ["9", "flag"]);
    assert_eq!(row("admin-port"), ["8", "file", "lazuli.toml"]);
    assert_eq!(row("log-level"), ["debug", "environment"]);
    assert_eq!(row("host"), ["127.0.0.1", "default"]);
    assert_eq!(row("accounts"), ["********", "environment"]);
    assert!(!text.contains("c2VjcmV0"));

    let output = run(folder.path(), &["config", "--json"]);
    let json: serde_json::Value = serde_json::from_str(&stdout(&output)).unwrap();
    assert_eq!(json["table-port"]["value"], "7");
    assert_eq!(json["table-port"]["origin"], "file lazuli.toml");
}

#[test]
fn the_version_and_help_are_printed() {
    let folder = tempfile::tempdir().unwrap();
    let expected = concat!("lazuli ", env!("CARGO_PKG_VERSION"), "\n");
    assert_eq!(stdout(&run(folder.path(), &["version"])), expected);
    assert_eq!(stdout(&run(folder.path(), &["--version"])), expected);
    let help = stdout(&run(folder.path(), &["serve", "--help"]));
    assert!(
        help.contains("--table-port <PORT|off>") && help.contains("[default: 10002]"),
        "{help}"
    );
}

#[test]
fn completions_and_man_pages_are_made_from_the_command_line() {
    let folder = tempfile::tempdir().unwrap();
    for shell in ["bash", "zsh", "fish"] {
        let script = stdout(&run(folder.path(), &["completions", shell]));
        assert!(script.contains("rebalance") && script.contains("table-port"), "{shell}");
    }
    assert_eq!(run(folder.path(), &["completions", "dos"]).status.code(), Some(2));
    let made = run(folder.path(), &["man", "pages"]);
    assert!(made.status.success(), "{}", stderr(&made));
    let page = std::fs::read_to_string(folder.path().join("pages/lazuli-table-import.1")).unwrap();
    assert!(page.contains("skip\\-errors"), "{page}");
}
