//! Checksums that requests name: which of them are compared, and what is refused before any byte is read.

use super::{with_blob, with_container};

/// Of `hello`, and of something else.
const MD5: &str = "XUFAKrxLKna5cZ2REBfFkg==";
const OTHER_MD5: &str = "eV8yArF8trw9S3cdjGyerw==";
const CRC64: &str = "V0JSBnCFdzM=";

const PUT: &str = "PUT /dev/con/b\nx-ms-blob-type: BlockBlob";
const BLOCK: &str = "PUT /dev/con/b?comp=block&blockid=YQ%3D%3D";
const SOURCE: &str = "x-ms-copy-source: http://127.0.0.1:10000/dev/con/b";

#[test]
fn a_body_has_one_checksum() {
    let server = with_container();
    server.done("PUT /dev/con/a\nx-ms-blob-type: AppendBlob");
    for request in [PUT, BLOCK, "PUT /dev/con/a?comp=appendblock"] {
        for md5 in [MD5, "bad"] {
            let both = format!("{request}\ncontent-md5: {md5}\nx-ms-content-crc64: {CRC64}");
            let refusal = server.refusal(&format!("{both}\n\nhello"));
            assert_eq!(refusal, "400 BothCrc64AndMd5HeaderPresent", "{both}");
        }
        server.done(&format!("{request}\ncontent-md5: {MD5}\n\nhello"));
        server.done(&format!("{request}\nx-ms-content-crc64: {CRC64}\n\nhello"));
    }
    let both = format!("{PUT}\nx-ms-blob-content-md5: {MD5}\nx-ms-content-crc64: {CRC64}");
    assert_eq!(server.refusal(&format!("{both}\n\nhello")), "400 BothCrc64AndMd5HeaderPresent");
    let source = format!("PUT /dev/con/c?comp=block&blockid=YQ%3D%3D\n{SOURCE}");
    let both =
        format!("{source}\nx-ms-source-content-md5: {MD5}\nx-ms-source-content-crc64: {CRC64}");
    assert_eq!(server.refusal(&both), "400 BothCrc64AndMd5HeaderPresent");
    let ranges = "GET /dev/con/b\nx-ms-range: bytes=0-1\nx-ms-range-get-content-md5: true\n\
                  x-ms-range-get-content-crc64: true";
    assert_eq!(server.refusal(ranges), "400 BothCrc64AndMd5RangeHeaderPresent");
}

#[test]
fn a_checksum_has_its_length() {
    let server = with_container();
    // 15 bytes, 17 bytes, and what is no base64 at all.
    for bad in ["MTIzNDU2Nzg5MDEyMzQ1", "MTIzNDU2Nzg5MDEyMzQ1Njc=", "*"] {
        for header in ["content-md5", "x-ms-blob-content-md5"] {
            let request = format!("{PUT}\n{header}: {bad}\n\nhello");
            assert_eq!(server.refusal(&request), "400 InvalidMd5", "{request}");
        }
        let request = format!("{BLOCK}\ncontent-md5: {bad}\n\nhello");
        assert_eq!(server.refusal(&request), "400 InvalidMd5", "{request}");
    }
    for bad in ["MTIzNDU2Nw==", "*"] {
        let request = format!("{PUT}\nx-ms-content-crc64: {bad}\n\nhello");
        assert_eq!(server.refusal(&request), "400 InvalidHeaderValue", "{request}");
    }
    let long = format!("{PUT}\nx-ms-content-crc64: MTIzNDU2Nzg5\n\nhello");
    assert_eq!(server.refusal(&long), "400 Crc64Mismatch");
    // Some clients leave the padding out.
    let bare = MD5.trim_end_matches('=');
    server.done(&format!("{PUT}\ncontent-md5: {bare}\n\nhello"));
}

#[test]
fn the_md5_of_the_blob_comes_before_that_of_the_body() {
    let server = with_container();
    let put = |blob: &str, body: &str| {
        format!("{PUT}\nx-ms-blob-content-md5: {blob}\ncontent-md5: {body}\n\nhello")
    };
    assert_eq!(server.refusal(&put(OTHER_MD5, MD5)), "400 Md5Mismatch");
    assert_eq!(server.header(&put(MD5, OTHER_MD5), "content-md5"), MD5);
    assert_eq!(server.header("GET /dev/con/b", "content-md5"), MD5);
    assert_eq!(server.refusal(&put(MD5, "MTIz")), "400 InvalidMd5");
    // An append blob has no bytes yet: its MD5 is what the client says.
    let append =
        format!("PUT /dev/con/a\nx-ms-blob-type: AppendBlob\nx-ms-blob-content-md5: {MD5}");
    server.done(&append);
    assert_eq!(server.header("HEAD /dev/con/a", "content-md5"), MD5);
}

#[test]
fn a_synchronous_copy_checks_and_answers_the_md5_of_its_source() {
    let server = with_blob();
    for kind in ["x-ms-requires-sync: true", "x-ms-blob-type: BlockBlob"] {
        let copy = format!("PUT /dev/con/copy\n{SOURCE}\n{kind}");
        let wrong = format!("{copy}\nx-ms-source-content-md5: {OTHER_MD5}");
        assert_eq!(server.refusal(&wrong), "400 Md5Mismatch", "{kind}");
        assert_eq!(server.refusal("HEAD /dev/con/copy"), "404 BlobNotFound");
        let right = format!("{copy}\nx-ms-source-content-md5: {MD5}");
        assert_eq!(server.header(&right, "content-md5"), MD5, "{kind}");
        assert_eq!(server.header("HEAD /dev/con/copy", "content-md5"), MD5, "{kind}");
        let short = format!("{copy}\nx-ms-source-content-md5: MTIz");
        assert_eq!(server.refusal(&short), "400 InvalidMd5", "{kind}");
        server.done("DELETE /dev/con/copy");
    }
    // What is compared are the bytes, not what somebody wrote into the properties of the source.
    server.done(&format!("PUT /dev/con/b?comp=properties\nx-ms-blob-content-md5: {OTHER_MD5}"));
    let copy = format!("PUT /dev/con/copy\n{SOURCE}\nx-ms-requires-sync: true");
    let wrong = format!("{copy}\nx-ms-source-content-md5: {OTHER_MD5}");
    assert_eq!(server.refusal(&wrong), "400 Md5Mismatch");
    server.done(&format!("{copy}\nx-ms-source-content-md5: {MD5}"));
    let put = format!("PUT /dev/con/put\n{SOURCE}\nx-ms-blob-type: BlockBlob");
    let wrong = format!("{put}\nx-ms-blob-content-md5: {OTHER_MD5}");
    assert_eq!(server.refusal(&wrong), "400 Md5Mismatch");
}
