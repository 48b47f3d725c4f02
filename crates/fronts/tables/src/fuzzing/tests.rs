//! Every target on texts from fixed seeds; `cargo fuzz` goes on from there.

use lazuli_http::mutate::corpus;

/// Texts of each kind that a target is tried on here.
const ROUNDS: u32 = 10_000;

#[test]
fn filters_are_read_or_refused_and_plans_leave_nothing_out() {
    let words = [
        "PartitionKey",
        "RowKey",
        "A",
        "eq",
        "ne",
        "gt",
        "ge",
        "lt",
        "le",
        "and",
        "or",
        "not",
        "(",
        ")",
        "'a'",
        "'b'",
        "''",
        "1",
        "5L",
        "-1.5e3",
        "NaN",
        "true",
        "guid'",
        "X'00'",
        "datetime'9999-12-31T23:59:59-01:00'",
    ];
    corpus("filter", &words, ROUNDS, super::filter);
    // Most rows of words are no filter, so some are made of whole conditions.
    let words = [
        "PartitionKey eq 'a' and",
        "RowKey gt 'a' or",
        "not",
        "(",
        ") and",
        "true",
        "'b' ge RowKey",
        "PartitionKey le 'b' and",
        "RowKey ne 'a'",
        "or",
        "and",
        "1 lt 2",
        ")",
        "PartitionKey ne ''",
    ];
    corpus("filter", &words, ROUNDS, super::filter);
}

#[test]
fn addresses_are_read_or_refused() {
    let words =
        ["dev", "/", "(", ")", "PartitionKey=", "RowKey=", "'", "''", ",", "%27", "\n", "."];
    corpus("address", &words, ROUNDS, super::address);
}

#[test]
fn heads_mean_an_operation_or_are_refused() {
    let words = [
        "GET",
        "POST",
        "MERGE",
        "\n",
        "/Tables",
        "/People",
        "(PartitionKey='a',RowKey='b')",
        "comp=",
        "acl",
        "$top=",
        "1",
        "&",
        "$select=A,",
        "if-match: *",
        "x-http-method: PUT",
        "/$batch",
    ];
    corpus("operation", &words, ROUNDS, super::operation);
}

#[test]
fn tokens_and_versions_are_read_or_refused() {
    let words =
        ["1!", "2!", "YQ", "=", "_w", "-", "W/", "\"", "datetime'", "%3A", "9999-12-31", "'"];
    corpus("continuation", &words, ROUNDS, super::continuation);
    corpus("if_match", &words, ROUNDS, super::if_match);
}

#[test]
fn entities_are_stored_as_they_were_sent_or_refused() {
    let words = [
        "{",
        "}",
        ",",
        ":",
        "\"A\"",
        "\"PartitionKey\"",
        "\"A@odata.type\"",
        "\"Edm.Int64\"",
        "\"1\"",
        "1",
        "1e400",
        "null",
        "\"Edm.DateTime\"",
        "\"1600-01-01\"",
    ];
    corpus("entity", &words, ROUNDS, super::entity);
    corpus("stored", &words, ROUNDS, super::stored);
}

#[test]
fn change_sets_are_read_or_refused() {
    let words = [
        "multipart/mixed; boundary=b\n",
        "--b\r\n\r\n",
        "--b--",
        "\r\n",
        "POST /dev/People HTTP/1.1",
        "DELETE /dev/People(PartitionKey='p',RowKey='r') HTTP/1.1\r\nIf-Match: *",
        "\r\n\r\n",
        "{\"PartitionKey\":\"p\",\"RowKey\":\"r\"}",
    ];
    corpus("change_set", &words, ROUNDS, super::change_set);
}
