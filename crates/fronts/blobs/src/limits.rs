//! What the Blob service takes. Each number is the service's own and can be changed by settings.

use std::time::Duration;

use lazuli_http::client::Sources;

const MIB: u64 = 1024 * 1024;

/// The limits of the service. Plain data, so that settings can fill it in.
#[derive(Clone, Debug)]
pub struct Limits {
    /// The most bytes of a body that is XML: block lists, policies, properties, tags.
    pub document_bytes_max: usize,
    /// The most bytes of a block blob that is put at once.
    pub put_blob_bytes_max: u64,
    /// The most bytes of one block.
    pub block_bytes_max: u64,
    /// The most blocks of a blob.
    pub block_count_max: usize,
    /// The most bytes that are appended at once.
    pub append_bytes_max: u64,
    /// The most bytes of pages that are written at once.
    pub page_write_bytes_max: u64,
    /// The most bytes of a page blob.
    pub page_blob_bytes_max: u64,
    /// The most bytes that are read from a URL at once, where the body of a block, an append or pages is.
    pub from_url_bytes_max: u64,
    /// The most bytes of all names and values of metadata.
    pub metadata_bytes_max: usize,
    /// The most tags of a blob.
    pub tag_count_max: usize,
    /// The most containers or blobs in one page of a list.
    pub page_items_max: usize,
    /// The most ranges of a page blob in one answer.
    pub page_ranges_max: usize,
    /// The most bytes of a range whose checksum is answered with it.
    pub range_digest_bytes_max: u64,
    /// The most requests in a batch.
    pub batch_requests_max: usize,
    /// The most bytes of a batch.
    pub batch_bytes_max: usize,
    /// The longest time that the server of a source may take to begin its answer.
    pub source_timeout: Duration,
    /// Where sources may be.
    pub sources: Sources,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            document_bytes_max: 8 * 1024 * 1024,
            put_blob_bytes_max: 5_000 * MIB,
            block_bytes_max: 4_000 * MIB,
            block_count_max: 50_000,
            append_bytes_max: 100 * MIB,
            page_write_bytes_max: 4 * MIB,
            page_blob_bytes_max: 8 * 1024 * 1024 * MIB,
            from_url_bytes_max: 4_000 * MIB,
            metadata_bytes_max: 8 * 1024,
            tag_count_max: 10,
            page_items_max: 5_000,
            page_ranges_max: 10_000,
            range_digest_bytes_max: 4 * MIB,
            batch_requests_max: 256,
            batch_bytes_max: 4 * 1024 * 1024,
            source_timeout: Duration::from_secs(30),
            sources: Sources::default(),
        }
    }
}

/// The shortest and the longest name of a container.
pub const CONTAINER_NAME_LENGTHS: std::ops::RangeInclusive<usize> = 3..=63;
/// The longest name of a blob.
pub const BLOB_NAME_CHARS_MAX: usize = 1_024;
/// The most parts of a blob's name, which slashes separate.
pub const BLOB_NAME_SEGMENTS_MAX: usize = 254;
/// The longest block id, before it is written in base64.
pub const BLOCK_ID_BYTES_MAX: usize = 64;
/// Pages begin and end at multiples of this.
pub const PAGE_BYTES: u64 = 512;
/// The longest key and the longest value of a tag.
pub const TAG_KEY_CHARS_MAX: usize = 128;
pub const TAG_VALUE_CHARS_MAX: usize = 256;
/// The longest filter of tags.
pub const FILTER_BYTES_MAX: usize = 32 * 1024;
/// The most comparisons of a filter of tags.
pub const FILTER_TERMS_MAX: usize = 100;
/// The most tags that a search names; a tag may be compared more than once.
pub const SEARCH_TAGS_MAX: usize = 10;
/// The longest address of a source.
pub const SOURCE_BYTES_MAX: usize = 2_048;
/// How long a lease lasts, if it is not forever, in seconds.
pub const LEASE_SECONDS: std::ops::RangeInclusive<i64> = 15..=60;
/// How long the end of a broken lease may be put off, in seconds.
pub const BREAK_SECONDS: std::ops::RangeInclusive<i64> = 0..=60;
