//! Snapshots, versions and what was deleted: what requests may say of them, and what not.

use super::raw::Server;
use super::{with_blob, with_container};

fn set(server: &Server, section: &str) {
    let body = format!("<StorageServiceProperties>{section}</StorageServiceProperties>");
    server.done(&format!("PUT /dev/?restype=service&comp=properties\n\n{body}"));
}

fn snapshot(server: &Server) -> String {
    server.header("PUT /dev/con/b?comp=snapshot", "x-ms-snapshot")
}

#[test]
fn only_the_blob_itself_is_written_and_leased() {
    let server = with_blob();
    let snapshot = snapshot(&server);
    for (part, headers) in [
        ("", "x-ms-blob-type: BlockBlob"),
        ("comp=lease&", "x-ms-lease-action: acquire\nx-ms-lease-duration: 15"),
        ("comp=metadata&", "x-ms-meta-a: b"),
        ("comp=properties&", "x-ms-blob-content-type: text/plain"),
        ("comp=snapshot&", "x-ms-meta-a: b"),
        ("comp=block&blockid=YQ%3D%3D&", "content-length: 0"),
        ("comp=undelete&", "x-ms-meta-a: b"),
    ] {
        for state in [format!("snapshot={snapshot}"), format!("versionid={snapshot}")] {
            let request = format!("PUT /dev/con/b?{part}{state}\n{headers}");
            assert_eq!(server.refusal(&request), "400 InvalidOperation", "{request}");
        }
    }
    let both = format!("GET /dev/con/b?snapshot={snapshot}&versionid={snapshot}");
    assert_eq!(server.refusal(&both), "400 MutuallyExclusiveQueryParameters");
    assert!(server.send(&format!("GET /dev/con/b?snapshot={snapshot}")).ends_with("hello\n"));
}

#[test]
fn what_goes_for_good_was_deleted_before() {
    let server = with_blob();
    let snapshot = snapshot(&server);
    let target = format!("DELETE /dev/con/b?snapshot={snapshot}");
    let permanent = format!("{target}&deletetype=permanent");
    assert_eq!(server.refusal(&permanent), "400 InvalidQueryParameterValue");
    set(
        &server,
        "<DeleteRetentionPolicy><Enabled>true</Enabled><Days>7</Days><AllowPermanentDelete>true\
         </AllowPermanentDelete></DeleteRetentionPolicy>",
    );
    assert_eq!(server.refusal(&permanent), "409 BlobSnapshotNotSoftDeleted");
    assert_eq!(server.header(&target, "x-ms-delete-type-permanent"), "false");
    assert_eq!(server.header(&permanent, "x-ms-delete-type-permanent"), "true");
    assert_eq!(server.refusal(&permanent), "404 BlobNotFound");
}

#[test]
fn what_was_there_before_the_switch_is_the_first_version() {
    let server = with_blob();
    set(&server, "<IsVersioningEnabled>true</IsVersioningEnabled>");
    let put = "PUT /dev/con/b\nx-ms-blob-type: BlockBlob\n\n";
    let second = server.header(&format!("{put}two"), "x-ms-version-id");
    let list = server.done("GET /dev/con?restype=container&comp=list&include=versions");
    assert_eq!(list.matches("<VersionId>").count(), 2, "{list}");
    assert_eq!(list.matches("<IsCurrentVersion>").count(), 1, "{list}");
    set(&server, "<IsVersioningEnabled>false</IsVersioningEnabled>");
    // A version stays one when the switch is off again, and what follows is none.
    assert_eq!(server.header(&format!("{put}three"), "x-ms-version-id"), "");
    let get = format!("GET /dev/con/b?versionid={second}");
    assert!(server.send(&get).ends_with("two\n"));
    assert_eq!(server.header(&get, "x-ms-is-current-version"), "");
    assert!(server.send("GET /dev/con/b").ends_with("three\n"));
}

#[test]
fn a_container_may_hash_its_names() {
    let server = with_container();
    let create = "PUT /dev/spread?restype=container\nx-lazuli-map: ";
    assert_eq!(server.refusal(&format!("{create}modulo")), "400 InvalidHeaderValue");
    server.done(&format!("{create}hash"));
    let properties = "?restype=container";
    let map = |name: &str| server.header(&format!("GET /dev/{name}{properties}"), "x-lazuli-map");
    assert_eq!((map("spread"), map("con")), ("hash".to_owned(), String::new()));
    let names = ["2026/11/16/1", "2026/11/16/2", "2026/11/17/1", "2027/01/01/1"];
    for name in names {
        server.done(&format!("PUT /dev/spread/{name}\nx-ms-blob-type: BlockBlob\n\n{name}"));
        assert!(server.send(&format!("GET /dev/spread/{name}")).ends_with(&format!("{name}\n")));
    }
    let listed = |query: &str| {
        let list = server.done(&format!("GET /dev/spread?restype=container&comp=list{query}"));
        let names = list.split("<Name>").skip(1).filter_map(|rest| rest.split('<').next());
        names.map(str::to_owned).collect::<Vec<_>>()
    };
    assert_eq!(listed(""), names);
    assert_eq!(listed("&prefix=2026/11/16/"), names[..2]);
    assert_eq!(listed("&delimiter=/"), ["2026/", "2027/"]);
    assert_eq!(listed("&prefix=2026/11/&delimiter=/"), ["2026/11/16/", "2026/11/17/"]);
}
