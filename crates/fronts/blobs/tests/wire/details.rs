//! What other clients than the SDKs came across: refusals, tags, properties, lists and tiers.

use expect_test::expect;

use super::raw::Server;
use super::{check, with_blob, with_container};

fn set(server: &Server, section: &str) {
    let body = format!("<StorageServiceProperties>{section}</StorageServiceProperties>");
    server.done(&format!("PUT /dev/?restype=service&comp=properties\n\n{body}"));
}

/// A client that is told of a document reads one, and an answer to HEAD has none.
#[test]
fn a_refusal_of_head_has_no_document() {
    let server = with_container();
    check(
        &server,
        "HEAD /dev/con/missing",
        expect![[r#"
            404 Not Found
            x-ms-error-code: BlobNotFound
        "#]],
    );
    server.done("PUT /dev/con/b\nx-ms-blob-type: BlockBlob\nx-ms-blob-content-type: a/b\n\nhello");
    assert_eq!(server.header("HEAD /dev/con/b", "content-type"), "a/b");
}

#[test]
fn data_lake_calls_are_told_that_there_are_no_folders() {
    let server = with_blob();
    let flat = "400 HierarchicalNamespaceNotEnabled";
    for request in [
        "HEAD /dev/con/?action=getAccessControl",
        "HEAD /dev/con?action=getAccessControl&upn=false",
        "HEAD /dev/con/b?action=getStatus",
        "HEAD /dev/con?resource=filesystem",
        "GET /dev/con?resource=filesystem&recursive=true",
        "GET /dev/?resource=account",
        "PUT /dev/con?resource=filesystem",
        "PUT /dev/new?resource=filesystem",
        "PUT /dev/con/folder?resource=directory",
        "PUT /dev/con/new?mode=legacy\nx-ms-rename-source: /con/b",
        "PATCH /dev/con/b?action=append&position=0",
        "DELETE /dev/con/b?recursive=true&action=x",
    ] {
        let expected = match request.contains("action=x") {
            // Only what Data Lake knows as an action is one: other parameters are nobody's.
            true => "202 without a code",
            false => flat,
        };
        assert_eq!(server.refusal(request), expected, "{request}");
    }
    let missing = "HEAD /dev/missing/?action=getAccessControl";
    assert_eq!(server.refusal(missing), "404 ContainerNotFound");
    let stranger = "HEAD /dev/con/?action=getAccessControl\nauthorization: none";
    assert_ne!(server.refusal(stranger), flat);
}

#[test]
fn a_search_gives_back_the_tags_that_it_names() {
    let server = with_container();
    server.done("PUT /dev/con/b\nx-ms-blob-type: BlockBlob\nx-ms-tags: a=1&b=2&c=3\n\nhello");
    let find = |query: &str| {
        let answer = server.done(&format!("GET /dev/{query}"));
        let keys = answer.split("<Key>").skip(1).filter_map(|rest| rest.split('<').next());
        keys.map(str::to_owned).collect::<Vec<_>>()
    };
    assert_eq!(find("?comp=blobs&where=b%3D'2'"), ["b"]);
    assert_eq!(
        find("?comp=blobs&where=@container%3D'con'%20AND%20c%3E'0'%20AND%20a%3C'5'"),
        ["a", "c"]
    );
    assert_eq!(find("con?restype=container&comp=blobs&where=a%3D'1'"), ["a"]);
}

#[test]
fn a_search_names_ten_tags_at_the_most() {
    let server = with_container();
    let find = |count: usize| {
        let terms: Vec<String> = (0..count).map(|number| format!("k{number}%3D'v'")).collect();
        format!("GET /dev/?comp=blobs&where={}", terms.join("%20AND%20"))
    };
    server.done(&find(10));
    assert_eq!(server.refusal(&find(11)), "400 InvalidQueryParameterValue");
    let range = format!("{}%20AND%20k0%3E%3D'a'", find(10));
    server.done(&range);
}

#[test]
fn a_blob_has_ten_tags_at_the_most() {
    let server = with_blob();
    let tags = |count: usize| {
        let one = |number: usize| format!("<Tag><Key>k{number}</Key><Value>v</Value></Tag>");
        format!("<Tags><TagSet>{}</TagSet></Tags>", (0..count).map(one).collect::<String>())
    };
    let set = |count: usize| format!("PUT /dev/con/b?comp=tags\n\n{}", tags(count));
    server.done(&set(10));
    assert_eq!(server.refusal(&set(11)), "400 TagsTooLarge");
    let header: Vec<String> = (0..11).map(|number| format!("k{number}=v")).collect();
    let header = format!("x-ms-tags: {}", header.join("&"));
    for request in [
        "PUT /dev/con/c\nx-ms-blob-type: BlockBlob",
        "PUT /dev/con/c\nx-ms-copy-source: http://127.0.0.1:10000/dev/con/b",
        "PUT /dev/con/c?comp=blocklist\nx-ms-meta-a: b",
    ] {
        let request = format!("{request}\n{header}\n\n");
        assert_eq!(server.refusal(&request), "400 TagsTooLarge", "{request}");
    }
}

#[test]
fn a_condition_on_tags_knows_no_container() {
    let server = with_container();
    server.done("PUT /dev/con/b\nx-ms-blob-type: BlockBlob\nx-ms-tags: a=1\n\nhello");
    let get = "GET /dev/con/b\nx-ms-if-tags: ";
    server.done(&format!("{get}a='1'"));
    for condition in ["@container='con'", "@container='con' AND a='1'", "a='1' OR @container='c'"] {
        let answer = server.send(&format!("{get}{condition}"));
        assert!(answer.starts_with("400"), "{condition}\n{answer}");
        assert!(answer.contains("InvalidHeaderValue"), "{answer}");
        assert!(answer.contains("<HeaderName>x-ms-if-tags</HeaderName>"), "{answer}");
    }
    let copy = "PUT /dev/con/c\nx-ms-copy-source: http://127.0.0.1:10000/dev/con/b";
    let copy = format!("{copy}\nx-ms-source-if-tags: @container='con'");
    assert_eq!(server.refusal(&copy), "400 InvalidHeaderValue");
}

#[test]
fn a_copy_has_the_tags_of_its_source_or_those_of_the_request() {
    let server = with_container();
    server.done("PUT /dev/con/b\nx-ms-blob-type: BlockBlob\nx-ms-tags: a=1\n\nhello");
    let source = "x-ms-copy-source: http://127.0.0.1:10000/dev/con/b";
    for kind in ["x-ms-requires-sync: true", "x-ms-blob-type: BlockBlob"] {
        let copy = format!("PUT /dev/con/c\n{source}\n{kind}\nx-ms-copy-source-tag-option: COPY");
        let both = format!("{copy}\nx-ms-tags: b=2");
        let expected = "400 BothUserTagsAndSourceTagsCopyPresentException";
        assert_eq!(server.refusal(&both), expected, "{kind}");
        server.done(&copy);
        let tags = server.done("GET /dev/con/c?comp=tags");
        assert!(tags.contains("<Key>a</Key><Value>1</Value>"), "{tags}");
        let own = both.replace("COPY", "REPLACE");
        server.done(&own);
        let tags = server.done("GET /dev/con/c?comp=tags");
        assert!(tags.contains("<Key>b</Key><Value>2</Value>") && !tags.contains(">a<"), "{tags}");
    }
}

#[test]
fn properties_are_set_together_and_cleared_together() {
    let server = with_container();
    let put = "PUT /dev/con/b\nx-ms-blob-type: BlockBlob";
    server.done(&format!(
        "{put}\nx-ms-blob-content-type: a/b\nx-ms-blob-cache-control: no-cache\n\
         x-ms-blob-content-disposition: inline\n\nhello"
    ));
    let get = |name: &str| server.header("HEAD /dev/con/b", name);
    server.done("PUT /dev/con/b?comp=properties\nx-ms-blob-content-language: de");
    assert_eq!((get("content-language"), get("cache-control")), ("de".into(), String::new()));
    server.done("PUT /dev/con/b?comp=properties");
    assert_eq!(get("content-language"), "");
    assert_eq!(get("content-md5"), "");
    assert_eq!(get("content-type"), "application/octet-stream");
}

#[test]
fn length_number_and_headers_of_pages_are_set_in_one_request() {
    let server = with_container();
    let put = "PUT /dev/con/p\nx-ms-blob-type: PageBlob\nx-ms-blob-content-length: 512";
    server.done(&format!("{put}\nx-ms-blob-content-type: a/b"));
    let get = |name: &str| server.header("HEAD /dev/con/p", name);
    let set = "PUT /dev/con/p?comp=properties";
    let both = "x-ms-blob-content-length: 1024\nx-ms-sequence-number-action: update\n\
                x-ms-blob-sequence-number: 7";
    assert_eq!(server.header(&format!("{set}\n{both}"), "x-ms-blob-sequence-number"), "7");
    assert_eq!((get("content-length"), get("content-type")), ("1024".into(), "a/b".into()));
    let all = both.replace("1024", "512").replace(": 7", ": 9");
    server.done(&format!("{set}\n{all}\nx-ms-blob-cache-control: no-cache"));
    assert_eq!(
        (get("content-length"), get("x-ms-blob-sequence-number")),
        ("512".into(), "9".into())
    );
    assert_eq!(get("cache-control"), "no-cache");
    assert_eq!(get("content-type"), "application/octet-stream");
}

#[test]
fn nothing_is_no_block() {
    let server = with_container();
    server.done("PUT /dev/con/a\nx-ms-blob-type: AppendBlob");
    for target in ["a?comp=appendblock", "b?comp=block&blockid=YQ%3D%3D"] {
        let answer = server.send(&format!("PUT /dev/con/{target}\ncontent-length: 0"));
        assert!(answer.starts_with("400"), "{answer}");
        assert!(answer.contains("<Code>InvalidHeaderValue</Code>"), "{answer}");
        assert!(answer.contains("<HeaderName>Content-Length</HeaderName>"), "{answer}");
    }
}

#[test]
fn a_list_shows_what_is_deleted_and_has_versions() {
    let server = with_container();
    set(&server, "<IsVersioningEnabled>true</IsVersioningEnabled>");
    let put = |name: &str, text: &str| {
        server.done(&format!("PUT /dev/con/{name}\nx-ms-blob-type: BlockBlob\n\n{text}"));
    };
    for name in ["a", "b", "c", "f/d"] {
        put(name, "one");
        put(name, "two");
    }
    for name in ["a", "c", "f/d"] {
        server.done(&format!("DELETE /dev/con/{name}"));
    }
    // What has a current version again is an ordinary blob.
    put("c", "three");
    let list = |query: &str| {
        let target = format!("GET /dev/con?restype=container&comp=list&{query}");
        let answer = server.done(&target);
        let items = answer.split("<Blob>").skip(1).map(|item| {
            let name = item.split("<Name>").nth(1).and_then(|rest| rest.split('<').next());
            let only = item.contains("<HasVersionsOnly>true</HasVersionsOnly>");
            let current = item.contains("<IsCurrentVersion>true</IsCurrentVersion>");
            let mark = match (only, current) {
                (true, _) => "!",
                (_, true) => "+",
                _ => "",
            };
            format!("{}{mark}", name.unwrap_or_default())
        });
        let items: Vec<String> = items.collect();
        let next = answer.split("<NextMarker>").nth(1).and_then(|rest| rest.split('<').next());
        (items, next.map(str::to_owned))
    };
    assert_eq!(list("include=metadata").0, ["b", "c"]);
    assert_eq!(list("include=deletedwithversions").0, ["a!", "b", "c", "f/d!"]);
    let all = ["a", "a", "a!", "b", "b+", "c", "c", "c+", "f/d", "f/d", "f/d!"];
    assert_eq!(list("include=versions,deletedwithversions").0, all);
    // Pages of any size have the same.
    for query in ["include=deletedwithversions", "include=versions,deletedwithversions"] {
        let (mut items, mut marker) = (Vec::new(), String::new());
        loop {
            let (page, next) = list(&format!("{query}&maxresults=1{marker}"));
            items.extend(page);
            match next {
                Some(next) => marker = format!("&marker={next}"),
                None => break,
            }
        }
        assert_eq!(items, list(query).0, "{query}");
    }
    let folders = server
        .done("GET /dev/con?restype=container&comp=list&delimiter=/&include=deletedwithversions");
    assert!(folders.contains("<BlobPrefix><Name>f/</Name></BlobPrefix>"), "{folders}");
}

#[test]
fn page_and_append_blobs_of_a_standard_account_have_no_tier() {
    let server = with_blob();
    let refused = "400 AccessTierNotSupportedForBlobType";
    let page = "PUT /dev/con/p\nx-ms-blob-type: PageBlob\nx-ms-blob-content-length: 512";
    let append = "PUT /dev/con/a\nx-ms-blob-type: AppendBlob";
    for put in [page, append] {
        for tier in ["P10", "Cool"] {
            assert_eq!(server.refusal(&format!("{put}\nx-ms-access-tier: {tier}")), refused);
        }
        server.done(put);
    }
    for target in ["p", "a", "b"] {
        let set = format!("PUT /dev/con/{target}?comp=tier\nx-ms-access-tier: P10");
        assert_eq!(server.refusal(&set), refused, "{target}");
    }
    let set = "PUT /dev/con/p?comp=tier\nx-ms-access-tier: Cool";
    assert_eq!(server.refusal(set), refused);
    let copy = "PUT /dev/con/q\nx-ms-copy-source: http://127.0.0.1:10000/dev/con/p";
    for kind in ["", "\nx-ms-requires-sync: true"] {
        let copy = format!("{copy}{kind}\nx-ms-access-tier: P10");
        assert_eq!(server.refusal(&copy), refused);
    }
    let put = "PUT /dev/con/c\nx-ms-blob-type: BlockBlob\nx-ms-access-tier: P10\n\nhello";
    assert_eq!(server.refusal(put), refused);
    server.done("PUT /dev/con/b?comp=tier\nx-ms-access-tier: Cool");
}
