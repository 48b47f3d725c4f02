//! What blobs hold: bytes that follow from a blob's name and a number, so that a reader knows what they must be.

use lazuli_env::{SplitMix64, mix};

/// The most bytes of a content that fits in a row, and of one that is a file.
const SMALL_BYTES_MAX: usize = 4 * 1024;
const LARGE_BYTES_MAX: usize = 300 * 1024;
/// From here on contents are files.
const LARGE_BYTES_MIN: usize = 65 * 1024;
/// The most blocks of a content.
const BLOCKS_MAX: usize = 5;

/// A content, named by the blob that it was made for and a number that no other content of that blob has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Content {
    pub(super) name: String,
    pub(super) number: u64,
}

impl Content {
    /// The blocks of the content: one for what is put at once, several for what is put block by block.
    pub(super) fn blocks(&self) -> Vec<Vec<u8>> {
        let seed = self
            .name
            .bytes()
            .fold(self.number, |seed, byte| seed.wrapping_mul(31).wrapping_add(u64::from(byte)));
        let mut random = SplitMix64::new(mix(seed));
        let count = match random.below(3) {
            0 => 1 + random.below(BLOCKS_MAX),
            _ => 1,
        };
        (0..count).map(|at| self.block(at, &mut random)).collect()
    }

    fn block(&self, at: usize, random: &mut SplitMix64) -> Vec<u8> {
        let length = match random.below(3) {
            0 => random.below(SMALL_BYTES_MAX),
            _ => LARGE_BYTES_MIN + random.below(LARGE_BYTES_MAX - LARGE_BYTES_MIN),
        };
        let mut bytes = format!("{}={};{at};", self.name, self.number).into_bytes();
        let rest = length.saturating_sub(bytes.len());
        bytes.extend(random.bytes(rest));
        bytes
    }

    pub(super) fn bytes(&self) -> Vec<u8> {
        self.blocks().concat()
    }

    /// Which content these bytes are, if they are one from its first byte to its last.
    pub(super) fn read(bytes: &[u8]) -> Option<Self> {
        let text = bytes.get(..bytes.iter().position(|byte| *byte == b';')?)?;
        let (name, number) = std::str::from_utf8(text).ok()?.split_once('=')?;
        let content = Self { name: name.to_owned(), number: number.parse().ok()? };
        (content.bytes() == bytes).then_some(content)
    }
}
