//! The S3 client on a service that speaks its protocol, whose address is in `LAZULI_TEST_S3`: `cargo xtask program s3` starts one
//! and runs this. Without the variable nothing is tested.

#![allow(clippy::unwrap_used, reason = "a panic is the failure report")]

use bytes::Bytes;
use lazuli_store::objects::Objects;
use lazuli_store_objects::{RemoteObjects, Settings};

/// More than one part of an upload.
const LARGE_BYTES: usize = 20 * 1024 * 1024 + 7;

fn objects() -> Option<RemoteObjects> {
    let address = std::env::var("LAZULI_TEST_S3").ok()?;
    Some(RemoteObjects::open(&Settings::parse(&address).unwrap()).unwrap())
}

fn noise(length: usize) -> Bytes {
    (0..length).map(|n| (n * 7 + n / 251) as u8).collect::<Vec<u8>>().into()
}

async fn put(objects: &RemoteObjects, name: &str, bytes: &Bytes) {
    let mut writer = objects.create(name).await.unwrap();
    for start in (0..bytes.len()).step_by(1 << 20) {
        writer.write(bytes.slice(start..bytes.len().min(start + (1 << 20)))).await.unwrap();
    }
    writer.finish().await.unwrap();
}

#[tokio::test]
async fn objects_are_written_in_parts_read_in_ranges_listed_and_removed() {
    let Some(objects) = objects() else { return };
    let (small, large) = (noise(1_000), noise(LARGE_BYTES));
    put(&objects, "1/small", &small).await;
    put(&objects, "1/large", &large).await;
    put(&objects, "1/empty", &Bytes::new()).await;
    put(&objects, "2/other", &small).await;
    assert_eq!(objects.read("1/small", 0..1_000).await.unwrap(), Some(small.clone()));
    for start in (0..LARGE_BYTES).step_by(4 << 20) {
        let end = LARGE_BYTES.min(start + (4 << 20));
        let read = objects.read("1/large", start as u64..end as u64).await.unwrap().unwrap();
        assert!(read == large.slice(start..end), "from {start} on");
    }
    // What is not there, or shorter than it should be, is told as missing.
    assert_eq!(objects.read("1/none", 0..5).await.unwrap(), None);
    assert_eq!(objects.read("1/small", 990..1_010).await.unwrap(), None);
    let names = objects.list("1", None, 10).await.unwrap();
    assert_eq!(names, ["1/empty", "1/large", "1/small"]);
    assert_eq!(objects.list("1", Some("1/empty"), 1).await.unwrap(), ["1/large"]);
    objects.remove("1/large").await.unwrap();
    objects.remove("1/large").await.unwrap();
    assert_eq!(objects.read("1/large", 0..5).await.unwrap(), None);
    assert_eq!(objects.list("1", None, 10).await.unwrap(), ["1/empty", "1/small"]);
}

#[tokio::test]
async fn a_writer_that_is_dropped_leaves_no_object() {
    let Some(objects) = objects() else { return };
    let mut writer = objects.create("3/dropped").await.unwrap();
    for _ in 0..12 {
        writer.write(noise(1 << 20)).await.unwrap();
    }
    drop(writer);
    assert_eq!(objects.read("3/dropped", 0..5).await.unwrap(), None);
    assert_eq!(objects.list("3", None, 10).await.unwrap(), [""; 0]);
}
