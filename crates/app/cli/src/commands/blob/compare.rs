//! Whether a file or blob is the same at source and target.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use super::digest::of_file;

/// What is known of one side without reading it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Fact {
    pub(super) size: u64,
    /// Seconds since the Unix epoch.
    pub(super) modified: i64,
    pub(super) sum: Known,
}

/// Where an MD5 sum comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Known {
    /// The service says it, or does not.
    Told(Option<String>),
    /// It is that of a file.
    Of(PathBuf),
}

/// What comparing two sides says before anything is read.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    Same,
    Differs,
    /// They are the same if this file has this sum.
    Read(PathBuf, String),
}

pub(super) fn compare(source: &Fact, target: &Fact) -> Verdict {
    if source.size != target.size {
        return Verdict::Differs;
    }
    let same = |is_same: bool| if is_same { Verdict::Same } else { Verdict::Differs };
    match (&source.sum, &target.sum) {
        (Known::Told(Some(one)), Known::Told(Some(two))) => same(one == two),
        (Known::Of(file), Known::Told(Some(sum))) | (Known::Told(Some(sum)), Known::Of(file)) => {
            Verdict::Read(file.clone(), sum.clone())
        }
        // Times are whole seconds. What was written within the same second counts as newer: that costs one transfer more,
        // and the other way round a change could go unseen.
        _ => same(source.modified < target.modified),
    }
}

/// Which of these files have the sums that stand beside them. One that cannot be read has not; the transfer will say why.
pub(super) fn have_sums(files: &[(PathBuf, String)], parallel: u64) -> Vec<bool> {
    let answers: Vec<AtomicBool> = files.iter().map(|_| AtomicBool::new(false)).collect();
    let next = AtomicUsize::new(0);
    std::thread::scope(|scope| {
        for _ in 0..parallel.min(files.len() as u64) {
            scope.spawn(|| {
                while let Some((at, (file, sum))) = take(&next, files) {
                    answers[at].store(has_sum(file, sum), Ordering::Relaxed);
                }
            });
        }
    });
    answers.into_iter().map(AtomicBool::into_inner).collect()
}

fn take<'a, T>(next: &AtomicUsize, all: &'a [T]) -> Option<(usize, &'a T)> {
    let at = next.fetch_add(1, Ordering::Relaxed);
    all.get(at).map(|one| (at, one))
}

fn has_sum(file: &Path, sum: &str) -> bool {
    of_file(file).is_ok_and(|own| own == sum)
}

#[cfg(test)]
mod tests {
    use super::super::digest::of_bytes;
    use super::*;

    #[test]
    fn sides_are_compared_by_size_then_sum_then_time() {
        let fact = |size, modified, sum: Known| Fact { size, modified, sum };
        let told = |sum: &str| Known::Told(Some(sum.to_owned()));
        let file = || Known::Of(PathBuf::from("f"));
        let none = || Known::Told(None);
        let read = || Verdict::Read(PathBuf::from("f"), "a".to_owned());
        for (source, target, expected) in [
            (fact(1, 0, told("a")), fact(2, 9, told("a")), Verdict::Differs),
            (fact(1, 9, told("a")), fact(1, 0, told("a")), Verdict::Same),
            (fact(1, 0, told("a")), fact(1, 9, told("b")), Verdict::Differs),
            (fact(1, 9, file()), fact(1, 0, told("a")), read()),
            (fact(1, 0, told("a")), fact(1, 9, file()), read()),
            (fact(1, 5, file()), fact(1, 6, none()), Verdict::Same),
            (fact(1, 5, none()), fact(1, 5, file()), Verdict::Differs),
            (fact(1, 6, none()), fact(1, 5, told("a")), Verdict::Differs),
        ] {
            assert_eq!(compare(&source, &target), expected, "{source:?} {target:?}");
        }
    }

    #[test]
    fn sums_are_those_of_the_files() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        std::fs::write(path("a"), "a").unwrap();
        std::fs::write(path("b"), "b").unwrap();
        let sum = of_bytes(b"a");
        let files: Vec<_> = ["a", "b", "c"].map(|name| (path(name), sum.clone())).into();
        assert_eq!(have_sums(&files, 2), [true, false, false]);
        assert!(have_sums(&[], 2).is_empty());
    }
}
