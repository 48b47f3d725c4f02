//! For tests: texts made at random from a fixed seed, the same ones in every run. A bounded stand-in for a fuzzer.

use std::path::Path;

use lazuli_env::SplitMix64;

/// The bytes that parsers look for.
const SIGNS: &[u8] = b"'\"%\\(){}=&,:;+-0LX\0\xff\n ";

/// The most words of a text that is made of words alone.
const WORDS_MAX: usize = 40;
/// The most bytes of a text that is made of any bytes at all.
const BYTES_MAX: usize = 200;

/// Where the seeds of all fuzz targets are, a folder for each.
const SEEDS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../fuzz/seeds");

/// Calls `check` with every seed of a fuzz target as it is, with `rounds` variants of them, with `rounds` texts that are
/// made of these words in any order, and with as many of any bytes.
pub fn corpus(target: &str, words: &[&str], rounds: u32, mut check: impl FnMut(&[u8])) {
    let seeds = read(&Path::new(SEEDS).join(target));
    for seed in &seeds {
        check(seed);
        each(seed, rounds / seeds.len() as u32, &mut check);
    }
    let mut random = SplitMix64::new(0);
    for _ in 0..rounds {
        let picked = (0..=random.below(WORDS_MAX)).map(|_| words[random.below(words.len())]);
        check(
            picked.collect::<Vec<_>>().join(if random.below(2) == 0 { "" } else { " " }).as_bytes(),
        );
        let count = random.below(BYTES_MAX);
        check(&random.bytes(count));
    }
}

/// The files of a folder in the order of their names. Panics if there are none: a test without its texts shows nothing.
fn read(folder: &Path) -> Vec<Vec<u8>> {
    let entries = std::fs::read_dir(folder).map(|entries| entries.flatten().collect::<Vec<_>>());
    let mut paths: Vec<_> = entries.unwrap_or_default().iter().map(|entry| entry.path()).collect();
    paths.sort();
    assert!(!paths.is_empty(), "there are no files in {}", folder.display());
    paths.iter().filter_map(|path| std::fs::read(path).ok()).collect()
}

/// Calls `check` with `rounds` variants of `seed`, the same ones in every run.
pub fn each(seed: &[u8], rounds: u32, mut check: impl FnMut(&[u8])) {
    let mut random = SplitMix64::new(0);
    for _ in 0..rounds {
        check(&variant(&mut random, seed));
    }
}

/// The text with one to four small changes.
pub fn variant(random: &mut SplitMix64, seed: &[u8]) -> Vec<u8> {
    let mut text = seed.to_vec();
    for _ in 0..=random.below(4) {
        let at = random.below(text.len() + 1);
        match random.below(5) {
            0 if at < text.len() => text[at] = random.below(256) as u8,
            1 if at < text.len() => {
                text.remove(at);
            }
            2 => text.truncate(at),
            3 => {
                let end = (at + random.below(16)).min(text.len());
                let piece = text[at..end].to_vec();
                let to = random.below(text.len() + 1);
                text.splice(to..to, piece);
            }
            _ => text.insert(at, SIGNS[random.below(SIGNS.len())]),
        }
    }
    text
}
