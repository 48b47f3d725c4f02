//! Damages tables, manifests and the other files beside the journals, one at a time, and demands that it is loud: the
//! store refuses to open, or a read fails, or nothing that is read differs. Never a value that is missing or wrong.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use crate::fixture::{COMMITS, Fixture, contents, files, read_all, write_files};
use lazuli_store::{Kind, Reads, Store, Write};
use lazuli_store_embedded::{EmbeddedStore, Settings};

type Files = BTreeMap<PathBuf, Vec<u8>>;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Outcome {
    /// Does not open, and leaves tables, journals and our own files as they are.
    Refuses,
    /// Opens, and some read fails.
    ReadFails,
    /// Opens, and everything is there.
    Whole,
}

/// Opens what these files make up, and reads everything. `seen` says whether `verify` found damage.
async fn outcome(case: &str, damaged: &Files) -> (Outcome, bool) {
    let folder = tempfile::tempdir().unwrap();
    write_files(folder.path(), damaged);
    let before = files(folder.path());
    let store = match EmbeddedStore::open(folder.path(), &Settings::default()) {
        Ok(store) => store,
        Err(error) => {
            assert!(matches!(error.kind(), Kind::Corrupt | Kind::Invalid), "{case}: {error}");
            let after = files(folder.path());
            // Damage that only reading finds is found when the engine has begun to tidy its manifests.
            let names = before.keys().chain(after.keys()).filter(|name| !is_manifest(name));
            let changed: Vec<_> =
                names.filter(|name| before.get(*name) != after.get(*name)).collect();
            assert!(changed.is_empty(), "{case}: the refusal changed {changed:?}: {error}");
            return (Outcome::Refuses, true);
        }
    };
    let seen = store.verify().map_or(true, |found| !found.damages.is_empty());
    match read_all(&*store.snapshot(&[], Reads::Long).await.unwrap()).await {
        Ok(found) => {
            assert!(found == contents(COMMITS), "{case}: opened, read, and it differs");
            (Outcome::Whole, seen)
        }
        Err(error) => {
            assert_eq!(error.kind(), Kind::Corrupt, "{case}: {error}");
            (Outcome::ReadFails, seen)
        }
    }
}

fn is_table(path: &Path) -> bool {
    let folders = ["keyspaces/1/tables", "keyspaces/2/tables"];
    path.parent().is_some_and(|folder| folders.iter().any(|tables| folder.ends_with(tables)))
}

fn is_manifest(path: &Path) -> bool {
    let name = path.file_name().unwrap().to_str().unwrap();
    name == "current" || name.strip_prefix('v').is_some_and(|rest| rest.parse::<u64>().is_ok())
}

/// The files that hold what was written, once it is out of the journal.
fn held(fixture: &Fixture) -> Vec<PathBuf> {
    let counts = |path: &&PathBuf| {
        let name = path.file_name().unwrap().to_str().unwrap();
        let obsolete = is_manifest(path) && name != "current" && {
            let current = &fixture.files[&path.with_file_name("current")];
            name != format!("v{}", u64::from_le_bytes(current[..8].try_into().unwrap()))
        };
        !name.ends_with(".jnl") && name != "lazuli.answered" && !obsolete
    };
    fixture.files.keys().filter(counts).cloned().collect()
}

#[tokio::test]
async fn an_undamaged_store_is_whole_and_verifies() {
    let fixture = Fixture::new(true).await;
    assert_eq!(outcome("untouched", &fixture.files).await, (Outcome::Whole, false));
    let tables = held(&fixture).iter().filter(|path| is_table(path)).count();
    assert_eq!(tables, 2, "one of each keyspace");
}

#[tokio::test]
async fn a_missing_or_emptied_file_is_refused() {
    let fixture = Fixture::new(true).await;
    for path in held(&fixture) {
        let mut damaged = fixture.files.clone();
        damaged.remove(&path);
        let case = format!("{} missing", path.display());
        assert_eq!(outcome(&case, &damaged).await.0, Outcome::Refuses, "{case}");
        for length in [0, 1, fixture.files[&path].len() / 2, fixture.files[&path].len() - 1] {
            let mut damaged = fixture.files.clone();
            damaged.get_mut(&path).unwrap().truncate(length);
            let case = format!("{} cut to {length}", path.display());
            assert_eq!(outcome(&case, &damaged).await.0, Outcome::Refuses, "{case}");
        }
    }
}

#[tokio::test]
async fn a_zeroed_stretch_is_loud() {
    let fixture = Fixture::new(true).await;
    for path in held(&fixture) {
        let length = fixture.files[&path].len();
        for start in (0..length).step_by(4096) {
            let mut damaged = fixture.files.clone();
            damaged.get_mut(&path).unwrap()[start..length.min(start + 4096)].fill(0);
            let case = format!("{} zero from {start}", path.display());
            let (found, seen) = outcome(&case, &damaged).await;
            assert!(found != Outcome::Whole && seen, "{case}: {found:?}");
        }
    }
}

/// Whatever byte flips: refused, or a read fails, or all is there; and `verify` sees every flip in a table.
#[tokio::test]
async fn a_flipped_byte_is_loud_or_harmless() {
    let fixture = Fixture::new(true).await;
    let every = std::env::var("LAZULI_DAMAGE_EVERY").map_or(211, |every| every.parse().unwrap());
    for path in held(&fixture) {
        for at in (0..fixture.files[&path].len()).step_by(every) {
            let mut damaged = fixture.files.clone();
            damaged.get_mut(&path).unwrap()[at] ^= 0x04;
            let case = format!("{} flipped at {at}", path.display());
            let (found, seen) = outcome(&case, &damaged).await;
            if is_table(&path) {
                assert!(seen, "{case}: {found:?}, and verify sees nothing");
            } else if found == Outcome::Whole {
                println!("{case}: harmless");
            }
        }
    }
}

#[tokio::test]
async fn a_table_in_the_place_of_another_is_seen_by_verify() {
    let folder = tempfile::tempdir().unwrap();
    for number in 1..=COMMITS {
        let store = EmbeddedStore::open(folder.path(), &Settings::default()).unwrap();
        let txn = store.begin(vec![]).await.unwrap();
        txn.commit(crate::fixture::writes(number)).await.unwrap();
        if number > COMMITS - 2 {
            store.close().await.unwrap();
        }
    }
    let mut damaged = files(folder.path());
    let tables: Vec<PathBuf> = damaged.keys().filter(|path| is_table(path)).cloned().collect();
    assert!(tables.len() > 1, "{tables:?}");
    let other = damaged[&tables[0]].clone();
    damaged.insert(tables[1].clone(), other);
    let folder = tempfile::tempdir().unwrap();
    write_files(folder.path(), &damaged);
    match EmbeddedStore::open(folder.path(), &Settings::default()) {
        Ok(store) => assert!(!store.verify().unwrap().damages.is_empty()),
        Err(error) => assert_eq!(error.kind(), Kind::Corrupt),
    }
}

/// The same where tables lie deep, their blocks compressed and their indexes split.
#[tokio::test]
async fn a_flipped_byte_in_a_deep_table_is_loud() {
    const ITEMS: usize = 40_000;
    const FLIPS: u64 = 20;
    let settings = Settings { memtable_bytes: 256 * 1024, ..Settings::default() };
    let item = |n: usize| {
        let key = format!("key-{:06}", n * 7919 % ITEMS);
        let value = format!("{key} ").repeat(n % 20 + 1);
        (bytes::Bytes::from(key), bytes::Bytes::from(value))
    };
    let folder = tempfile::tempdir().unwrap();
    let store = EmbeddedStore::open(folder.path(), &settings).unwrap();
    for batch in (0..ITEMS).collect::<Vec<_>>().chunks(500) {
        let txn = store.begin(vec![]).await.unwrap();
        let puts = batch.iter().map(|n| item(*n)).map(|(key, value)| Write::Put(key, value));
        txn.commit(puts.collect()).await.unwrap();
    }
    store.close().await.unwrap();
    drop(store);
    let whole = files(folder.path());
    let tables: Vec<PathBuf> = whole.keys().filter(|path| is_table(path)).cloned().collect();
    let mut loud = 0;
    for flip in 0..FLIPS {
        let noise = spread(flip);
        let path = &tables[noise as usize % tables.len()];
        let at = (noise >> 20) as usize % whole[path].len();
        let case = format!("{} flipped at {at}", path.display());
        let folder = tempfile::tempdir().unwrap();
        write_files(folder.path(), &whole);
        let mut bytes = whole[path].clone();
        bytes[at] ^= 0x20;
        std::fs::write(folder.path().join(path), bytes).unwrap();
        let Ok(store) = EmbeddedStore::open(folder.path(), &settings) else {
            loud += 1;
            continue;
        };
        // A table may be left over from a compaction, or be replaced by one while we look; then nothing is seen.
        let damages = store.verify().unwrap().damages;
        let mut seen = damages.iter().any(|damage| damage.file.ends_with(path));
        let snapshot = store.snapshot(&[], Reads::Long).await.unwrap();
        for n in 0..ITEMS {
            let (key, value) = item(n);
            match snapshot.get(&key).await {
                Ok(found) => assert_eq!(found, Some(value), "{case}: {key:?}"),
                Err(error) => {
                    assert_eq!(error.kind(), Kind::Corrupt, "{case}: {error}");
                    seen = true;
                    break;
                }
            }
        }
        loud += u64::from(seen);
    }
    assert!(loud > FLIPS / 4, "only {loud} of {FLIPS} flips were noticed");
}

/// Spreads a number over 64 bits.
fn spread(number: u64) -> u64 {
    lazuli_env::mix(number) >> 1
}
