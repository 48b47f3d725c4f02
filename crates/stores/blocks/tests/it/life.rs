//! What becomes of files over the lives of processes: leftovers, numbers, sweeps.

use std::path::Path;

use bytes::Bytes;
use lazuli_store::blocks::{BlockFile, BlockId, Blocks, Owner};
use lazuli_store_blocks::{BlockFiles, Durability};

fn open(root: &Path) -> BlockFiles {
    BlockFiles::open(root, Durability::Synced).unwrap()
}

fn owner() -> Owner {
    Owner { container: 1, route: Bytes::from_static(b"route") }
}

async fn put(files: &BlockFiles, length: usize) -> BlockFile {
    let mut writer = files.create(&owner()).await.unwrap();
    writer.write(Bytes::from(vec![7; length])).await.unwrap();
    writer.finish().await.unwrap()
}

async fn all(files: &BlockFiles) -> Vec<BlockId> {
    files.list(None, 100).await.unwrap().into_iter().map(|it| it.file.id).collect()
}

/// The names of everything in the folder of a generation.
fn names(root: &Path, generation: u64) -> Vec<String> {
    let entries = std::fs::read_dir(root.join(format!("{generation:016x}"))).unwrap();
    let mut names: Vec<_> =
        entries.map(|it| it.unwrap().file_name().to_string_lossy().into_owned()).collect();
    names.sort();
    names
}

#[tokio::test]
async fn a_file_that_was_never_finished_is_gone_after_the_next_start() {
    let root = tempfile::tempdir().unwrap();
    let files = open(root.path());
    let kept = put(&files, 10).await;
    let mut writer = files.create(&owner()).await.unwrap();
    writer.write(Bytes::from(vec![1; 1024 * 1024])).await.unwrap();
    writer.write(Bytes::from(vec![1; 1024 * 1024])).await.unwrap();
    let part = format!("{:016x}.part", kept.id.number + 1);
    assert!(names(root.path(), kept.id.generation).contains(&part));
    // A process that dies runs no destructor.
    std::mem::forget(writer);
    let again = open(root.path());
    assert_eq!(all(&again).await, [kept.id]);
    assert!(!names(root.path(), kept.id.generation).contains(&part));
}

#[tokio::test]
async fn a_large_upload_that_is_given_up_leaves_nothing() {
    let root = tempfile::tempdir().unwrap();
    let files = open(root.path());
    let mut writer = files.create(&owner()).await.unwrap();
    for _ in 0..5 {
        writer.write(Bytes::from(vec![1; 300 * 1024])).await.unwrap();
    }
    assert_eq!(names(root.path(), 1).len(), 1);
    drop(writer);
    for _ in 0..500 {
        if names(root.path(), 1).is_empty() {
            return;
        }
        tokio::time::sleep(std::time::Duration::from_millis(10)).await;
    }
    panic!("still there: {:?}", names(root.path(), 1));
}

#[tokio::test]
async fn an_id_never_comes_again_even_when_all_files_are_gone() {
    let root = tempfile::tempdir().unwrap();
    let mut last = BlockId { generation: 0, number: 0 };
    for _ in 0..4 {
        let files = open(root.path());
        for generation in files.unswept().await.unwrap() {
            files.swept(generation).await.unwrap();
        }
        let file = put(&files, 10).await;
        assert!(file.id > last);
        last = file.id;
        files.remove(file.id).await.unwrap();
        files.close().await.unwrap();
    }
    // Empty folders go, but for the last one that each process finds, which is the memory of the numbers.
    drop(open(root.path()));
    let folders = std::fs::read_dir(root.path()).unwrap().count();
    assert_eq!(folders, 1);
}

#[tokio::test]
async fn what_earlier_processes_wrote_is_swept_once() {
    let root = tempfile::tempdir().unwrap();
    let file = put(&open(root.path()), 10).await;
    let files = open(root.path());
    assert_eq!(files.unswept().await.unwrap(), [file.id.generation]);
    put(&files, 10).await;
    assert_eq!(files.unswept().await.unwrap(), [file.id.generation], "not what this one writes");
    files.swept(file.id.generation).await.unwrap();
    assert!(files.unswept().await.unwrap().is_empty());
    assert_eq!(open(root.path()).unswept().await.unwrap(), [file.id.generation + 1]);
}

#[tokio::test]
async fn a_folder_from_which_files_were_removed_is_swept_again_unless_the_process_ended_well() {
    let root = tempfile::tempdir().unwrap();
    let files = open(root.path());
    let (one, other) = (put(&files, 10).await, put(&files, 10).await);
    let files = open(root.path());
    let generation = one.id.generation;
    files.swept(generation).await.unwrap();
    files.remove(one.id).await.unwrap();
    assert!(files.unswept().await.unwrap().is_empty(), "this process knows what it did");
    assert_eq!(open(root.path()).unswept().await.unwrap(), [generation], "after a crash");
    files.close().await.unwrap();
    let files = open(root.path());
    assert!(files.unswept().await.unwrap().is_empty(), "after a good end");
    assert_eq!(all(&files).await, [other.id]);
}

#[tokio::test]
async fn a_removal_before_the_sweep_does_not_take_its_place() {
    let root = tempfile::tempdir().unwrap();
    let files = open(root.path());
    let (one, _) = (put(&files, 10).await, put(&files, 10).await);
    let files = open(root.path());
    files.remove(one.id).await.unwrap();
    assert_eq!(files.unswept().await.unwrap(), [one.id.generation]);
    files.close().await.unwrap();
    assert_eq!(open(root.path()).unswept().await.unwrap(), [one.id.generation]);
}

#[tokio::test(flavor = "multi_thread")]
async fn many_uploads_at_once_all_arrive() {
    let root = tempfile::tempdir().unwrap();
    let files = open(root.path());
    let uploads: Vec<_> = (0..200usize)
        .map(|n| {
            let files = files.clone();
            tokio::spawn(async move { put(&files, n * 3000).await })
        })
        .collect();
    let mut ids = Vec::new();
    for upload in uploads {
        ids.push(upload.await.unwrap().id);
    }
    ids.sort_unstable();
    let found = open(root.path()).list(None, 1000).await.unwrap();
    assert_eq!(found.iter().map(|it| it.file.id).collect::<Vec<_>>(), ids);
}

#[tokio::test]
async fn numbers_go_on_above_what_the_opener_remembers_though_the_folder_is_gone() {
    let root = tempfile::tempdir().unwrap();
    let folder = root.path().join("blocks");
    let open_from =
        |generation| BlockFiles::open_from(&folder, Durability::Synced, generation).unwrap();
    let files = open_from(100);
    let before = put(&files, 10).await;
    assert_eq!(before.id, BlockId { generation: 100, number: 1 });
    assert_eq!(BlockFiles::look(&folder).unwrap().last_generation, 100);
    assert_eq!(files.files_finished(), 1);
    drop(files);
    std::fs::remove_dir_all(&folder).unwrap();
    assert_eq!(BlockFiles::look(&folder).unwrap().last_generation, 0);
    let files = open_from(200);
    assert_eq!(put(&files, 20).await.id, BlockId { generation: 200, number: 1 });
    assert!(files.is_earlier(before.id));
    // What the folder shows counts as well, and is not below what it may be.
    let files = open_from(150);
    assert_eq!(put(&files, 20).await.id.generation, 201);
}

#[tokio::test]
async fn a_row_removes_neither_the_file_of_another_nor_one_in_the_place_of_its_own() {
    let root = tempfile::tempdir().unwrap();
    let files = open(root.path());
    let (one, two) = (put(&files, 10).await, put(&files, 20).await);
    let place = |id: BlockId| {
        root.path().join(format!("{:016x}", id.generation)).join(format!("{:016x}", id.number))
    };
    let other = Owner { container: 1, route: Bytes::from_static(b"another") };
    files.remove_of(&other, one.id).await.unwrap();
    assert!(place(one.id).exists());
    std::fs::copy(place(two.id), place(one.id)).unwrap();
    files.remove_of(&owner(), one.id).await.unwrap();
    assert!(place(one.id).exists(), "it says that it is another file");
    std::fs::write(place(one.id), "no file of ours").unwrap();
    files.remove_of(&owner(), one.id).await.unwrap();
    assert!(!place(one.id).exists(), "nobody can ever read it");
    files.remove_of(&owner(), two.id).await.unwrap();
    assert_eq!(all(&files).await, []);
}
