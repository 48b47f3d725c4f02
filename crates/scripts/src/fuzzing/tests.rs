//! The target on its seeds and on changes of them; `cargo fuzz` goes on from there.

/// Changed texts that are tried for each seed.
const ROUNDS: usize = 12;

#[test]
fn any_text_is_refused_or_runs_to_an_end() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../fuzz/seeds/script");
    let mut seeds: Vec<Vec<u8>> = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        seeds.push(std::fs::read(entry.unwrap().path()).unwrap());
    }
    assert!(!seeds.is_empty(), "there are no seeds");
    seeds.sort();
    for (at, seed) in seeds.iter().enumerate() {
        super::script(seed);
        for round in 1..ROUNDS {
            // A piece is cut out, and a piece of another seed put in its place.
            let other = &seeds[(at + round) % seeds.len()];
            let (from, to) = (seed.len() * (round - 1) / ROUNDS, seed.len() * round / ROUNDS);
            let piece = &other[..other.len() * round / ROUNDS];
            super::script(&[&seed[..from], piece, &seed[to..]].concat());
            super::script(&seed[..to]);
        }
    }
}
