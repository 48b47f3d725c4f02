//! Sets: a sorted vector while all members are integers and they are few, else a table.

use super::integer;
use super::limits::SET_INTEGERS;
use super::log::ElementLog;
use super::{Random, table::Table};
use crate::value::BadRow;

#[derive(Debug, Clone)]
pub struct Set {
    form: Form,
    bytes: usize,
}

#[derive(Debug, Clone)]
enum Form {
    Integers(Vec<i64>),
    Table(Box<Table<Box<[u8]>>>),
}

impl Default for Set {
    fn default() -> Self {
        Self { form: Form::Integers(Vec::new()), bytes: 0 }
    }
}

/// The bytes that a member of a table takes beside its text.
const MEMBER_OVERHEAD: usize = 16;

impl Set {
    pub fn len(&self) -> usize {
        match &self.form {
            Form::Integers(numbers) => numbers.len(),
            Form::Table(table) => table.len(),
        }
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    pub fn encoding(&self) -> &'static str {
        match self.form {
            Form::Integers(_) => "intset",
            Form::Table(_) => "hashtable",
        }
    }

    pub fn memory(&self) -> usize {
        match &self.form {
            Form::Integers(numbers) => numbers.capacity() * 8,
            Form::Table(table) => table.memory() + self.bytes,
        }
    }

    pub fn contains(&self, member: &[u8]) -> bool {
        match &self.form {
            Form::Integers(numbers) => {
                integer::parse(member).is_some_and(|number| numbers.binary_search(&number).is_ok())
            }
            Form::Table(table) => table.find(member).is_some(),
        }
    }

    pub fn add(&mut self, member: &[u8], log: &mut dyn ElementLog) -> bool {
        let is_new = self.put(member);
        if is_new {
            log.put(member, &[]);
        }
        is_new
    }

    fn put(&mut self, member: &[u8]) -> bool {
        if let Form::Integers(numbers) = &mut self.form {
            if let Some(number) = integer::parse(member) {
                let Err(at) = numbers.binary_search(&number) else { return false };
                numbers.insert(at, number);
                if numbers.len() > SET_INTEGERS {
                    self.widen();
                }
                return true;
            }
            self.widen();
        }
        let Form::Table(table) = &mut self.form else { return false };
        if table.find(member).is_some() {
            return false;
        }
        table.add(member.into());
        self.bytes += member.len() + MEMBER_OVERHEAD;
        true
    }

    fn widen(&mut self) {
        let mut table = Table::default();
        if let Form::Integers(numbers) = &self.form {
            for number in numbers {
                let member: Box<[u8]> = (*integer::text(*number)).into();
                self.bytes += member.len() + MEMBER_OVERHEAD;
                table.add(member);
            }
        }
        self.form = Form::Table(Box::new(table));
    }

    pub fn remove(&mut self, member: &[u8], log: &mut dyn ElementLog) -> bool {
        let is_removed = match &mut self.form {
            Form::Integers(numbers) => {
                let number = integer::parse(member);
                let at = number.and_then(|number| numbers.binary_search(&number).ok());
                at.map(|at| numbers.remove(at)).is_some()
            }
            Form::Table(table) => {
                let is_removed = table.remove(member).is_some();
                if is_removed {
                    self.bytes -= member.len() + MEMBER_OVERHEAD;
                }
                is_removed
            }
        };
        if is_removed {
            log.remove(member);
        }
        is_removed
    }

    /// The member with a number below `len()`; the numbers change with every removal.
    fn member(&self, number: usize) -> Option<Vec<u8>> {
        match &self.form {
            Form::Integers(numbers) => {
                numbers.get(number).map(|number| integer::text(*number).to_vec())
            }
            Form::Table(table) => table.entries().get(number).map(|member| member.to_vec()),
        }
    }

    pub fn random(&self, random: Random<'_>) -> Option<Vec<u8>> {
        self.member(random() as usize % self.len().max(1))
    }

    /// Different members by chance: `count` of them, or all.
    pub fn sample(&self, count: usize, random: Random<'_>) -> Vec<Vec<u8>> {
        let chosen = choose(self.len(), count, random);
        chosen.into_iter().filter_map(|number| self.member(number)).collect()
    }

    pub fn pop(&mut self, random: Random<'_>, log: &mut dyn ElementLog) -> Option<Vec<u8>> {
        let member = self.random(random)?;
        self.remove(&member, log);
        Some(member)
    }

    pub fn each(&self, visit: &mut dyn FnMut(&[u8])) {
        match &self.form {
            Form::Integers(numbers) => {
                numbers.iter().for_each(|number| visit(&integer::text(*number)));
            }
            Form::Table(table) => table.entries().iter().for_each(|member| visit(member)),
        }
    }

    /// Compact forms are visited in one go, whatever `count` says.
    pub fn scan(&self, cursor: u64, count: usize, visit: &mut dyn FnMut(&[u8])) -> u64 {
        match &self.form {
            Form::Integers(_) => {
                self.each(visit);
                0
            }
            Form::Table(table) => table.scan(cursor, count, &mut |member| visit(member)),
        }
    }

    pub fn rows(&self, visit: &mut dyn FnMut(&[u8], &[u8])) {
        self.each(&mut |member| visit(member, &[]));
    }

    pub fn load(&mut self, element: &[u8], _row: &[u8]) -> Result<(), BadRow> {
        if self.put(element) { Ok(()) } else { Err(BadRow) }
    }
}

/// `count` different numbers below `len` by chance, or all of them.
pub(crate) fn choose(len: usize, count: usize, random: Random<'_>) -> Vec<usize> {
    if count >= len {
        return (0..len).collect();
    }
    // Floyd's way: one draw for each number that is chosen.
    let mut chosen = std::collections::BTreeSet::new();
    let mut order = Vec::with_capacity(count);
    for top in len - count..len {
        let drawn = random() as usize % (top + 1);
        let number = if chosen.contains(&drawn) { top } else { drawn };
        chosen.insert(number);
        order.push(number);
    }
    order
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::super::log::{Journaled, Unlogged};
    use super::super::table::tests::random;
    use super::*;

    #[test]
    fn a_set_is_a_set_in_both_forms_and_so_are_its_rows() {
        for seed in 0..40 {
            let mut random = random(seed);
            let (mut set, mut model) = (Set::default(), BTreeSet::<Vec<u8>>::new());
            let mut journal = Journaled::default();
            for _ in 0..1500 {
                let number = random() % 900;
                let text = if seed % 2 == 0 || number < 890 {
                    number.to_string()
                } else {
                    format!("m{number}")
                };
                let member = text.into_bytes();
                assert_eq!(set.contains(&member), model.contains(&member));
                if !random().is_multiple_of(4) {
                    assert_eq!(set.add(&member, &mut journal), model.insert(member));
                } else {
                    assert_eq!(set.remove(&member, &mut journal), model.remove(&member));
                }
                assert_eq!(set.len(), model.len());
                journal.settle(&|visit| set.rows(visit));
            }
            let mut loaded = Set::default();
            journal.rows.iter().for_each(|(element, row)| loaded.load(element, row).unwrap());
            for set in [&set, &loaded] {
                let mut all = BTreeSet::new();
                set.each(&mut |member| assert!(all.insert(member.to_vec())));
                assert_eq!(all, model);
            }
            while let Some(member) = set.pop(&mut random, &mut journal) {
                assert!(model.remove(&member));
            }
            assert!(model.is_empty() && set.is_empty());
        }
    }

    #[test]
    fn integers_stay_compact_up_to_their_bound() {
        let mut set = Set::default();
        (0..512).for_each(|number: i64| assert!(set.add(&integer::text(number), &mut Unlogged)));
        assert_eq!(set.encoding(), "intset");
        assert!(set.add(b"512", &mut Unlogged));
        assert_eq!((set.encoding(), set.len()), ("hashtable", 513));
        let mut short = Set::default();
        short.add(b"01", &mut Unlogged);
        assert_eq!(short.encoding(), "hashtable");
    }

    #[test]
    fn choices_are_different_and_in_bounds() {
        let mut random = random(5);
        for _ in 0..500 {
            let (len, count) = (random() as usize % 50, random() as usize % 60);
            let chosen = choose(len, count, &mut random);
            let different: BTreeSet<usize> = chosen.iter().copied().collect();
            assert_eq!((different.len(), chosen.len()), (count.min(len), count.min(len)));
            assert!(different.iter().all(|number| *number < len));
        }
    }
}
