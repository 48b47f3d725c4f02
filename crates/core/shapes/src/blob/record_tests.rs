//! Records survive their rows, whole and damaged.

use super::*;
use crate::blob::record::Headers;

fn full() -> BlobRecord {
    let text = |text: &str| Some(text.to_owned());
    let pairs = |name: &str| vec![(name.to_owned(), "value".to_owned())];
    BlobRecord {
        kind: BlobKind::Page,
        created_ms: 7,
        changed: Lsn(8),
        changed_ms: Some(7),
        content: ContentRef { id: 9, length: 1 << 40, form: Form::Pieces },
        is_committed: true,
        is_current_version: false,
        version: Some(Lsn(10)),
        headers: Headers {
            content_type: text("type"),
            content_encoding: text("encoding"),
            content_language: text("language"),
            content_disposition: text("disposition"),
            cache_control: text("cache"),
            content_md5: Some([3; 16]),
        },
        metadata: pairs("meta"),
        tags: pairs("tag"),
        tier: Some(ChosenTier {
            tier: Tier::Archive,
            changed_ms: 11,
            rehydration: Some(Rehydration { to: Tier::Premium(30), is_urgent: true, ready_ms: 12 }),
        }),
        lease: Lease { id: text("id"), seconds: None, expires_ms: None, broken_ms: Some(1) },
        copy: Some(CopyState {
            id: "copy".into(),
            source: "http://there".into(),
            status: CopyStatus::Failed,
            done: 5,
            total: 6,
            completed_ms: Some(13),
            description: text("why"),
        }),
        immutability: Some(Immutability { until_ms: 14, is_locked: true }),
        has_legal_hold: true,
        expires_ms: Some(15),
        key_sha256: Some([4; 32]),
        scope: text("scope"),
        deleted: Some(Deleted { at_ms: 16, until_ms: 17 }),
        sequence_number: 18,
        kept_until: Lsn(19),
        append_blocks: 20,
        is_sealed: true,
        waiting: 21,
    }
}

#[test]
fn a_record_survives_its_row() {
    for record in [full(), BlobRecord::new(BlobKind::Append, Lsn(5))] {
        assert_eq!(BlobRecord::decode(record.encode()).unwrap(), record);
    }
}

#[test]
fn a_damaged_row_is_an_error_and_never_a_panic() {
    let row = full().encode();
    for length in 0..row.len() {
        // A row that ends between two fields lacks the rest, and nothing else can be said of it.
        let _ = BlobRecord::decode(row.slice(..length));
    }
    for at in 0..row.len() {
        for bit in 0..8 {
            let mut bytes = row.to_vec();
            bytes[at] ^= 1 << bit;
            let _ = BlobRecord::decode(bytes.into());
        }
    }
    assert!(BlobRecord::decode(row.slice(..10)).is_err());
}

#[test]
fn a_blob_leaves_the_archive_when_its_time_has_come() {
    let record = full();
    assert!(record.is_archived(11));
    assert!(!record.is_archived(12));
    assert_eq!(record.tier_at(12).unwrap().tier, Tier::Premium(30));
    assert_eq!(record.tier_at(12).unwrap().rehydration, None);
}
