//! Lists, searches and copies.

use expect_test::expect;

use super::raw::Server;
use super::{check, with_blob};

#[test]
fn list_containers() {
    let server = Server::start();
    server.done("PUT /dev/one?restype=container\nx-ms-meta-a: b");
    server.done("PUT /dev/two?restype=container");
    server.done("PUT /dev/$web?restype=container");
    check(
        &server,
        "GET /dev/?comp=list&maxresults=1&prefix=o&include=metadata",
        expect![[r#"
        200 OK
        content-type: application/xml

        <?xml version="1.0" encoding="utf-8"?><EnumerationResults ServiceEndpoint="http://127.0.0.1:10000/dev/"><Prefix>o</Prefix><Marker></Marker><MaxResults>1</MaxResults><Containers><Container><Name>one</Name><Properties><Last-Modified><date></Last-Modified><Etag>&quot;<etag>&quot;</Etag><LeaseStatus>unlocked</LeaseStatus><LeaseState>available</LeaseState><HasImmutabilityPolicy>false</HasImmutabilityPolicy><HasLegalHold>false</HasLegalHold><ImmutableStorageWithVersioningEnabled>false</ImmutableStorageWithVersioningEnabled><DefaultEncryptionScope>$account-encryption-key</DefaultEncryptionScope><DenyEncryptionScopeOverride>false</DenyEncryptionScopeOverride></Properties><Metadata><a>b</a></Metadata></Container></Containers><NextMarker /></EnumerationResults>
    "#]],
    );
    assert!(server.send("GET /dev/?comp=list&maxresults=1").contains("<NextMarker>1!"));
    assert!(!server.send("GET /dev/?comp=list").contains("$web"));
    assert!(server.send("GET /dev/?comp=list&include=system").contains("$web"));
}

#[test]
fn list_blobs() {
    let server = with_blob();
    server.done("PUT /dev/con/a/b\nx-ms-blob-type: AppendBlob");
    let list = "GET /dev/con?restype=container&comp=list&delimiter=/&include=metadata";
    check(
        &server,
        list,
        expect![[r#"
        200 OK
        content-type: application/xml

        <?xml version="1.0" encoding="utf-8"?><EnumerationResults ServiceEndpoint="http://127.0.0.1:10000/dev/" ContainerName="con"><Prefix></Prefix><Marker></Marker><Delimiter>/</Delimiter><Blobs><BlobPrefix><Name>a/</Name></BlobPrefix><Blob><Name>b</Name><Properties><Creation-Time><date></Creation-Time><Last-Modified><date></Last-Modified><Etag><etag></Etag><Content-Length>5</Content-Length><Content-Type>application/octet-stream</Content-Type><Content-Encoding></Content-Encoding><Content-Language></Content-Language><Content-CRC64 /><Content-MD5>XUFAKrxLKna5cZ2REBfFkg==</Content-MD5><Cache-Control></Cache-Control><Content-Disposition></Content-Disposition><BlobType>BlockBlob</BlobType><AccessTier>Hot</AccessTier><AccessTierInferred>true</AccessTierInferred><LeaseStatus>unlocked</LeaseStatus><LeaseState>available</LeaseState><ServerEncrypted>true</ServerEncrypted></Properties><Metadata><one>1</one></Metadata><OrMetadata /></Blob></Blobs><NextMarker /></EnumerationResults>
    "#]],
    );
}

#[test]
fn names_that_no_document_can_carry_are_encoded() {
    let server = with_blob();
    server.done("PUT /dev/con/a%01%26b\nx-ms-blob-type: AppendBlob");
    let list = server.send("GET /dev/con?restype=container&comp=list&prefix=a");
    assert!(list.contains("<Name Encoded=\"true\">a%01%26b</Name>"), "{list}");
}

#[test]
fn find_blobs_by_tags() {
    let server = with_blob();
    server.done("PUT /dev/con/c\nx-ms-blob-type: AppendBlob\nx-ms-tags: a=b&c=d");
    check(
        &server,
        "GET /dev/?comp=blobs&where=a%3D'b'",
        expect![[r#"
        200 OK
        content-type: application/xml

        <?xml version="1.0" encoding="utf-8"?><EnumerationResults ServiceEndpoint="http://127.0.0.1:10000/dev/"><Where>a='b'</Where><Blobs><Blob><Name>c</Name><ContainerName>con</ContainerName><Tags><TagSet><Tag><Key>a</Key><Value>b</Value></Tag></TagSet></Tags></Blob></Blobs><NextMarker /></EnumerationResults>
    "#]],
    );
    assert_eq!(server.refusal("GET /dev/?comp=blobs&where=a"), "400 InvalidQueryParameterValue");
}

#[test]
fn copies() {
    let server = with_blob();
    let copy = |source: &str| {
        format!("PUT /dev/con/copy\nx-ms-copy-source: http://127.0.0.1:10000/{source}")
    };
    check(
        &server,
        &copy("dev/con/b"),
        expect![[r#"
        202 Accepted
        etag: "<etag>"
        last-modified: <date>
        x-ms-request-server-encrypted: true
        x-ms-copy-id: <id>
        x-ms-copy-status: success
    "#]],
    );
    assert!(server.send("GET /dev/con/copy").ends_with("hello\n"));
    assert_eq!(server.refusal(&copy("dev/con/none")), "404 CannotVerifyCopySource");
    // Another account's blob needs a signature.
    assert_eq!(server.refusal(&copy("other/con/b")), "401 CannotVerifyCopySource");
    let elsewhere = "PUT /dev/con/copy\nx-ms-copy-source: http://192.0.2.1/b";
    assert_eq!(server.refusal(elsewhere), "403 CannotVerifyCopySource");
    let secure = "PUT /dev/con/copy\nx-ms-copy-source: https://example.com/b";
    assert_eq!(server.refusal(secure), "403 CannotVerifyCopySource");
    let other = "PUT /dev/con/copy\nx-ms-copy-source: ftp://example.com/b";
    assert_eq!(server.refusal(other), "400 InvalidHeaderValue");
}
