//! SORT: the elements of a list, set or sorted set in order, by themselves or by what other keys hold.

use std::cmp::Ordering;

use lazuli_keyspace::types::list::End;
use lazuli_keyspace::types::{Hash, List, Set, SortedSet, Unlogged};
use lazuli_keyspace::{Class, Value};
use lazuli_resp::parse_double;

use crate::call::Call;
use crate::command::Run;
use crate::failure::Failure;

pub(super) const RUNS: &[(&str, Run)] =
    &[("sort", |call| sort(call, true)), ("sort_ro", |call| sort(call, false))];

struct Query<'a> {
    by: Option<&'a [u8]>,
    gets: Vec<&'a [u8]>,
    offset: i64,
    count: i64,
    is_descending: bool,
    is_alpha: bool,
    target: Option<&'a [u8]>,
}

impl<'a> Query<'a> {
    fn parse(call: &Call<'a, '_>, may_store: bool) -> Result<Self, Failure> {
        let args = call.args;
        let mut found = Self {
            by: None,
            gets: Vec::new(),
            offset: 0,
            count: -1,
            is_descending: false,
            is_alpha: false,
            target: None,
        };
        let mut at = 2;
        while at < args.len() {
            let more = args.len() - 1 - at;
            match args.at(at).to_ascii_lowercase().as_slice() {
                b"asc" => found.is_descending = false,
                b"desc" => found.is_descending = true,
                b"alpha" => found.is_alpha = true,
                b"limit" if more >= 2 => {
                    (found.offset, found.count) = (call.integer(at + 1)?, call.integer(at + 2)?);
                    at += 2;
                }
                b"store" if may_store && more >= 1 => {
                    found.target = Some(args.at(at + 1));
                    at += 1;
                }
                b"by" if more >= 1 => {
                    check_pattern(call, args.at(at + 1), "BY")?;
                    found.by = Some(args.at(at + 1));
                    at += 1;
                }
                b"get" if more >= 1 => {
                    check_pattern(call, args.at(at + 1), "GET")?;
                    found.gets.push(args.at(at + 1));
                    at += 1;
                }
                _ => return Err(Failure::SYNTAX),
            }
            at += 1;
        }
        Ok(found)
    }

    /// A pattern without a place for the element asks for no sorting at all.
    fn is_unsorted(&self) -> bool {
        self.by.is_some_and(|by| !by.contains(&b'*'))
    }

    fn slice(&self, len: usize) -> std::ops::Range<usize> {
        let from = usize::try_from(self.offset).unwrap_or(0).min(len);
        let count = usize::try_from(self.count).unwrap_or(len);
        from..from.saturating_add(count).min(len)
    }
}

/// The elements of a key, and whether they come in an order that means something.
fn elements(
    call: &mut Call<'_, '_>,
    key: &[u8],
    is_reverse: bool,
) -> Result<(Vec<Vec<u8>>, bool), Failure> {
    let mut found = Vec::new();
    if let Ok(list) = call.space.read::<List>(key) {
        if let Some(list) = list {
            found.extend(list.iter_from(0).map(<[u8]>::to_vec));
        }
        return Ok((found, true));
    }
    if let Ok(Some(set)) = call.space.read::<Set>(key) {
        set.each(&mut |member| found.push(member.to_vec()));
        return Ok((found, false));
    }
    if let Some(zset) = call.space.read::<SortedSet>(key)? {
        zset.walk(0, usize::MAX, is_reverse, &mut |member, _| found.push(member.to_vec()));
    }
    Ok((found, true))
}

/// What the key holds that a pattern names for an element: a string, or a field behind `->`.
fn lookup(call: &mut Call<'_, '_>, pattern: &[u8], element: &[u8]) -> Option<Vec<u8>> {
    if pattern == b"#" {
        return Some(element.to_vec());
    }
    let star = pattern.iter().position(|byte| *byte == b'*')?;
    let behind = &pattern[star + 1..];
    let arrow = behind.windows(2).position(|pair| pair == b"->");
    let arrow = arrow.filter(|arrow| arrow + 2 < behind.len());
    let postfix = arrow.map_or(behind, |arrow| &behind[..arrow]);
    let key = [&pattern[..star], element, postfix].concat();
    match arrow {
        Some(arrow) => {
            let field = &behind[arrow + 2..];
            let hash = call.space.read::<Hash>(&key).ok()??;
            hash.get(field).map(<[u8]>::to_vec)
        }
        None => call.space.string(&key).ok()?.map(<[u8]>::to_vec),
    }
}

/// What an element is sorted by.
enum Weight {
    Number(f64),
    Text(Option<Vec<u8>>),
}

fn weigh(call: &mut Call<'_, '_>, query: &Query<'_>, element: &[u8]) -> Result<Weight, Failure> {
    let text = match query.by {
        Some(by) => lookup(call, by, element),
        None => Some(element.to_vec()),
    };
    if query.is_alpha {
        return Ok(Weight::Text(text));
    }
    let refused = Failure::of("ERR One or more scores can't be converted into double");
    let number = match text {
        None => 0.0,
        Some(text) if text.is_empty() => 0.0,
        // Blanks before a number are skipped, as C does.
        Some(text) => parse_double(text.trim_ascii_start()).ok_or(refused)?,
    };
    Ok(Weight::Number(number))
}

fn compare(left: &(Weight, Vec<u8>), right: &(Weight, Vec<u8>)) -> Ordering {
    match (&left.0, &right.0) {
        (Weight::Number(a), Weight::Number(b)) => {
            let order = a.partial_cmp(b).unwrap_or(Ordering::Equal);
            order.then_with(|| left.1.cmp(&right.1))
        }
        (Weight::Text(a), Weight::Text(b)) => a.cmp(b),
        _ => Ordering::Equal,
    }
}

/// Which keys a pattern finds nobody knows beforehand: so it takes the right to read all of them.
fn check_pattern(call: &Call<'_, '_>, pattern: &[u8], option: &str) -> Result<(), Failure> {
    let user = call.session.user.as_ref();
    if pattern.contains(&b'*') && user.is_some_and(|it| !it.rights().reads_all_keys()) {
        let text = "option of SORT denied due to insufficient ACL permissions.";
        return Err(Failure::new(format!("ERR {option} {text}")));
    }
    Ok(())
}

fn sort(call: &mut Call<'_, '_>, may_store: bool) -> Result<(), Failure> {
    let mut query = Query::parse(call, may_store)?;
    let key = call.args.at(1);
    let (mut found, is_ordered) = elements(call, key, query.is_descending && query.is_unsorted())?;
    if !is_ordered && query.is_unsorted() && query.target.is_some() {
        // What is stored must not depend on the order that a set happens to have.
        (query.by, query.is_alpha) = (None, true);
    }
    if !query.is_unsorted() {
        let mut weighed = Vec::with_capacity(found.len());
        for element in found {
            weighed.push((weigh(call, &query, &element)?, element));
        }
        match query.is_descending {
            true => weighed.sort_by(|left, right| compare(right, left)),
            false => weighed.sort_by(compare),
        }
        found = weighed.into_iter().map(|(_, element)| element).collect();
    }
    let slice = query.slice(found.len());
    let mut results: Vec<Option<Vec<u8>>> = Vec::new();
    for element in &found[slice] {
        if query.gets.is_empty() {
            results.push(Some(element.clone()));
        }
        for get in &query.gets {
            results.push(lookup(call, get, element));
        }
    }
    match query.target {
        Some(target) => store(call, target, results),
        None => {
            call.out.array(results.len());
            results.iter().for_each(|result| call.out.bulk_or_null(result.as_deref()));
        }
    }
    Ok(())
}

fn store(call: &mut Call<'_, '_>, target: &[u8], results: Vec<Option<Vec<u8>>>) {
    let mut list = List::default();
    for result in &results {
        list.push(End::Back, result.as_deref().unwrap_or_default(), &mut Unlogged);
    }
    call.out.count(list.len());
    if list.is_empty() {
        call.space.delete(target);
    } else {
        call.space.put(target, Value::List(list), None);
        call.space.event(Class::LIST, "sortstore", target);
    }
}
