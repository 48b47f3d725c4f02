//! What blobs hold: bytes that follow from a blob's name and a number, so that whoever reads them knows what they must be.

use lazuli_http::mutate::Chance;

/// The most bytes of a content that fits in a row, and of one that is a file.
const SMALL_BYTES_MAX: usize = 4 * 1024;
const LARGE_BYTES_MAX: usize = 300 * 1024;
/// From here on contents are files.
const LARGE_BYTES_MIN: usize = 65 * 1024;
/// The most blocks of a content.
const BLOCKS_MAX: usize = 5;

/// A content, named by the blob that it was made for and a number that no other content of that blob has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Content {
    pub(crate) name: String,
    pub(crate) number: u64,
}

impl Content {
    /// The blocks of the content: one for what is put at once, several for what is put block by block.
    pub(crate) fn blocks(&self) -> Vec<Vec<u8>> {
        let seed = self
            .name
            .bytes()
            .fold(self.number, |seed, byte| seed.wrapping_mul(31).wrapping_add(u64::from(byte)));
        let mut chance = Chance::seeded(seed);
        let count = match chance.below(3) {
            0 => 1 + chance.below(BLOCKS_MAX),
            _ => 1,
        };
        (0..count).map(|at| self.block(at, &mut chance)).collect()
    }

    fn block(&self, at: usize, chance: &mut Chance) -> Vec<u8> {
        let length = match chance.below(3) {
            0 => chance.below(SMALL_BYTES_MAX),
            _ => LARGE_BYTES_MIN + chance.below(LARGE_BYTES_MAX - LARGE_BYTES_MIN),
        };
        let mut bytes = format!("{}={};{at};", self.name, self.number).into_bytes();
        let mut state = chance.below(usize::MAX / 2) as u64;
        while bytes.len() < length {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            bytes.extend(state.to_be_bytes());
        }
        bytes
    }

    pub(crate) fn bytes(&self) -> Vec<u8> {
        self.blocks().concat()
    }

    /// Which content these bytes are, if they are one from its first byte to its last.
    pub(crate) fn read(bytes: &[u8]) -> Option<Self> {
        let text = bytes.get(..bytes.iter().position(|byte| *byte == b';')?)?;
        let (name, number) = std::str::from_utf8(text).ok()?.split_once('=')?;
        let content = Self { name: name.to_owned(), number: number.parse().ok()? };
        (content.bytes() == bytes).then_some(content)
    }
}
