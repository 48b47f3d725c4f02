//! Tables in and out of files with the real program: every type, hostile names and values, and what is refused.

use std::collections::BTreeSet;
use std::io::Write;
use std::path::Path;
use std::process::Stdio;

use crate::program::{PUBLISHED_KEY, Server, lazuli, run, stderr, stdout};

/// Every type of the service, at its edges.
const TYPES: &str = r#"{"PartitionKey":"types","RowKey":"text","A":"plain","B":"","C":"true","D":"1"}
{"PartitionKey":"types","RowKey":"numbers","A":-2147483648,"B@odata.type":"Edm.Int64","B":"-9223372036854775808","C@odata.type":"Edm.Double","C":1.0,"D":5e-324}
{"PartitionKey":"types","RowKey":"doubles","A@odata.type":"Edm.Double","A":"NaN","B@odata.type":"Edm.Double","B":"Infinity","C@odata.type":"Edm.Double","C":"-Infinity","D@odata.type":"Edm.Double","D":-0.0}
{"PartitionKey":"types","RowKey":"others","A":true,"B@odata.type":"Edm.DateTime","B":"1601-01-01T00:00:00Z","C@odata.type":"Edm.Guid","C":"c9da6455-213d-42c9-9a79-3e9149a57833","D@odata.type":"Edm.Binary","D":"AAH/"}
{"PartitionKey":"types","RowKey":"times","A@odata.type":"Edm.DateTime","A":"9999-12-31T23:59:59.9999999Z","B@odata.type":"Edm.Binary","B":""}
{"PartitionKey":"","RowKey":""}
"#;

/// Names and values that separators, quotation marks and line ends could tear apart.
const HOSTILE: &str = r#"{"PartitionKey":"o'b ,\"%&=+","RowKey":" lead and trail ","A":"a\"b,c\r\nd\n","B":"\r","C":"  "}
{"PartitionKey":"äß😀\u200b","RowKey":"'","Ünï_ж":"\ufeff","A":",","B":"\"","C":"\"\""}
{"PartitionKey":"@odata.type","RowKey":"Edm.Int32","A":"{\"x\":[1]}","B":"\u0001\u007f","C":"=1+1","Edm":"@type"}
{"PartitionKey":"--changeset_lazuli--","RowKey":"--batch_lazuli","A":"--changeset_lazuli\r\nPOST / HTTP/1.1\r\n\r\n"}
"#;

/// The lines of an export without what the service adds, in no order.
fn lines(text: &str) -> BTreeSet<String> {
    let without_time = |line: &str| {
        let (head, rest) = line.split_once(",\"Timestamp\":\"").unwrap();
        format!("{head}{}", rest.split_once('"').unwrap().1)
    };
    text.lines().map(without_time).collect()
}

fn expected(text: &str) -> BTreeSet<String> {
    text.lines().map(str::to_owned).collect()
}

fn exported(server: &Server, table: &str) -> BTreeSet<String> {
    lines(&server.command(&["table", "export", table]))
}

fn write(folder: &Path, name: &str, text: &str) {
    std::fs::write(folder.join(name), text).unwrap();
}

#[test]
fn every_type_and_every_text_survives_both_formats() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(folder.path());
    for (name, text) in [("types", TYPES), ("hostile", HOSTILE)] {
        write(folder.path(), "in.jsonl", text);
        let first = format!("{name}0");
        server.command(&["table", "import", &first, "in.jsonl", "--create"]);
        assert_eq!(sorted(&exported(&server, &first)), sorted(&expected(text)));
        for (number, ending) in ["csv", "jsonl"].into_iter().enumerate() {
            let (file, second) = (format!("{name}.{ending}"), format!("{name}{}", number + 1));
            server.command(&["table", "export", &first, &file]);
            let count = text.lines().count();
            let imported = server.command(&["table", "import", &second, &file, "--create"]);
            assert_eq!(imported, format!("imported {count} entities into {second}\n"));
            assert_eq!(sorted(&exported(&server, &second)), sorted(&expected(text)), "{ending}");
        }
    }
    let left: Vec<_> =
        std::fs::read_dir(folder.path()).unwrap().map(|it| it.unwrap().path()).collect();
    let leftover = |path: &&std::path::PathBuf| {
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        name.contains(".part") || name.contains(".progress")
    };
    assert!(!left.iter().any(|path| leftover(&path)), "{left:?}");
}

/// Entities with their properties in order, since CSV has its columns in the order of their names.
fn sorted(lines: &BTreeSet<String>) -> BTreeSet<String> {
    let sort = |line: &String| serde_json::from_str::<serde_json::Value>(line).unwrap().to_string();
    lines.iter().map(sort).collect()
}

#[test]
fn tables_are_created_listed_and_deleted() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(folder.path());
    assert_eq!(server.command(&["table", "create", "plain"]), "created table plain\n");
    let hashed = server.json(&["table", "create", "spread", "--hashed"]);
    assert_eq!(hashed["hashed"], true);
    let maps = server.json(&["map", "list"]);
    let kinds: Vec<_> = maps["maps"].as_array().unwrap().iter().map(|map| &map["kind"]).collect();
    assert_eq!(kinds, ["range", "hash"]);
    assert_eq!(server.command(&["table", "list"]), "plain\nspread\n");
    let again = run(folder.path(), &["table", "create", "plain"]);
    assert_eq!(again.status.code(), Some(1));
    assert!(stderr(&again).contains("(TableAlreadyExists)"), "{}", stderr(&again));
    assert_eq!(server.command(&["table", "delete", "plain"]), "deleted table plain\n");
    assert_eq!(server.json(&["table", "list"])["tables"], serde_json::json!(["spread"]));
    assert_eq!(run(folder.path(), &["table", "create", "a/b"]).status.code(), Some(2));
}

#[test]
fn entities_pass_through_pipes_with_a_filter_and_a_selection() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(folder.path());
    write(folder.path(), "in.jsonl", TYPES);
    server.command(&["table", "import", "one", "in.jsonl", "--create"]);
    let filter = ["table", "export", "one", "--filter", "RowKey eq 'numbers'", "--select", "A,C"];
    let csv = server.command(&[&filter[..], &["--format", "csv"]].concat());
    let rows = "PartitionKey,RowKey,A,A@type,C,C@type\n\
                types,numbers,-2147483648,Edm.Int32,1.0,Edm.Double\n";
    assert_eq!(csv, rows);
    let import = ["table", "import", "two", "--format", "csv", "--create", "--json"];
    let mut child = lazuli(folder.path(), &import)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(csv.as_bytes()).unwrap();
    let summary = child.wait_with_output().unwrap();
    let summary: serde_json::Value = serde_json::from_str(&stdout(&summary)).unwrap();
    assert_eq!((&summary["written"], &summary["skipped"]), (&1.into(), &0.into()));
    let line = r#"{"PartitionKey":"types","RowKey":"numbers","A":-2147483648,"C@odata.type":"Edm.Double","C":1.0}"#;
    assert_eq!(exported(&server, "two"), expected(line));
}

#[test]
fn modes_decide_where_an_entity_is_already_there() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(folder.path());
    let keys = r#""PartitionKey":"p","RowKey":"r""#;
    write(folder.path(), "one.jsonl", &format!("{{{keys},\"A\":1,\"B\":1}}\n"));
    // The same entity twice: the later line wins.
    write(folder.path(), "two.jsonl", &format!("{{{keys},\"A\":0}}\n{{{keys},\"A\":2}}\n"));
    let import = |file: &str, mode: &str| {
        run(folder.path(), &["table", "import", "things", file, "--create", "--mode", mode])
    };
    assert!(import("one.jsonl", "insert").status.success());
    assert!(import("two.jsonl", "merge").status.success());
    assert_eq!(exported(&server, "things"), expected(&format!("{{{keys},\"A\":2,\"B\":1}}")));
    let refused = import("one.jsonl", "insert");
    assert_eq!(refused.status.code(), Some(1));
    assert_eq!(
        stderr(&refused),
        "error: line 1: The specified entity already exists (EntityAlreadyExists)\n"
    );
    assert!(import("two.jsonl", "replace").status.success());
    assert_eq!(exported(&server, "things"), expected(&format!("{{{keys},\"A\":2}}")));
}

#[test]
fn errors_name_their_line_and_can_be_left_out() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(folder.path());
    let text = r#"{"PartitionKey":"p","RowKey":"1"}
{"PartitionKey":"p","RowKey":"2"
{"PartitionKey":"p","RowKey":"bad/key"}
{"PartitionKey":"p","RowKey":"4"}
"#;
    write(folder.path(), "in.jsonl", text);
    let import = ["table", "import", "things", "in.jsonl", "--create"];
    let refused = run(folder.path(), &import);
    assert_eq!(refused.status.code(), Some(1));
    let expected = "error: line 2: not one flat JSON object\n\
                    hint: continue with the same command and --resume\n";
    assert_eq!(stderr(&refused), expected);
    let again = run(folder.path(), &import);
    assert!(stderr(&again).contains("was interrupted"), "{}", stderr(&again));
    // The line is mended, and the import goes on behind what it has written.
    write(folder.path(), "in.jsonl", &text.replace("\"2\"\n", "\"2\"}\n"));
    let refused = run(folder.path(), &[&import[..], &["--resume"]].concat());
    assert!(stderr(&refused).starts_with("error: line 3: "), "{}", stderr(&refused));
    let skipped = run(folder.path(), &[&import[..], &["--resume", "--skip-errors"]].concat());
    assert!(skipped.status.success());
    assert!(stderr(&skipped).starts_with("left out line 3: "), "{}", stderr(&skipped));
    assert_eq!(stdout(&skipped), "imported 3 entities into things and left out 1\n");
    assert_eq!(exported(&server, "things").len(), 3);
    write(folder.path(), "bad.jsonl", &"x\n".repeat(1001));
    let many = run(folder.path(), &["table", "import", "things", "bad.jsonl", "--skip-errors"]);
    assert_eq!(many.status.code(), Some(1));
    assert!(stderr(&many).contains("error: line 1001: "), "{}", stderr(&many));
}

#[test]
fn files_are_replaced_only_if_asked() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(folder.path());
    server.command(&["table", "create", "empty"]);
    write(folder.path(), "out.csv", "precious");
    let export = ["table", "export", "empty", "out.csv"];
    let refused = run(folder.path(), &export);
    assert_eq!(refused.status.code(), Some(1));
    assert_eq!(std::fs::read_to_string(folder.path().join("out.csv")).unwrap(), "precious");
    server.command(&[&export[..], &["--overwrite"]].concat());
    let csv = std::fs::read_to_string(folder.path().join("out.csv")).unwrap();
    assert_eq!(csv, "PartitionKey,RowKey\n");
    server.command(&["table", "import", "empty", "out.csv"]);
    let missing = run(folder.path(), &["table", "export", "missing", "x.jsonl"]);
    assert_eq!(stderr(&missing), "error: The table specified does not exist (TableNotFound)\n");
    assert!(!folder.path().join("x.jsonl.progress").exists(), "there is nothing to go on with");
    assert!(!folder.path().join("x.jsonl.part").exists());
}

#[test]
fn any_endpoint_is_reached_with_a_key_of_the_environment_and_over_tls() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start_with(folder.path(), &["--tls", "only"], &[]);
    server.command(&["table", "create", "things"]);
    let elsewhere = tempfile::tempdir().unwrap();
    let endpoint = format!("https://{}/devstoreaccount1", server.endpoint("tables"));
    let list = ["table", "list", "--endpoint", &endpoint];
    let without_key = run(elsewhere.path(), &list);
    assert_eq!(without_key.status.code(), Some(2));
    let certificate = folder.path().join("lazuli-data/tls/cert.pem");
    let mut command = lazuli(elsewhere.path(), &list);
    let listed = command.env("SSL_CERT_FILE", certificate).env("AZURE_STORAGE_KEY", PUBLISHED_KEY);
    let listed = listed.output().unwrap();
    assert_eq!(stdout(&listed), "things\n", "{}", stderr(&listed));
    let mut command = lazuli(elsewhere.path(), &list);
    command.env("AZURE_STORAGE_KEY", PUBLISHED_KEY).env_remove("SSL_CERT_FILE");
    let distrusted = command.output().unwrap();
    assert_eq!(distrusted.status.code(), Some(1));
    drop(server);
    let server = Server::start(folder.path());
    let connection = format!(
        "AccountName=devstoreaccount1;AccountKey={PUBLISHED_KEY};TableEndpoint=http://{}/devstoreaccount1",
        server.endpoint("tables")
    );
    let list = ["table", "list", "--connection", "WHERE"];
    let listed = lazuli(elsewhere.path(), &list).env("WHERE", connection).output().unwrap();
    assert_eq!(stdout(&listed), "things\n", "{}", stderr(&listed));
}

#[test]
fn a_file_of_another_program_goes_in_by_the_names_of_its_columns() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(folder.path());
    let text = "No;Customer Id;Total;Paid\n1;c1;12.5;true\n2;c2;7;false\n";
    write(folder.path(), "sales.csv", text);
    let keys = ["--partition-key", "Customer Id", "--row-key", "No", "--delimiter", ";"];
    let import = |more: &[&'static str]| {
        let words = [&["table", "import", "sales", "sales.csv", "--create"][..], &keys, more];
        words.concat()
    };
    let imported = server.command(&import(&["--types", "guess"]));
    assert_eq!(imported, "imported 2 entities into sales\n");
    let kept = r#"{"PartitionKey":"c1","RowKey":"1","Paid":true,"Total":12.5}
{"PartitionKey":"c2","RowKey":"2","Paid":false,"Total":7}
"#;
    assert_eq!(sorted(&exported(&server, "sales")), sorted(&expected(kept)));
    let bad = run(folder.path(), &import(&["--types", "Sum=Double"]));
    assert!(stderr(&bad).contains("the header has no column Sum"), "{}", stderr(&bad));
    let bad = run(folder.path(), &["table", "import", "sales", "x.jsonl", "--row-key", "No"]);
    assert_eq!(bad.status.code(), Some(2), "{}", stderr(&bad));
}
