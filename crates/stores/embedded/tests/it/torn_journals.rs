//! Tears, truncates, zeroes and flips journals, and states the outcome of each case.
//!
//! The rule behind the table: what was answered is there or the store does not open; what was not answered is there
//! whole or not at all, and never keeps the store from opening.

use std::collections::BTreeMap;
use std::path::PathBuf;

use crate::fixture::{COMMITS, Fixture, answered, contents, files, journal, read_all, write_files};
use lazuli_store::{Error, Kind, Reads, Store};
use lazuli_store_embedded::{EmbeddedStore, Settings};

/// What the answered file says when the store is opened again.
#[derive(Clone, Copy, Debug)]
enum Answered {
    /// All commits, as after a crash of the process.
    All,
    /// All but the last, which was under way.
    AllButLast,
    /// Nothing, as it may be after a crash of the machine.
    Unknown,
}

#[derive(Debug, PartialEq, Eq)]
enum Outcome {
    /// Opens with so many commits, nothing to repair.
    Opens(usize),
    /// Opens with so many commits after a torn tail was cut off.
    Cuts(usize),
    /// Does not open, says where, changes nothing.
    Refuses,
}
use Answered::{All, AllButLast, Unknown};
use Outcome::{Cuts, Opens, Refuses};

type Files = BTreeMap<PathBuf, Vec<u8>>;

/// Opens the store that these files make up, and says what came of it.
async fn outcome(case: &str, files_before: &Files) -> (Outcome, Option<Error>) {
    let folder = tempfile::tempdir().unwrap();
    write_files(folder.path(), files_before);
    let store = match EmbeddedStore::open(folder.path(), &Settings::default()) {
        Ok(store) => store,
        Err(error) => {
            assert_eq!(error.kind(), Kind::Corrupt, "{case}: {error}");
            return (Refuses, Some(error));
        }
    };
    let found = read_all(&*store.snapshot(&[], Reads::Long).await.unwrap()).await.unwrap();
    let commits = (0..=COMMITS).find(|commits| contents(*commits) == found);
    let commits = commits.unwrap_or_else(|| panic!("{case}: no number of commits gives {found:?}"));
    let outcome = if store.recovery().cut.is_some() { Cuts(commits) } else { Opens(commits) };
    // What is left must be a store: it takes a commit and opens again.
    let txn = store.begin(vec![]).await.unwrap();
    txn.commit(vec![lazuli_store::Write::Put("after".into(), "x".into())]).await.unwrap();
    drop(store);
    let store = EmbeddedStore::open(folder.path(), &Settings::default()).unwrap();
    let mut found = read_all(&*store.snapshot(&[], Reads::Long).await.unwrap()).await.unwrap();
    assert!(found.remove(&b"after"[..]).is_some() && store.recovery().cut.is_none(), "{case}");
    assert_eq!(found, contents(commits), "{case}");
    (outcome, None)
}

fn damage(fixture: &Fixture, known: Answered, change: impl FnOnce(&mut Vec<u8>)) -> Files {
    let mut files = fixture.files.clone();
    change(files.get_mut(&journal(0)).unwrap());
    set_answered(&mut files, fixture, known);
    files
}

fn set_answered(files: &mut Files, fixture: &Fixture, known: Answered) {
    match known {
        All => {}
        AllButLast => {
            files.insert(answered(), fixture.answered[COMMITS - 1].clone());
        }
        Unknown => {
            files.remove(&answered());
        }
    }
}

type Change = fn(&Fixture, &mut Vec<u8>);

#[tokio::test]
async fn each_way_to_damage_a_journal_has_its_outcome() {
    let fixture = Fixture::new(false).await;
    let last = COMMITS;
    #[rustfmt::skip]
    let cases: &[(&str, Answered, Change, Outcome)] = &[
        ("untouched", All, |_, _| {}, Opens(last)),
        ("untouched, last not answered", AllButLast, |_, _| {}, Opens(last)),
        ("untouched, nothing known", Unknown, |_, _| {}, Opens(last)),
        ("zeros set aside behind it", All, |_, j| j.resize(j.len() + 100_000, 0), Opens(last)),
        ("zeros, then bytes", All, |_, j| { j.resize(j.len() + 5_000, 0); j.push(7) }, Cuts(last)),
        ("bytes behind it", All, |_, j| j.extend(b"\x01\x02\x03"), Cuts(last)),
        ("the start of a batch behind it", All, |f, j| j.extend_from_within(f.batch(3).start..f.batch(3).start + 100), Cuts(last)),
        ("an old batch again behind it", All, |f, j| j.extend_from_within(f.batch(3)), Cuts(last)),

        ("last cut short", AllButLast, |f, j| j.truncate(f.batch(10).start + 4_000), Cuts(9)),
        ("last cut short by one byte", AllButLast, |_, j| j.truncate(j.len() - 1), Cuts(9)),
        ("last gone", AllButLast, |f, j| j.truncate(f.batch(10).start), Opens(9)),
        ("last zero", AllButLast, |f, j| j[f.batch(10)].fill(0), Opens(9)),
        ("a page of the last zero", AllButLast, |f, j| { let p = (f.batch(10).start / 4096 + 1) * 4096; j[p..p + 4096].fill(0) }, Cuts(9)),
        ("first page of the last zero", AllButLast, |f, j| { let p = (f.batch(10).start / 4096 + 1) * 4096; j[f.batch(10).start..p].fill(0) }, Cuts(9)),
        ("all but a page of the last zero", AllButLast, |f, j| { let p = (f.batch(10).start / 4096 + 1) * 4096; let r = f.batch(10); j[r.start..p].fill(0); j[p + 4096..r.end].fill(0) }, Cuts(9)),
        ("end of the last zero", AllButLast, |f, j| { let e = f.batch(10).end; j[e - 4..e].fill(0) }, Cuts(9)),
        ("a byte of the last flipped", AllButLast, |f, j| j[f.batch(10).start + 3_000] ^= 1, Cuts(9)),
        ("one but last flipped, last whole", AllButLast, |f, j| j[f.batch(9).start + 3_000] ^= 1, Refuses),
        ("one but last flipped, last torn", AllButLast, |f, j| { j[f.batch(9).start + 3_000] ^= 1; j.truncate(f.batch(10).start + 200) }, Refuses),

        ("last answered, cut short", All, |_, j| j.truncate(j.len() - 1), Refuses),
        ("last answered, gone", All, |f, j| j.truncate(f.batch(10).start), Refuses),
        ("last answered, zero", All, |f, j| j[f.batch(10)].fill(0), Refuses),
        ("last answered, flipped", All, |f, j| j[f.batch(10).start + 3_000] ^= 1, Refuses),
        ("first flipped", All, |f, j| j[f.batch(1).start + 120] ^= 1, Refuses),
        ("all gone", All, |_, j| j.clear(), Refuses),
        ("all zero", All, |_, j| j.fill(0), Refuses),

        ("nothing known, last torn", Unknown, |_, j| j.truncate(j.len() - 1), Cuts(9)),
        ("nothing known, first flipped", Unknown, |f, j| j[f.batch(1).start + 120] ^= 1, Refuses),
        ("nothing known, first start zero", Unknown, |f, j| j[f.batch(1).start..][..100].fill(0), Refuses),
        ("nothing known, middle flipped", Unknown, |f, j| j[f.batch(5).start + 90] ^= 1, Refuses),
        ("nothing known, middle zero", Unknown, |f, j| j[f.batch(5)].fill(0), Refuses),
        ("nothing known, middle taken out", Unknown, |f, j| { j.drain(f.batch(5)); }, Refuses),
        ("nothing known, first taken out", Unknown, |f, j| { j.drain(f.batch(1)); }, Refuses),
        ("nothing known, one twice", Unknown, |f, j| { let b = j[f.batch(5)].to_vec(); let at = f.batch(6).start; j.splice(at..at, b); }, Refuses),
        ("nothing known, two swapped", Unknown, |f, j| { let (a, b) = (j[f.batch(4)].to_vec(), j[f.batch(5)].to_vec()); let r = f.batch(4).start..f.batch(5).end; j.splice(r, [b, a].concat()); }, Refuses),
        // The two that nothing can tell from an empty tail. They need a crash of the machine and lost files at once.
        ("nothing known, end gone", Unknown, |f, j| j.truncate(f.batch(7).start), Opens(6)),
        ("nothing known, all gone", Unknown, |_, j| j.clear(), Opens(0)),
    ];
    for (case, known, change, expected) in cases {
        let files = damage(&fixture, *known, |journal| change(&fixture, journal));
        let (found, error) = outcome(case, &files).await;
        assert_eq!(&found, expected, "{case}: {error:?}");
        if let Some(error) = error {
            assert!(!error.message().is_empty());
        }
    }
}

/// Whatever byte of the journal flips, each answered commit is there or the store refuses.
#[tokio::test]
async fn no_flipped_byte_loses_an_answered_commit() {
    let fixture = Fixture::new(false).await;
    let every = std::env::var("LAZULI_DAMAGE_EVERY").map_or(97, |every| every.parse().unwrap());
    for at in (0..fixture.ends[COMMITS]).step_by(every) {
        for bit in [0x01, 0x80] {
            let files = damage(&fixture, All, |journal| journal[at] ^= bit);
            let (found, _) = outcome(&format!("flip {bit:#x} at {at}"), &files).await;
            // The sequence number in a start may grow unseen, which changes nothing.
            assert!(found == Refuses || found == Opens(COMMITS), "flip at {at}: {found:?}");
        }
    }
}

/// Wherever the last commit is cut off or flipped before it was answered, the store opens without it.
#[tokio::test]
async fn no_torn_last_commit_keeps_the_store_from_opening() {
    let fixture = Fixture::new(false).await;
    let every = std::env::var("LAZULI_DAMAGE_EVERY").map_or(509, |every| every.parse().unwrap());
    for at in fixture.batch(COMMITS).step_by(every) {
        for known in [AllButLast, Unknown] {
            let files = damage(&fixture, known, |journal| journal.truncate(at));
            let (found, error) = outcome(&format!("cut at {at}"), &files).await;
            let whole = at == fixture.batch(COMMITS).start;
            let expected = if whole { Opens(COMMITS - 1) } else { Cuts(COMMITS - 1) };
            assert_eq!(found, expected, "cut at {at}, {known:?}: {error:?}");
            let files = damage(&fixture, known, |journal| journal[at] ^= 0x10);
            let (found, error) = outcome(&format!("flip at {at}"), &files).await;
            assert!(found == expected || found == Cuts(9) || found == Opens(10), "{at}: {error:?}");
        }
    }
}

#[tokio::test]
async fn a_sealed_journal_has_no_torn_tail() {
    let fixture = Fixture::new(false).await;
    let whole = &fixture.files[&journal(0)];
    let split = |first: &[u8], second: &[u8], known| {
        let mut files = fixture.files.clone();
        files.insert(journal(0), first.to_vec());
        files.insert(journal(1), second.to_vec());
        set_answered(&mut files, &fixture, known);
        files
    };
    let (first, second) = whole.split_at(fixture.ends[5]);
    let short = &first[..fixture.ends[4]];
    let torn = &first[..first.len() - 10];
    let mut flipped = first.to_vec();
    flipped[fixture.batch(2).start + 100] ^= 1;
    let padded = [first, &[0; 5_000]].concat();
    for known in [All, Unknown] {
        let cases = [
            ("two journals", split(first, second, known), Opens(COMMITS)),
            ("zeros behind the first", split(&padded, second, known), Opens(COMMITS)),
            ("the first torn", split(torn, second, known), Refuses),
            ("the first torn, the second empty", split(torn, &[], known), Refuses),
            ("the first one batch short", split(short, second, known), Refuses),
            ("the first flipped", split(&flipped, second, known), Refuses),
            ("the first empty", split(&[], second, known), Refuses),
        ];
        for (case, files, expected) in cases {
            let (found, error) = outcome(case, &files).await;
            assert_eq!(found, expected, "{case}, {known:?}: {error:?}");
        }
        let mut files = split(first, second, known);
        files.remove(&journal(0));
        assert_eq!(outcome("the first missing", &files).await.0, Refuses);
        files.insert(journal(3), vec![]);
        assert_eq!(outcome("one between missing", &files).await.0, Refuses);
    }
    let (found, _) = outcome("the second empty", &split(first, &[], All)).await;
    assert_eq!(found, Refuses);
}

/// Relaxed commits are answered before they are on disk, so any of those since the last sync may be torn, and all
/// behind it go with it.
#[tokio::test]
async fn relaxed_commits_are_torn_back_to_the_last_sync() {
    let fixture = Fixture::relaxed().await;
    let cases: &[(&str, Answered, Change, Outcome)] = &[
        ("untouched", Unknown, |_, _| {}, Opens(COMMITS)),
        ("middle flipped", Unknown, |f, j| j[f.batch(5).start + 90] ^= 1, Cuts(4)),
        ("middle zero", Unknown, |f, j| j[f.batch(5)].fill(0), Cuts(4)),
        ("first flipped", Unknown, |f, j| j[f.batch(1).start + 120] ^= 1, Cuts(0)),
        ("last torn", Unknown, |_, j| j.truncate(j.len() - 1), Cuts(9)),
        ("middle flipped after a sync", All, |f, j| j[f.batch(5).start + 90] ^= 1, Refuses),
        ("last torn after a sync", All, |_, j| j.truncate(j.len() - 1), Refuses),
    ];
    for (case, known, change, expected) in cases {
        let files = damage(&fixture, *known, |journal| change(&fixture, journal));
        let (found, error) = outcome(case, &files).await;
        assert_eq!(&found, expected, "{case}: {error:?}");
    }
}

#[tokio::test]
async fn a_refusal_names_file_and_offset_and_changes_nothing() {
    let fixture = Fixture::new(false).await;
    let before = damage(&fixture, All, |journal| journal[fixture.batch(5).start + 90] ^= 1);
    let folder = tempfile::tempdir().unwrap();
    write_files(folder.path(), &before);
    let before = files(folder.path());
    let refused = EmbeddedStore::open(folder.path(), &Settings::default()).err().unwrap();
    assert_eq!(refused.code(), "journal-damaged");
    let place = format!("0.jnl is damaged at byte {}", fixture.batch(5).start);
    assert!(refused.message().contains(&place), "{refused}");
    assert!(files(folder.path()) == before, "the refusal changed files");
}

#[tokio::test]
async fn what_is_cut_off_is_kept_aside_and_reported() {
    let fixture = Fixture::new(false).await;
    let files = damage(&fixture, AllButLast, |journal| {
        journal.pop();
    });
    let folder = tempfile::tempdir().unwrap();
    write_files(folder.path(), &files);
    let store = EmbeddedStore::open(folder.path(), &Settings::default()).unwrap();
    let cut = store.recovery().cut.clone().unwrap();
    let torn = &files[&journal(0)][fixture.batch(COMMITS).start..];
    assert_eq!((cut.offset, cut.bytes), (fixture.batch(COMMITS).start as u64, torn.len() as u64));
    assert_eq!(cut.what, "the file ends inside a batch");
    assert_eq!(std::fs::read(folder.path().join("store/lazuli.torn")).unwrap(), torn);
}

#[tokio::test]
async fn what_may_be_lost_is_named_where_nothing_says_what_was_answered() {
    let fixture = Fixture::new(false).await;
    let cut = |journal: &mut Vec<u8>| journal.truncate(fixture.batch(COMMITS).start);
    let torn = |journal: &mut Vec<u8>| journal.truncate(fixture.batch(COMMITS).start + 20);
    let open = |files: &BTreeMap<PathBuf, Vec<u8>>| {
        let folder = tempfile::tempdir().unwrap();
        write_files(folder.path(), files);
        let recovery = EmbeddedStore::open(folder.path(), &Settings::default()).unwrap();
        recovery.recovery().clone()
    };
    for (is_torn, what) in [(false, "is damaged"), (true, "is damaged"), (false, "is missing")] {
        let change: &dyn Fn(&mut Vec<u8>) = if is_torn { &torn } else { &cut };
        let mut files = damage(&fixture, All, |journal| change(journal));
        match what {
            "is missing" => drop(files.remove(&answered())),
            _ => files.get_mut(&answered()).unwrap()[3] ^= 1,
        }
        let recovery = open(&files);
        assert_eq!(recovery.cut.is_some(), is_torn);
        let unsure = recovery.unsure.unwrap();
        assert_eq!(unsure.what, what);
        assert!(unsure.journal.ends_with("0.jnl"), "{unsure:?}");
        assert_eq!(unsure.offset, fixture.batch(COMMITS).start as u64);
        assert_eq!(unsure.commit, COMMITS as u64);
    }
    // A tail that nobody was promised is nothing to warn of.
    let recovery = open(&damage(&fixture, AllButLast, |journal| torn(journal)));
    assert!(recovery.cut.is_some() && recovery.unsure.is_none());
}
