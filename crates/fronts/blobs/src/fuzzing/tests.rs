//! The functions of the fuzzer, on the seeds in `fuzz/seeds` and on changes of them.

use lazuli_http::mutate::corpus;

/// Texts of each kind that a target is tried on here.
const ROUNDS: u32 = 4_000;

#[test]
fn block_lists_are_read_or_refused() {
    let words = ["<BlockList>", "</BlockList>", "<Latest>", "</Latest>", "YQ==", "<Committed/>"];
    corpus("blob_block_list", &words, ROUNDS, super::block_list);
}

#[test]
fn ranges_are_read_or_refused() {
    let words = ["bytes=", "0", "511", "512", "-", "18446744073709551615", ","];
    corpus("blob_range", &words, ROUNDS, super::range);
}

#[test]
fn filters_of_tags_are_read_or_refused() {
    let words = ["a", "\"b\"", "'c'", "=", "<>", "<", ">=", "AND", "OR", "@container", "(", " "];
    corpus("blob_tag_filter", &words, ROUNDS, super::tag_filter);
}

#[test]
fn sets_of_tags_are_read_or_refused() {
    let words = ["a", "=", "&", "%20", "<Tags>", "<TagSet>", "<Tag>", "<Key>", "</Key>", "</Tag>"];
    corpus("blob_tag_set", &words, ROUNDS, super::tag_set);
}

#[test]
fn operations_are_read_or_refused() {
    let words = [
        "GET\n",
        "PUT\n",
        "DELETE\n",
        "/con",
        "/con/b",
        "?comp=",
        "list",
        "block",
        "page",
        "lease",
        "&restype=container",
        "\nx-ms-blob-type: BlockBlob",
        "\nx-ms-range: bytes=0-511",
        "\nx-ms-lease-action: break",
        "\nx-ms-copy-source: http://a/b",
    ];
    corpus("blob_operation", &words, ROUNDS, super::operation);
}

#[test]
fn moments_are_read_or_refused() {
    let words = ["2023-11-14", "T", "22:13:20", ".1230007", "Z", "\"0x", "8DBE", "1!", "YQ"];
    corpus("blob_moment", &words, ROUNDS, super::moment);
}

#[test]
fn properties_are_read_or_refused() {
    let words =
        ["<StorageServiceProperties>", "<Cors/>", "<Enabled>", "true", "</Enabled>", "<Days>"];
    corpus("blob_properties", &words, ROUNDS, super::properties);
}
