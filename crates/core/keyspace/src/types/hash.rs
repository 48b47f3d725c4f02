//! Hashes: fields with values, each with an optional time to live. A flat buffer while they are few and short.

use std::collections::{BTreeMap, BTreeSet};

use super::Random;
use super::limits::{HASH_PACK_BYTES, HASH_PACK_FIELDS};
use super::log::{ElementLog, Unlogged};
use super::pack::Pack;
use super::set::choose;
use super::table::{Keyed, Table};
use crate::value::BadRow;

#[derive(Debug, Clone)]
pub struct Hash {
    form: Form,
    bytes: usize,
    expiries: Option<Box<Expiries>>,
}

#[derive(Debug, Clone)]
enum Form {
    /// Field, value, field, value.
    Pack(Pack),
    Table(Box<Table<Field>>),
}

#[derive(Debug, Clone)]
struct Field {
    name: Box<[u8]>,
    value: Box<[u8]>,
}

impl Keyed for Field {
    fn key(&self) -> &[u8] {
        &self.name
    }
}

/// When fields end, in milliseconds since 1970, by field and in order.
#[derive(Debug, Clone, Default)]
struct Expiries {
    by_field: BTreeMap<Vec<u8>, u64>,
    by_time: BTreeSet<(u64, Vec<u8>)>,
}

impl Default for Hash {
    fn default() -> Self {
        Self { form: Form::Pack(Pack::default()), bytes: 0, expiries: None }
    }
}

/// The bytes that a field of a table takes beside its texts.
const FIELD_OVERHEAD: usize = 32;

impl Hash {
    pub fn len(&self) -> usize {
        match &self.form {
            Form::Pack(pack) => pack.len() / 2,
            Form::Table(table) => table.len(),
        }
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    pub fn encoding(&self) -> &'static str {
        match self.form {
            Form::Pack(_) => "listpack",
            Form::Table(_) => "hashtable",
        }
    }

    pub fn memory(&self) -> usize {
        let expiring = self.expiries.as_ref().map_or(0, |expiries| expiries.by_field.len() * 96);
        let fields = match &self.form {
            Form::Pack(pack) => pack.capacity(),
            Form::Table(table) => table.memory() + self.bytes,
        };
        fields + expiring
    }

    pub fn get(&self, field: &[u8]) -> Option<&[u8]> {
        match &self.form {
            Form::Pack(pack) => pack.at(find(pack, field)?.1).map(|(value, _)| value),
            Form::Table(table) => table.get(field).map(|field| &*field.value),
        }
    }

    pub fn contains(&self, field: &[u8]) -> bool {
        self.get(field).is_some()
    }

    /// Sets a value and ends the field's time to live; says whether the field is new.
    pub fn set(&mut self, field: &[u8], value: &[u8], log: &mut dyn ElementLog) -> bool {
        if self.expiries.is_some() {
            self.forget_expiry(field);
        }
        self.set_value(field, value, log)
    }

    /// Sets a value and leaves the field's time to live as it is; says whether the field is new.
    pub fn set_value(&mut self, field: &[u8], value: &[u8], log: &mut dyn ElementLog) -> bool {
        let is_new = self.put(field, value);
        if log.is_on() {
            log.put(field, &self.row_value(field, value));
        } else {
            log.put(field, value);
        }
        is_new
    }

    fn put(&mut self, field: &[u8], value: &[u8]) -> bool {
        if let Form::Pack(pack) = &mut self.form {
            if field.len() <= HASH_PACK_BYTES && value.len() <= HASH_PACK_BYTES {
                if let Some((_, offset)) = find(pack, field) {
                    pack.replace_at(offset, value);
                    return false;
                }
                pack.push_back(field);
                pack.push_back(value);
                if pack.len() / 2 > HASH_PACK_FIELDS {
                    self.widen();
                }
                return true;
            }
            self.widen();
        }
        let Form::Table(table) = &mut self.form else { return false };
        if let Some(position) = table.find(field) {
            let old = std::mem::replace(&mut table.entry_mut(position).value, value.into());
            self.bytes = self.bytes + value.len() - old.len();
            return false;
        }
        table.add(Field { name: field.into(), value: value.into() });
        self.bytes += field.len() + value.len() + FIELD_OVERHEAD;
        true
    }

    fn widen(&mut self) {
        let mut table = Table::default();
        if let Form::Pack(pack) = &self.form {
            let mut texts = pack.iter();
            while let (Some(name), Some(value)) = (texts.next(), texts.next()) {
                self.bytes += name.len() + value.len() + FIELD_OVERHEAD;
                table.add(Field { name: name.into(), value: value.into() });
            }
        }
        self.form = Form::Table(Box::new(table));
    }

    pub fn remove(&mut self, field: &[u8], log: &mut dyn ElementLog) -> bool {
        let is_removed = match &mut self.form {
            Form::Pack(pack) => match find(pack, field) {
                Some((offset, value)) => {
                    // The value first: removing at the front may move what is behind it.
                    pack.remove_at(value);
                    pack.remove_at(offset);
                    true
                }
                None => false,
            },
            Form::Table(table) => match table.remove(field) {
                Some(old) => {
                    self.bytes -= old.name.len() + old.value.len() + FIELD_OVERHEAD;
                    true
                }
                None => false,
            },
        };
        if is_removed {
            self.forget_expiry(field);
            log.remove(field);
        }
        is_removed
    }

    pub fn each(&self, visit: &mut dyn FnMut(&[u8], &[u8])) {
        match &self.form {
            Form::Pack(pack) => {
                let mut texts = pack.iter();
                while let (Some(name), Some(value)) = (texts.next(), texts.next()) {
                    visit(name, value);
                }
            }
            Form::Table(table) => {
                table.entries().iter().for_each(|field| visit(&field.name, &field.value));
            }
        }
    }

    /// The field with a number below `len()`.
    fn field(&self, number: usize) -> Option<(Vec<u8>, Vec<u8>)> {
        match &self.form {
            Form::Pack(pack) => {
                let offset = pack.offset_of(number * 2)?;
                let (name, next) = pack.at(offset)?;
                Some((name.to_vec(), pack.at(next)?.0.to_vec()))
            }
            Form::Table(table) => {
                let field = table.entries().get(number)?;
                Some((field.name.to_vec(), field.value.to_vec()))
            }
        }
    }

    pub fn random(&self, random: Random<'_>) -> Option<(Vec<u8>, Vec<u8>)> {
        self.field(random() as usize % self.len().max(1))
    }

    /// Different fields by chance: `count` of them, or all.
    pub fn sample(&self, count: usize, random: Random<'_>) -> Vec<(Vec<u8>, Vec<u8>)> {
        let chosen = choose(self.len(), count, random);
        chosen.into_iter().filter_map(|number| self.field(number)).collect()
    }

    /// Compact forms are visited in one go, whatever `count` says.
    pub fn scan(&self, cursor: u64, count: usize, visit: &mut dyn FnMut(&[u8], &[u8])) -> u64 {
        match &self.form {
            Form::Pack(_) => {
                self.each(visit);
                0
            }
            Form::Table(table) => {
                table.scan(cursor, count, &mut |field| visit(&field.name, &field.value))
            }
        }
    }

    /// When a field ends, if it has a time to live.
    pub fn expiry_ms(&self, field: &[u8]) -> Option<u64> {
        self.expiries.as_ref()?.by_field.get(field).copied()
    }

    /// When the first field ends.
    pub fn next_expiry_ms(&self) -> Option<u64> {
        self.expiries.as_ref()?.by_time.first().map(|(time, _)| *time)
    }

    /// Sets when a field ends, which must be there.
    pub fn set_expiry(&mut self, field: &[u8], at_ms: u64, log: &mut dyn ElementLog) {
        self.forget_expiry(field);
        let expiries = self.expiries.get_or_insert_default();
        expiries.by_field.insert(field.to_vec(), at_ms);
        expiries.by_time.insert((at_ms, field.to_vec()));
        self.log_field(field, log);
    }

    /// Takes the time to live from a field; says whether it had one.
    pub fn persist(&mut self, field: &[u8], log: &mut dyn ElementLog) -> bool {
        let had_one = self.forget_expiry(field);
        if had_one {
            self.log_field(field, log);
        }
        had_one
    }

    fn log_field(&self, field: &[u8], log: &mut dyn ElementLog) {
        if let Some(value) = self.get(field) {
            log.put(field, &self.row_value(field, value));
        }
    }

    fn forget_expiry(&mut self, field: &[u8]) -> bool {
        let Some(expiries) = &mut self.expiries else { return false };
        let Some(time) = expiries.by_field.remove(field) else { return false };
        expiries.by_time.remove(&(time, field.to_vec()));
        if expiries.by_field.is_empty() {
            self.expiries = None;
        }
        true
    }

    /// Removes up to `most` fields whose time has come, and says how many.
    pub fn expire(&mut self, now_ms: u64, most: usize, log: &mut dyn ElementLog) -> usize {
        let mut removed = 0;
        while removed < most && self.next_expiry_ms().is_some_and(|time| time <= now_ms) {
            let first = self.expiries.as_ref().and_then(|expiries| expiries.by_time.first());
            let Some((_, field)) = first.cloned() else { break };
            self.remove(&field, log);
            removed += 1;
        }
        removed
    }

    /// When the field ends (0 if never), then the value.
    fn row_value(&self, field: &[u8], value: &[u8]) -> Vec<u8> {
        let mut row = self.expiry_ms(field).unwrap_or(0).to_be_bytes().to_vec();
        row.extend_from_slice(value);
        row
    }

    pub fn rows(&self, visit: &mut dyn FnMut(&[u8], &[u8])) {
        self.each(&mut |field, value| visit(field, &self.row_value(field, value)));
    }

    pub fn load(&mut self, element: &[u8], row: &[u8]) -> Result<(), BadRow> {
        let (expiry, value) = row.split_first_chunk::<8>().ok_or(BadRow)?;
        if !self.put(element, value) {
            return Err(BadRow);
        }
        let expiry = u64::from_be_bytes(*expiry);
        if expiry > 0 {
            self.set_expiry(element, expiry, &mut Unlogged);
        }
        Ok(())
    }
}

/// Where a field is in its flat form, and where its value is.
fn find(pack: &Pack, field: &[u8]) -> Option<(usize, usize)> {
    let mut at = pack.start();
    while let Some((name, value)) = pack.at(at) {
        if name == field {
            return Some((at, value));
        }
        at = pack.at(value)?.1;
    }
    None
}

#[cfg(test)]
mod tests {
    use super::super::log::Journaled;
    use super::super::table::tests::random;
    use super::*;

    type Model = BTreeMap<Vec<u8>, (Vec<u8>, Option<u64>)>;

    #[test]
    fn a_hash_is_a_map_in_both_forms_and_so_are_its_rows() {
        for seed in 0..40 {
            let mut random = random(seed);
            let (mut hash, mut model) = (Hash::default(), Model::new());
            let mut journal = Journaled::default();
            for now in 0..1200 {
                let field = (random() % if seed % 2 == 0 { 60 } else { 800 }).to_string();
                let field = field.into_bytes();
                let value = vec![b'v'; (random() % if seed % 4 < 2 { 64 } else { 70 }) as usize];
                assert_eq!(hash.get(&field), model.get(&field).map(|(value, _)| value.as_slice()));
                match random() % 8 {
                    0..4 => {
                        let is_new = model.insert(field.clone(), (value.clone(), None)).is_none();
                        assert_eq!(hash.set(&field, &value, &mut journal), is_new);
                    }
                    4 => {
                        let at = now + 1 + random() % 300;
                        if let Some((_, expiry)) = model.get_mut(&field) {
                            *expiry = Some(at);
                            hash.set_expiry(&field, at, &mut journal);
                        }
                    }
                    5 => {
                        let found = model.get_mut(&field);
                        let had_one = found.is_some_and(|(_, at)| at.take().is_some());
                        assert_eq!(hash.persist(&field, &mut journal), had_one);
                    }
                    _ => {
                        let is_there = model.remove(&field).is_some();
                        assert_eq!(hash.remove(&field, &mut journal), is_there);
                    }
                }
                let before = model.len();
                model.retain(|_, (_, expiry)| expiry.is_none_or(|at| at > now));
                assert_eq!(hash.expire(now, usize::MAX, &mut journal), before - model.len());
                assert_eq!(hash.len(), model.len());
                journal.settle(&|visit| hash.rows(visit));
            }
            let mut loaded = Hash::default();
            journal.rows.iter().for_each(|(element, row)| loaded.load(element, row).unwrap());
            for hash in [&hash, &loaded] {
                let mut all = Model::new();
                hash.each(&mut |field, value| {
                    all.insert(field.to_vec(), (value.to_vec(), hash.expiry_ms(field)));
                });
                assert_eq!(all, model);
            }
        }
    }

    #[test]
    fn a_hash_leaves_its_compact_form_by_count_and_by_length() {
        let mut hash = Hash::default();
        for number in 0..512 {
            hash.set(number.to_string().as_bytes(), &[b'x'; 64], &mut Unlogged);
        }
        assert_eq!(hash.encoding(), "listpack");
        hash.set(b"more", b"", &mut Unlogged);
        assert_eq!(hash.encoding(), "hashtable");
        let mut long = Hash::default();
        long.set(b"f", &[b'x'; 65], &mut Unlogged);
        assert_eq!(long.encoding(), "hashtable");
    }
}
