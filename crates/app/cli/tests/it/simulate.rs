//! `lazuli simulate`: what it prints, that the seed decides all of it, and what it refuses.

use crate::program::{run, stderr, stdout};
use serde_json::Value;

fn simulate(flags: &[&str]) -> String {
    let folder = tempfile::tempdir().unwrap();
    let output = run(folder.path(), &[&["simulate"], flags].concat());
    assert!(output.status.success(), "{}", stderr(&output));
    let left = std::fs::read_dir(folder.path()).unwrap().count();
    assert_eq!(left, 0, "a simulation leaves nothing behind");
    stdout(&output)
}

fn json(flags: &[&str]) -> Value {
    serde_json::from_str(&simulate(&[flags, &["--json"]].concat())).unwrap()
}

#[test]
fn from_one_shard_to_eight_everything_becomes_even() {
    let flags =
        ["--shards", "8", "--partitions", "800", "--start", "one-shard", "--load", "uniform"];
    let told = json(&flags);
    assert_eq!(told["settled"], true);
    assert_eq!(told["steps"][0]["bytes_peak"], 8.0);
    let last = told["steps"].as_array().unwrap().last().unwrap();
    assert!(last["bytes_peak"].as_f64().unwrap() <= 1.1, "{last}");
    assert!(last["requests_peak"].as_f64().unwrap() <= 1.1, "{last}");
    assert_eq!(last["underway"], 0);
    let sum = |when: &str| -> u64 {
        let shards = told[when].as_array().unwrap();
        shards.iter().map(|shard| shard["bytes"].as_u64().unwrap()).sum()
    };
    assert_eq!(sum("before"), sum("after"));
}

#[test]
fn the_seed_decides_everything_that_is_printed() {
    let flags = |seed| {
        ["--shards", "30", "--partitions", "1000", "--shift", "2h", "--hours", "5", "--seed", seed]
    };
    assert_eq!(simulate(&flags("7")), simulate(&flags("7")));
    assert_ne!(simulate(&flags("7")), simulate(&flags("8")));
}

#[test]
fn lines_and_bars_show_the_way_there() {
    let text = simulate(&["--shards", "4", "--partitions", "400", "--drain", "1", "--hours", "3"]);
    let lines: Vec<&str> = text.lines().collect();
    assert!(lines[0].starts_with("4 shards, 400 partitions, "), "{text}");
    assert!(lines[3].trim_start().starts_with("TIME"), "{text}");
    assert!(lines[4].trim_start().starts_with("0:00"), "{text}");
    let drained = lines.iter().find(|line| line.starts_with("shard 1 drain")).unwrap();
    assert!(drained.ends_with("  0.00"), "{text}");
    assert!(text.contains("\nnothing more to do; "), "{text}");
}

#[test]
fn moves_keep_to_the_bandwidth_and_the_window() {
    let flags = ["--shards", "2", "--partitions", "200", "--start", "one-shard", "--hours", "3"];
    let slow = json(&[&flags[..], &["--bandwidth", "1MiB"]].concat());
    for (hour, step) in slow["steps"].as_array().unwrap().iter().enumerate() {
        let moved = step["bytes_moved"].as_u64().unwrap();
        assert!(moved <= (hour as u64 * 3600) << 20, "{step}");
    }
    assert_eq!(slow["settled"], false);
    let later = json(&[&flags[..], &["--window", "02:00-03:00"]].concat());
    let moves: Vec<u64> =
        later["steps"].as_array().unwrap().iter().map(|it| it["moves"].as_u64().unwrap()).collect();
    assert_eq!(moves[..3], [0, 0, 0]);
    assert!(moves[3] > 0, "{moves:?}");
}

#[test]
fn a_fleet_comes_from_a_file_with_its_regions() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("fleet.json");
    let partition = r#"{ "shard": 1, "container": 1, "bytes": 1000000000, "region": "eu" }"#;
    let fleet = format!(
        r#"{{ "shards": [{{ "id": 1, "region": "eu" }}, {{ "id": 2, "region": "us" }},
                         {{ "id": 3, "region": "eu", "capacity": 3 }}],
              "partitions": [{}] }}"#,
        [partition; 40].join(",")
    );
    std::fs::write(&path, fleet).unwrap();
    let told = json(&["--fleet", path.to_str().unwrap()]);
    let bytes = |at: usize| told["after"][at]["bytes"].as_u64().unwrap() / 1_000_000_000;
    assert_eq!(bytes(1), 0);
    assert!((9..=11).contains(&bytes(0)) && bytes(0) + bytes(2) == 40, "{told}");

    std::fs::write(&path, r#"{ "shards": [], "partitions": [], "colour": "blue" }"#).unwrap();
    let refused = run(folder.path(), &["simulate", "--fleet", "fleet.json"]);
    assert_eq!(refused.status.code(), Some(1));
    assert!(stderr(&refused).contains("unknown field `colour`"), "{}", stderr(&refused));
    std::fs::write(&path, r#"{ "shards": [], "partitions": [] }"#).unwrap();
    let refused = run(folder.path(), &["simulate", "--fleet", "fleet.json"]);
    assert_eq!(stderr(&refused), "error: fleet.json: no shard is online\n");
}

#[test]
fn flags_without_sense_are_wrong_usage() {
    let folder = tempfile::tempdir().unwrap();
    for flags in [
        &["--shards", "0"][..],
        &["--load", "zipf"],
        &["--band", "100"],
        &["--goals", "bytes=0"],
        &["--window", "4-5"],
        &["--moves-at-once", "0"],
        &["--shards", "2", "--drain", "1", "--empty", "1"],
        &["--merge-bytes", "9GiB"],
        &["--fleet", "x.json", "--shards", "3"],
    ] {
        let output = run(folder.path(), &[&["simulate"], flags].concat());
        assert_eq!(output.status.code(), Some(2), "{flags:?}: {}", stderr(&output));
    }
}
