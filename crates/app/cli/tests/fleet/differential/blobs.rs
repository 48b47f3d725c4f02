//! Requests to Blobs: small ones that are rows, large ones that are blocks of their own, leases under known ids.

use super::{Asked, Chance, Front};

/// Beyond what a row holds.
const LARGE_BYTES: usize = 300_000;
const LEASE: &str = "11111111-2222-3333-4444-555555555555";

fn asked(method: &'static str, path: String) -> Asked {
    Asked::new(Front::Blobs, method, format!("/devstoreaccount1/{path}"))
}

pub(super) fn next(chance: &mut Chance, seed: u64) -> Asked {
    let container = chance.name(&format!("b{seed}n"), 2);
    let blob = format!("{container}/{}", chance.name("dir/blob", 5));
    let kept = format!("blob {blob}");
    let conditions =
        ["*".to_owned(), format!("<{kept}>"), format!("<{kept}>"), "\"0x1\"".to_owned()];
    let condition = chance.pick(&conditions).clone();
    let with_etag = |request: Asked| request.keep(kept.clone(), "etag");
    match chance.below(100) {
        0..12 => asked("PUT", format!("{container}?restype=container")),
        12..13 => asked("DELETE", format!("{container}?restype=container")),
        13..16 => asked("GET", format!("{container}?restype=container")),
        16..38 => with_etag(upload(chance, blob)),
        38..42 => with_etag(upload(chance, blob).with("if-match", condition)),
        42..44 => with_etag(upload(chance, blob).with("if-none-match", "*")),
        44..58 => with_etag(asked("GET", blob)),
        58..63 => asked("GET", blob)
            .with("x-ms-range", *chance.pick(&["bytes=2-9", "bytes=90-", "bytes=999999-"])),
        63..68 => with_etag(asked("HEAD", blob)),
        68..71 => asked("GET", blob).with("if-none-match", condition),
        71..74 => with_etag(asked("PUT", format!("{blob}?comp=metadata")))
            .with("x-ms-meta-colour", chance.name("colour", 3)),
        74..79 => asked("DELETE", blob).with("if-match", condition),
        79..84 => blocks(chance, &blob),
        84..88 => append(chance, &blob),
        88..92 => lease(chance, &blob),
        _ => {
            let more = ["", "&prefix=dir/", "&maxresults=2", "&delimiter=/", "&include=metadata"];
            asked("GET", format!("{container}?restype=container&comp=list{}", chance.pick(&more)))
        }
    }
}

fn contents(chance: &mut Chance) -> String {
    let length = *chance.pick(&[0, 10, 100, 5_000, LARGE_BYTES]);
    let word = format!("content {} ", chance.below(100));
    word.repeat(length / word.len() + 1)[..length].to_owned()
}

fn upload(chance: &mut Chance, blob: String) -> Asked {
    let body = contents(chance);
    let request = asked("PUT", blob).with("x-ms-blob-type", "BlockBlob").body(body);
    match chance.below(3) {
        0 => request.with("x-ms-meta-colour", chance.name("colour", 3)),
        1 => request.with("x-ms-blob-content-type", "text/plain"),
        _ => request,
    }
}

fn blocks(chance: &mut Chance, blob: &str) -> Asked {
    let id = *chance.pick(&["QUFB", "QkJC", "Q0ND"]);
    match chance.below(3) {
        0 => {
            let id = chance.pick(&["QUFB", "QkJC", "Q0ND"]);
            let list = format!("<BlockList><Latest>{id}</Latest><Latest>QUFB</Latest></BlockList>");
            asked("PUT", format!("{blob}?comp=blocklist")).body(list)
        }
        1 => asked("GET", format!("{blob}?comp=blocklist&blocklisttype=all")),
        _ => asked("PUT", format!("{blob}?comp=block&blockid={id}")).body(contents(chance)),
    }
}

fn append(chance: &mut Chance, blob: &str) -> Asked {
    let log = format!("{blob}.log");
    match chance.below(3) {
        0 => asked("PUT", log).with("x-ms-blob-type", "AppendBlob"),
        1 => asked("GET", log),
        _ => asked("PUT", format!("{log}?comp=appendblock")).body(contents(chance)),
    }
}

fn lease(chance: &mut Chance, blob: &str) -> Asked {
    let path = format!("{blob}?comp=lease");
    match chance.below(3) {
        0 => asked("PUT", path)
            .with("x-ms-lease-action", "acquire")
            .with("x-ms-lease-duration", "-1")
            .with("x-ms-proposed-lease-id", LEASE),
        _ => asked("PUT", path).with("x-ms-lease-action", "release").with("x-ms-lease-id", LEASE),
    }
}
