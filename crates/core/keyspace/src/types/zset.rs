//! Sorted sets: members ordered by score, then by their bytes. A flat buffer while they are few and short; else slots with
//! the members, an index by member, and [`Ranks`] by score.

use std::cmp::Ordering;

use hashbrown::HashTable;

use super::Random;
use super::hash_of::hash_of;
use super::limits::{ZSET_PACK_BYTES, ZSET_PACK_MEMBERS};
use super::log::ElementLog;
use super::pack::Pack;
use super::ranks::{Entry, Ranks, compare_scores};
use super::set::choose;
use crate::value::BadRow;

#[derive(Debug, Clone)]
pub struct SortedSet {
    form: Form,
}

#[derive(Debug, Clone)]
enum Form {
    /// Member, score (8 bytes), in order.
    Pack(Pack),
    Large(Box<Large>),
}

#[derive(Debug, Clone, Default)]
struct Large {
    /// A free slot has no member.
    slots: Vec<Slot>,
    free: Vec<u32>,
    index: HashTable<u32>,
    ranks: Ranks,
    bytes: usize,
}

#[derive(Debug, Clone, Default)]
struct Slot {
    score: f64,
    member: Option<Box<[u8]>>,
}

impl Slot {
    fn bytes(&self) -> &[u8] {
        self.member.as_deref().unwrap_or_default()
    }
}

impl Default for SortedSet {
    fn default() -> Self {
        Self { form: Form::Pack(Pack::default()) }
    }
}

fn order(left: (f64, &[u8]), right: (f64, &[u8])) -> Ordering {
    compare_scores(left.0, right.0).then_with(|| left.1.cmp(right.1))
}

impl Large {
    fn find(&self, member: &[u8]) -> Option<u32> {
        let slots = &self.slots;
        self.index.find(hash_of(member), |slot| slots[*slot as usize].bytes() == member).copied()
    }

    fn add(&mut self, member: &[u8], score: f64) {
        let filled = Slot { score, member: Some(member.into()) };
        let slot = match self.free.pop() {
            Some(slot) => {
                self.slots[slot as usize] = filled;
                slot
            }
            None => {
                self.slots.push(filled);
                self.slots.len() as u32 - 1
            }
        };
        let slots = &self.slots;
        self.index
            .insert_unique(hash_of(member), slot, |other| hash_of(slots[*other as usize].bytes()));
        self.bytes += member.len() + 16;
        self.rank(slot, score);
    }

    fn rank(&mut self, slot: u32, score: f64) {
        let slots = &self.slots;
        let member = slots[slot as usize].bytes();
        self.ranks.insert(Entry { score, slot }, &|entry| is_below(slots, entry, score, member));
    }

    fn unrank(&mut self, slot: u32) {
        let slots = &self.slots;
        let Slot { score, .. } = slots[slot as usize];
        let member = slots[slot as usize].bytes();
        self.ranks.remove(&|entry| is_below(slots, entry, score, member));
    }

    fn set_score(&mut self, slot: u32, score: f64) {
        self.unrank(slot);
        self.slots[slot as usize].score = score;
        self.rank(slot, score);
    }

    fn remove(&mut self, member: &[u8]) -> Option<f64> {
        let slot = self.find(member)?;
        self.unrank(slot);
        if let Ok(found) = self.index.find_entry(hash_of(member), |other| *other == slot) {
            found.remove();
        }
        let old = std::mem::take(&mut self.slots[slot as usize]);
        self.free.push(slot);
        self.bytes -= member.len() + 16;
        Some(old.score)
    }
}

fn is_below(slots: &[Slot], entry: Entry, score: f64, member: &[u8]) -> bool {
    match compare_scores(entry.score, score) {
        Ordering::Less => true,
        Ordering::Greater => false,
        Ordering::Equal => slots[entry.slot as usize].bytes() < member,
    }
}

fn score_of(bytes: &[u8]) -> f64 {
    bytes.try_into().map_or(0.0, f64::from_be_bytes)
}

impl SortedSet {
    pub fn len(&self) -> usize {
        match &self.form {
            Form::Pack(pack) => pack.len() / 2,
            Form::Large(large) => large.ranks.len(),
        }
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    pub fn encoding(&self) -> &'static str {
        match self.form {
            Form::Pack(_) => "listpack",
            Form::Large(_) => "skiplist",
        }
    }

    pub fn memory(&self) -> usize {
        match &self.form {
            Form::Pack(pack) => pack.capacity(),
            Form::Large(large) => {
                let slots = large.slots.capacity() * size_of::<Slot>();
                slots + large.bytes + large.index.capacity() * 6 + large.ranks.len() * 24
            }
        }
    }

    pub fn score(&self, member: &[u8]) -> Option<f64> {
        match &self.form {
            Form::Pack(pack) => pack.at(find(pack, member)?.1).map(|(score, _)| score_of(score)),
            Form::Large(large) => large.find(member).map(|slot| large.slots[slot as usize].score),
        }
    }

    /// Sets the score of a member; says whether the member is new. The score is a number, possibly infinite.
    pub fn set(&mut self, member: &[u8], score: f64, log: &mut dyn ElementLog) -> bool {
        let is_new = self.put(member, score);
        log.put(member, &score.to_be_bytes());
        is_new
    }

    fn put(&mut self, member: &[u8], score: f64) -> bool {
        if let Form::Pack(pack) = &mut self.form {
            // Zero has no sign in the compact form.
            let score = if score == 0.0 { 0.0 } else { score };
            let found = find(pack, member);
            if let Some((offset, value)) = found {
                pack.remove_at(value);
                pack.remove_at(offset);
            } else if pack.len() / 2 >= ZSET_PACK_MEMBERS || member.len() > ZSET_PACK_BYTES {
                self.widen();
                return self.put(member, score);
            }
            insert(pack, member, score);
            return found.is_none();
        }
        let Form::Large(large) = &mut self.form else { return false };
        match large.find(member) {
            Some(slot) => {
                large.set_score(slot, score);
                false
            }
            None => {
                large.add(member, score);
                true
            }
        }
    }

    fn widen(&mut self) {
        let mut large = Large::default();
        self.walk(0, usize::MAX, false, &mut |member, score| large.add(member, score));
        self.form = Form::Large(Box::new(large));
    }

    pub fn remove(&mut self, member: &[u8], log: &mut dyn ElementLog) -> Option<f64> {
        let score = match &mut self.form {
            Form::Pack(pack) => {
                let (offset, value) = find(pack, member)?;
                let score = pack.at(value).map(|(score, _)| score_of(score));
                pack.remove_at(value);
                pack.remove_at(offset);
                score
            }
            Form::Large(large) => large.remove(member),
        };
        if score.is_some() {
            log.remove(member);
        }
        score
    }

    /// How many members from the lowest on meet a condition that all meet up to some one and none behind it.
    pub fn partition(&self, meets: &dyn Fn(f64, &[u8]) -> bool) -> usize {
        match &self.form {
            Form::Pack(_) => {
                let mut count = 0;
                self.visit(0, usize::MAX, false, &mut |member, score| {
                    let is_met = meets(score, member);
                    count += usize::from(is_met);
                    is_met
                });
                count
            }
            Form::Large(large) => large
                .ranks
                .partition(&|entry| meets(entry.score, large.slots[entry.slot as usize].bytes())),
        }
    }

    /// The number of members in front of one.
    pub fn rank(&self, member: &[u8]) -> Option<usize> {
        let score = self.score(member)?;
        Some(self.partition(&|other, name| order((other, name), (score, member)).is_lt()))
    }

    /// Visits up to `count` members from a rank on, or from the same rank counted from the highest downwards.
    pub fn walk(
        &self,
        from: usize,
        count: usize,
        is_reverse: bool,
        visit: &mut dyn FnMut(&[u8], f64),
    ) {
        self.visit(from, count, is_reverse, &mut |member, score| {
            visit(member, score);
            true
        });
    }

    /// The same, up to the first member for which `visit` says no.
    fn visit(
        &self,
        from: usize,
        count: usize,
        is_reverse: bool,
        visit: &mut dyn FnMut(&[u8], f64) -> bool,
    ) {
        match &self.form {
            Form::Pack(pack) if is_reverse => {
                let mut texts = pack.iter_back().skip(from * 2);
                for _ in 0..count {
                    let (Some(score), Some(member)) = (texts.next(), texts.next()) else { return };
                    if !visit(member, score_of(score)) {
                        return;
                    }
                }
            }
            Form::Pack(pack) => {
                let mut texts = pack.iter().skip(from * 2);
                for _ in 0..count {
                    let (Some(member), Some(score)) = (texts.next(), texts.next()) else { return };
                    if !visit(member, score_of(score)) {
                        return;
                    }
                }
            }
            Form::Large(large) => {
                let mut call =
                    |entry: Entry| visit(large.slots[entry.slot as usize].bytes(), entry.score);
                let _ = if is_reverse {
                    let Some(top) = self.len().checked_sub(from + 1) else { return };
                    large.ranks.iter_back_from(top).take(count).all(&mut call)
                } else {
                    large.ranks.iter_from(from).take(count).all(&mut call)
                };
            }
        }
    }

    /// The members of ranks from one on, with their scores.
    pub fn slice(&self, from: usize, count: usize, is_reverse: bool) -> Vec<(Vec<u8>, f64)> {
        let mut members = Vec::with_capacity(count.min(self.len().saturating_sub(from)));
        self.walk(from, count, is_reverse, &mut |member, score| {
            members.push((member.to_vec(), score));
        });
        members
    }

    pub fn random(&self, random: Random<'_>) -> Option<(Vec<u8>, f64)> {
        let rank = random() as usize % self.len().max(1);
        self.slice(rank, 1, false).pop()
    }

    /// Different members by chance: `count` of them, or all.
    pub fn sample(&self, count: usize, random: Random<'_>) -> Vec<(Vec<u8>, f64)> {
        if count >= self.len() {
            return self.slice(0, usize::MAX, false);
        }
        let chosen = choose(self.len(), count, random);
        chosen.into_iter().filter_map(|rank| self.slice(rank, 1, false).pop()).collect()
    }

    /// Compact forms are visited in one go, whatever `count` says.
    pub fn scan(&self, cursor: u64, count: usize, visit: &mut dyn FnMut(&[u8], f64)) -> u64 {
        let Form::Large(large) = &self.form else {
            self.walk(0, usize::MAX, false, visit);
            return 0;
        };
        // Members keep their slots, so that walking the slots meets all that stay.
        let from = match cursor {
            0 => large.slots.len(),
            _ => (cursor as usize).min(large.slots.len()),
        };
        let to = from.saturating_sub(count.max(1));
        for slot in large.slots[to..from].iter().rev() {
            if let Some(member) = &slot.member {
                visit(member, slot.score);
            }
        }
        to as u64
    }

    pub fn rows(&self, visit: &mut dyn FnMut(&[u8], &[u8])) {
        self.walk(0, usize::MAX, false, &mut |member, score| visit(member, &score.to_be_bytes()));
    }

    pub fn load(&mut self, element: &[u8], value: &[u8]) -> Result<(), BadRow> {
        let bytes: [u8; 8] = value.try_into().map_err(|_| BadRow)?;
        let score = f64::from_be_bytes(bytes);
        if score.is_nan() {
            return Err(BadRow);
        }
        match self.put(element, score) {
            true => Ok(()),
            false => Err(BadRow),
        }
    }
}

/// Where a member is in the flat form, and where its score is.
fn find(pack: &Pack, member: &[u8]) -> Option<(usize, usize)> {
    let mut at = pack.start();
    while let Some((name, score)) = pack.at(at) {
        if name == member {
            return Some((at, score));
        }
        at = pack.at(score)?.1;
    }
    None
}

fn insert(pack: &mut Pack, member: &[u8], score: f64) {
    let mut at = pack.start();
    while let Some((name, next)) = pack.at(at) {
        let Some((other, behind)) = pack.at(next) else { break };
        if order((score, member), (score_of(other), name)).is_lt() {
            break;
        }
        at = behind;
    }
    pack.insert_at(at, &score.to_be_bytes());
    pack.insert_at(at, member);
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::super::log::{Journaled, Unlogged};
    use super::super::table::tests::random;
    use super::*;

    fn check(zset: &SortedSet, model: &BTreeMap<Vec<u8>, i64>, random: &mut dyn FnMut() -> u64) {
        let mut sorted: Vec<(i64, &[u8])> =
            model.iter().map(|(member, score)| (*score, member.as_slice())).collect();
        sorted.sort_unstable();
        let expected: Vec<(Vec<u8>, f64)> =
            sorted.iter().map(|(score, member)| (member.to_vec(), *score as f64)).collect();
        assert_eq!(zset.len(), model.len());
        assert_eq!(zset.slice(0, usize::MAX, false), expected);
        let from = random() as usize % (expected.len() + 1);
        assert_eq!(
            zset.slice(from, 7, false),
            expected[from..].iter().take(7).cloned().collect::<Vec<_>>()
        );
        let back: Vec<_> = expected.iter().rev().skip(from).take(7).cloned().collect();
        assert_eq!(zset.slice(from, 7, true), back);
        for (rank, (member, score)) in expected.iter().enumerate() {
            assert_eq!(zset.rank(member), Some(rank));
            assert_eq!(zset.score(member), Some(*score));
        }
    }

    #[test]
    fn a_sorted_set_is_a_sorted_vector_in_both_forms_and_so_are_its_rows() {
        for seed in 0..30 {
            let mut random = random(seed);
            let (mut zset, mut model) = (SortedSet::default(), BTreeMap::new());
            let mut changes = Journaled::default();
            let (members, scores) = [(100, 5), (3000, 1 << 40), (3000, 3)][seed as usize % 3];
            for round in 0..4000 {
                let member = (random() % members).to_string().into_bytes();
                let score = (random() % scores) as i64 - 2;
                let adding = if round < 3000 { 3 } else { 1 };
                if random() % 4 < adding {
                    let is_new = model.insert(member.clone(), score).is_none();
                    assert_eq!(zset.set(&member, score as f64, &mut changes), is_new);
                } else {
                    let removed = zset.remove(&member, &mut changes);
                    assert_eq!(removed, model.remove(&member).map(|score| score as f64));
                }
                if round % 500 == 0 {
                    check(&zset, &model, &mut random);
                }
                changes.settle(&|visit| zset.rows(visit));
            }
            check(&zset, &model, &mut random);
            let mut loaded = SortedSet::default();
            changes.rows.iter().for_each(|(element, value)| loaded.load(element, value).unwrap());
            check(&loaded, &model, &mut random);
            let mut met = BTreeMap::new();
            let mut cursor = 0;
            loop {
                cursor = zset.scan(cursor, 10, &mut |member, score| {
                    met.insert(member.to_vec(), score as i64);
                });
                if cursor == 0 {
                    break;
                }
            }
            assert_eq!(met, model);
        }
    }

    #[test]
    fn many_members_keep_their_order_while_they_come_and_go() {
        let mut random = random(9);
        let (mut zset, mut off) = (SortedSet::default(), Unlogged);
        let mut model = BTreeMap::new();
        for _ in 0..60_000 {
            let member = (random() % 40_000).to_string().into_bytes();
            let score = (random() % 1_000_000) as i64;
            zset.set(&member, score as f64, &mut off);
            model.insert(member, score);
        }
        let gone: Vec<Vec<u8>> =
            model.keys().filter(|_| !random().is_multiple_of(10)).cloned().collect();
        for member in gone {
            assert!(zset.remove(&member, &mut off).is_some());
            model.remove(&member);
        }
        check(&zset, &model, &mut random);
    }

    #[test]
    fn a_sorted_set_leaves_its_compact_form_by_count_and_by_length() {
        let (mut zset, mut off) = (SortedSet::default(), Unlogged);
        (0..128).for_each(|n: i32| {
            zset.set(n.to_string().as_bytes(), 1.0, &mut off);
        });
        assert_eq!(zset.encoding(), "listpack");
        zset.set(b"one more", f64::INFINITY, &mut off);
        assert_eq!(zset.encoding(), "skiplist");
        let mut long = SortedSet::default();
        long.set(&[b'x'; 65], 0.0, &mut off);
        assert_eq!(long.encoding(), "skiplist");
    }
}
