//! Large blobs of a fleet: as objects of another Lazuli, and carried over from a folder.

use std::path::Path;
use std::sync::Arc;

use bytes::Bytes;
use lazuli_postgres_server::Server as Postgres;
use lazuli_store::blocks::{BlockFile, Blocks, Owner};
use lazuli_store::blocks_suite::CASES;
use lazuli_store::objects::Objects;
use lazuli_store_objects::{RemoteObjects, Settings as ObjectSettings};
use lazuli_store_postgres::{PostgresBlocks, Settings as Database};
use tempfile::TempDir;

use crate::fleet::{Node, database, until};
use crate::program::{PUBLISHED_KEY, Server, lazuli, run, stderr};

/// A Lazuli whose Blobs keep the blocks of others, in a container of its own.
struct ObjectStore {
    server: Server,
    folder: TempDir,
}

impl ObjectStore {
    fn start() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let server = Server::start(folder.path());
        let made = server.blobs("PUT", "/devstoreaccount1/blocks?restype=container", &[], "");
        assert_eq!(made.0, 201, "{}", made.1);
        std::fs::write(folder.path().join("key"), PUBLISHED_KEY).unwrap();
        Self { server, folder }
    }

    fn address(&self, prefix: &str) -> String {
        let (endpoint, folder) = (self.server.endpoint("blobs"), self.folder.path().display());
        format!(
            "az://blocks/{prefix}?account=devstoreaccount1&key_file={folder}/key&\
             endpoint=http://{endpoint}/devstoreaccount1"
        )
    }

    fn objects(&self, prefix: &str) -> Arc<dyn Objects> {
        let settings = ObjectSettings::parse(&self.address(prefix)).unwrap();
        Arc::new(RemoteObjects::open(&settings).unwrap())
    }

    /// How many objects there are below a prefix.
    fn count(&self, prefix: &str) -> usize {
        let path = "/devstoreaccount1/blocks?restype=container&comp=list&prefix=";
        let (status, body) = self.server.blobs("GET", &format!("{path}{prefix}"), &[], "");
        assert_eq!(status, 200, "{body}");
        body.matches("<Name>").count()
    }
}

fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap()
}

async fn open(database: &str, objects: &Arc<dyn Objects>) -> PostgresBlocks {
    let settings = Database::parse(database).unwrap();
    PostgresBlocks::open_at(settings, Some(objects.clone()), "node").await.unwrap()
}

async fn put(blocks: &PostgresBlocks, bytes: Bytes) -> BlockFile {
    let owner = Owner { container: 7, route: Bytes::from_static(b"route") };
    let mut writer = blocks.create(&owner).await.unwrap();
    for start in (0..bytes.len()).step_by(1 << 20) {
        writer.write(bytes.slice(start..bytes.len().min(start + (1 << 20)))).await.unwrap();
    }
    writer.finish().await.unwrap()
}

async fn read(blocks: &PostgresBlocks, file: &BlockFile) -> Vec<u8> {
    let mut reader = blocks.read(file, 0..file.length).await.unwrap();
    let mut bytes = Vec::new();
    while let Some(piece) = reader.next().await.unwrap() {
        bytes.extend_from_slice(&piece);
    }
    bytes
}

#[test]
fn the_suite_of_blocks_passes_on_the_blobs_of_another_lazuli() {
    let Some(postgres) = Postgres::start().unwrap() else { return };
    let store = ObjectStore::start();
    runtime().block_on(async {
        for (n, (name, case)) in CASES.iter().enumerate() {
            println!("case {name}");
            let objects = store.objects(&format!("case-{n}"));
            let blocks = open(&database(&postgres, &format!("case{n}")), &objects).await;
            case(Arc::new(blocks.clone())).await;
            blocks.close().await.unwrap();
        }
    });
}

#[test]
fn objects_of_many_parts_are_read_and_those_without_a_row_are_swept() {
    let Some(postgres) = Postgres::start().unwrap() else { return };
    let store = ObjectStore::start();
    let address = database(&postgres, "blocks");
    runtime().block_on(async {
        let objects = store.objects("here");
        let blocks = open(&address, &objects).await;
        let bytes: Bytes = (0..20_000_003_u32).map(|n| (n % 251) as u8).collect();
        let file = put(&blocks, bytes.clone()).await;
        assert!(read(&blocks, &file).await == bytes);
        let other = put(&blocks, Bytes::from_static(b"small")).await;
        assert_eq!(store.count("here"), 2);
        // As after a crash between the object and its row.
        let lost = format!("DELETE FROM lazuli.files WHERE number = {}", other.id.number);
        postgres.psql("blocks", &lost).unwrap();
        let next = open(&address, &objects).await;
        next.swept(file.id.generation).await.unwrap();
        assert_eq!(store.count("here"), 1);
        assert!(read(&next, &file).await == bytes);
        next.remove(file.id).await.unwrap();
        assert_eq!(store.count("here"), 0);
        // Another place is refused, and so are rows.
        let settings = Database::parse(&address).unwrap();
        let elsewhere = Some(store.objects("elsewhere"));
        for place in [elsewhere, None] {
            let refused = PostgresBlocks::open_at(settings.clone(), place, "node").await;
            assert_eq!(refused.err().unwrap().code(), "blocks-elsewhere");
        }
    });
}

fn content(n: usize) -> String {
    format!("blob {n:04} ").repeat(300_000)
}

fn put_blob(server: &Server, n: usize) {
    let block = [("x-ms-blob-type", "BlockBlob")];
    let path = format!("/devstoreaccount1/large/blob{n}");
    let (status, body) = server.blobs("PUT", &path, &block, &content(n));
    assert_eq!(status, 201, "{body}");
}

fn check_blob(server: &Server, n: usize) {
    let path = format!("/devstoreaccount1/large/blob{n}");
    let (status, body) = server.blobs("GET", &path, &[], "");
    assert!(status == 200 && body == content(n), "blob {n}: {status}, {} bytes", body.len());
}

fn make_container(server: &Server) {
    let path = "/devstoreaccount1/large?restype=container";
    assert_eq!(server.blobs("PUT", path, &[], "").0, 201);
}

#[test]
fn nodes_share_large_blobs_as_objects_of_another_lazuli() {
    let Some(postgres) = Postgres::start().unwrap() else { return };
    let store = ObjectStore::start();
    let (catalog, shard) = (database(&postgres, "catalog"), database(&postgres, "shard"));
    let address = store.address("fleet");
    let join = |name| Node::join_with(&catalog, name, &["--blocks", &address]);
    let nodes = [join("one"), join("other")];
    nodes[0].server.command(&["shard", "add", "first", "--at", &shard]);
    make_container(&nodes[0].server);
    put_blob(&nodes[0].server, 1);
    assert!(store.count("fleet") > 0);
    check_blob(&nodes[1].server, 1);
    nodes[1].server.command(&["fsck"]);
    let key = PUBLISHED_KEY;
    assert!(!nodes.iter().any(|node| node.server.log().contains(key)), "a key is never logged");
    // Without the setting a node would look for the blobs in rows.
    let folder = tempfile::tempdir().unwrap();
    let flags = ["serve", "--catalog", &catalog, "--blob-port=0", "--queue-port=0"];
    let more = ["--table-port=0", "--document-port=0", "--bus-port=0", "--admin-port=0"];
    let refused = run(folder.path(), &[&flags[..], &more[..]].concat());
    assert!(stderr(&refused).contains("az://blocks/fleet"), "{}", stderr(&refused));
}

/// A server with large blobs whose only shard is in a database, stopped.
fn grown(folder: &Path, shard: &str, blobs: usize) {
    let mut server = Server::start(folder);
    make_container(&server);
    (0..blobs).for_each(|n| put_blob(&server, n));
    server.command(&["shard", "add", "grown", "--at", shard]);
    server.command(&["shard", "drain", "shard-0001"]);
    until("the shard can be removed", || {
        run(folder, &["shard", "remove", "shard-0001"]).status.success()
    });
    server.signal("-TERM");
    assert!(server.wait().success(), "{}", server.log());
}

#[test]
fn large_blobs_follow_the_catalog_also_if_the_move_is_killed() {
    let Some(postgres) = Postgres::start().unwrap() else { return };
    let folder = tempfile::tempdir().unwrap();
    let (shard, catalog) = (database(&postgres, "shard"), database(&postgres, "catalog"));
    const BLOBS: usize = 12;
    grown(folder.path(), &shard, BLOBS);
    let arguments = ["catalog", "move", "--to", &catalog];
    // Killed when some of the files are there.
    let mut moving = lazuli(folder.path(), &arguments).spawn().unwrap();
    let copied = || {
        let count = "SELECT count(*) FROM lazuli.files";
        postgres.psql("catalog", count).ok().and_then(|it| it.parse::<usize>().ok()).unwrap_or(0)
    };
    until("some files are copied", || copied() >= 2);
    moving.kill().unwrap();
    moving.wait().unwrap();
    let before = copied();
    println!("killed after {before} of {BLOBS} files");
    let refused = run(folder.path(), &["serve"]);
    assert!(stderr(&refused).contains("a node of a fleet"), "{}", stderr(&refused));
    let moved = run(folder.path(), &arguments);
    assert!(moved.status.success(), "{}", stderr(&moved));
    assert_eq!(copied(), BLOBS);
    let nodes = [Node::join(&catalog, "one"), Node::join(&catalog, "other")];
    for n in 0..BLOBS {
        check_blob(&nodes[n % 2].server, n);
    }
    put_blob(&nodes[1].server, BLOBS);
    check_blob(&nodes[0].server, BLOBS);
    nodes[0].server.command(&["fsck"]);
}

#[test]
fn large_blobs_follow_the_catalog_into_an_object_store() {
    let Some(postgres) = Postgres::start().unwrap() else { return };
    let store = ObjectStore::start();
    let folder = tempfile::tempdir().unwrap();
    let (shard, catalog) = (database(&postgres, "shard"), database(&postgres, "catalog"));
    grown(folder.path(), &shard, 2);
    let address = store.address("moved");
    let moved = run(folder.path(), &["catalog", "move", "--to", &catalog, "--blocks", &address]);
    assert!(moved.status.success(), "{}", stderr(&moved));
    assert_eq!(store.count("moved"), 2);
    let node = Node::join_with(&catalog, "one", &["--blocks", &address]);
    (0..2).for_each(|n| check_blob(&node.server, n));
    node.server.command(&["fsck"]);
}
