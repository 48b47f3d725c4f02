//! For tests: texts made at random from a fixed seed, the same ones in every run. A bounded stand-in for a fuzzer.

use std::path::Path;

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
    let mut chance = Chance::new();
    for _ in 0..rounds {
        let picked = (0..=chance.below(WORDS_MAX)).map(|_| words[chance.below(words.len())]);
        check(
            picked.collect::<Vec<_>>().join(if chance.below(2) == 0 { "" } else { " " }).as_bytes(),
        );
        let bytes: Vec<u8> =
            (0..chance.below(BYTES_MAX)).map(|_| chance.below(256) as u8).collect();
        check(&bytes);
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
    let mut chance = Chance::new();
    for _ in 0..rounds {
        check(&chance.variant(seed));
    }
}

/// Numbers that look random and are the same for the same start.
#[derive(Clone, Debug)]
pub struct Chance(u64);

impl Chance {
    #[expect(clippy::new_without_default, reason = "a start that nobody chose is still a choice")]
    pub fn new() -> Self {
        Self(0x9e37_79b9_7f4a_7c15)
    }

    /// Another sequence for each number.
    pub fn seeded(seed: u64) -> Self {
        let mut chance = Self(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1);
        // The first numbers of near seeds are near too.
        for _ in 0..8 {
            chance.below(2);
        }
        chance
    }

    pub fn below(&mut self, bound: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % bound.max(1) as u64) as usize
    }

    /// The text with one to four small changes.
    pub fn variant(&mut self, seed: &[u8]) -> Vec<u8> {
        let mut text = seed.to_vec();
        for _ in 0..=self.below(4) {
            let at = self.below(text.len() + 1);
            match self.below(5) {
                0 if at < text.len() => text[at] = self.below(256) as u8,
                1 if at < text.len() => {
                    text.remove(at);
                }
                2 => text.truncate(at),
                3 => {
                    let end = (at + self.below(16)).min(text.len());
                    let piece = text[at..end].to_vec();
                    let to = self.below(text.len() + 1);
                    text.splice(to..to, piece);
                }
                _ => text.insert(at, SIGNS[self.below(SIGNS.len())]),
            }
        }
        text
    }
}
