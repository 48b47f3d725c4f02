//! For tests: a text, changed at random from a fixed seed, again and again. A bounded stand-in for a fuzzer.

/// The bytes that parsers look for.
const SIGNS: &[u8] = b"'\"%\\(){}=&,:;+-0LX\0\xff\n ";

/// Calls `check` with `rounds` variants of `seed`, the same ones in every run.
pub fn each(seed: &[u8], rounds: u32, mut check: impl FnMut(&[u8])) {
    let mut state = 0x9e37_79b9_7f4a_7c15u64;
    let mut next = move |bound: usize| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state % bound.max(1) as u64) as usize
    };
    for _ in 0..rounds {
        let mut text = seed.to_vec();
        for _ in 0..=next(4) {
            let at = next(text.len() + 1);
            match next(5) {
                0 if at < text.len() => text[at] = next(256) as u8,
                1 if at < text.len() => {
                    text.remove(at);
                }
                2 => text.truncate(at),
                3 => {
                    let end = (at + next(16)).min(text.len());
                    let piece = text[at..end].to_vec();
                    let to = next(text.len() + 1);
                    text.splice(to..to, piece);
                }
                _ => text.insert(at, SIGNS[next(SIGNS.len())]),
            }
        }
        check(&text);
    }
}
