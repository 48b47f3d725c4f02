//! Unions, intersections and differences of sorted sets, of which some may be plain sets with scores of one.

use lazuli_keyspace::types::{Set, SortedSet, Unlogged};
use lazuli_resp::parse_double;

use super::zset_ranges::store;
use crate::call::Call;
use crate::command::Run;
use crate::failure::Failure;
use crate::range::positive;

pub(super) const RUNS: &[(&str, Run)] = &[
    ("zdiff", |call| show(call, Operation::Difference)),
    ("zdiffstore", |call| keep(call, Operation::Difference, "zdiffstore")),
    ("zinter", |call| show(call, Operation::Intersection)),
    ("zintercard", zintercard),
    ("zinterstore", |call| keep(call, Operation::Intersection, "zinterstore")),
    ("zunion", |call| show(call, Operation::Union)),
    ("zunionstore", |call| keep(call, Operation::Union, "zunionstore")),
];

#[derive(Clone, Copy, PartialEq, Eq)]
enum Operation {
    Union,
    Intersection,
    Difference,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Aggregate {
    Sum,
    Min,
    Max,
}

impl Aggregate {
    fn join(self, left: f64, right: f64) -> f64 {
        match self {
            // Infinities of both signs cancel each other out.
            Self::Sum => Some(left + right).filter(|sum| !sum.is_nan()).unwrap_or(0.0),
            Self::Min => left.min(right),
            Self::Max => left.max(right),
        }
    }
}

/// What a command is told: its keys, their weights, and how scores are joined.
struct Query {
    keys: std::ops::Range<usize>,
    weights: Vec<f64>,
    aggregate: Aggregate,
    has_scores: bool,
    /// For ZINTERCARD; 0 for all.
    limit: usize,
}

/// What a command accepts behind its keys.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Show,
    Store,
    Count,
}

impl Query {
    fn parse(
        call: &mut Call<'_, '_>,
        at: usize,
        operation: Operation,
        kind: Kind,
    ) -> Result<Self, Failure> {
        let number = call.integer(at)?;
        if number < 1 {
            let name = call.command.name;
            let text = format!("ERR at least 1 input key is needed for '{name}' command");
            return Err(Failure::new(text));
        }
        let first = at + 1;
        let number = usize::try_from(number).ok().filter(|it| *it <= call.args.len() - first);
        let number = number.ok_or(Failure::SYNTAX)?;
        let keys = first..first + number;
        for key in keys.clone() {
            Source::open(call, key)?;
        }
        let weights = vec![1.0; number];
        let mut found =
            Self { keys, weights, aggregate: Aggregate::Sum, has_scores: false, limit: 0 };
        found.parse_options(call, operation, kind)?;
        Ok(found)
    }

    fn parse_options(
        &mut self,
        call: &Call<'_, '_>,
        operation: Operation,
        kind: Kind,
    ) -> Result<(), Failure> {
        let is_weighed = operation != Operation::Difference && kind != Kind::Count;
        let mut at = self.keys.end;
        while at < call.args.len() {
            let rest = call.args.len() - at;
            match call.args.at(at).to_ascii_lowercase().as_slice() {
                b"weights" if is_weighed && rest > self.weights.len() => {
                    for weight in &mut self.weights {
                        at += 1;
                        *weight = parse_double(call.args.at(at))
                            .ok_or(const { Failure::of("ERR weight value is not a float") })?;
                    }
                }
                b"aggregate" if is_weighed && rest > 1 => {
                    at += 1;
                    self.aggregate = match call.args.at(at).to_ascii_lowercase().as_slice() {
                        b"sum" => Aggregate::Sum,
                        b"min" => Aggregate::Min,
                        b"max" => Aggregate::Max,
                        _ => return Err(Failure::SYNTAX),
                    };
                }
                b"withscores" if kind == Kind::Show => self.has_scores = true,
                b"limit" if kind == Kind::Count && rest > 1 => {
                    at += 1;
                    let refused = Failure::of("ERR LIMIT can't be negative");
                    self.limit = positive(call.args.at(at), refused)?;
                }
                _ => return Err(Failure::SYNTAX),
            }
            at += 1;
        }
        Ok(())
    }
}

/// A key that holds a sorted set or a set.
enum Source<'s> {
    Sorted(&'s SortedSet),
    Plain(&'s Set),
    Missing,
}

impl<'s> Source<'s> {
    fn open<'c>(call: &'s mut Call<'c, '_>, at: usize) -> Result<Self, Failure>
    where
        'c: 's,
    {
        let key = call.args.at(at);
        let is_plain = call.space.read::<Set>(key).is_ok();
        if is_plain {
            return Ok(match call.space.read::<Set>(key)? {
                Some(set) => Self::Plain(set),
                None => Self::Missing,
            });
        }
        Ok(match call.space.read::<SortedSet>(key)? {
            Some(zset) => Self::Sorted(zset),
            None => Self::Missing,
        })
    }

    fn len(&self) -> usize {
        match self {
            Self::Sorted(zset) => zset.len(),
            Self::Plain(set) => set.len(),
            Self::Missing => 0,
        }
    }

    fn score(&self, member: &[u8]) -> Option<f64> {
        match self {
            Self::Sorted(zset) => zset.score(member),
            Self::Plain(set) => set.contains(member).then_some(1.0),
            Self::Missing => None,
        }
    }

    fn each(&self, visit: &mut dyn FnMut(&[u8], f64)) {
        match self {
            Self::Sorted(zset) => zset.walk(0, usize::MAX, false, visit),
            Self::Plain(set) => set.each(&mut |member| visit(member, 1.0)),
            Self::Missing => {}
        }
    }

    fn members(&self, weight: f64) -> Vec<(Vec<u8>, f64)> {
        let mut members = Vec::with_capacity(self.len());
        self.each(&mut |member, score| members.push((member.to_vec(), weigh(score, weight))));
        members
    }
}

fn weigh(score: f64, weight: f64) -> f64 {
    Some(score * weight).filter(|product| !product.is_nan()).unwrap_or(0.0)
}

fn combine(
    call: &mut Call<'_, '_>,
    query: &Query,
    operation: Operation,
) -> Result<SortedSet, Failure> {
    let mut result = SortedSet::default();
    match operation {
        Operation::Union => {
            for (at, weight) in query.keys.clone().zip(&query.weights) {
                for (member, score) in Source::open(call, at)?.members(*weight) {
                    let before = result.score(&member);
                    let score = before.map_or(score, |before| query.aggregate.join(before, score));
                    result.set(&member, score, &mut Unlogged);
                }
            }
        }
        Operation::Intersection => {
            for (member, score) in intersection(call, query)? {
                result.set(&member, score, &mut Unlogged);
            }
        }
        Operation::Difference => {
            let mut members = Source::open(call, query.keys.start)?.members(1.0);
            for at in query.keys.clone().skip(1) {
                let source = Source::open(call, at)?;
                members.retain(|(member, _)| source.score(member).is_none());
            }
            for (member, score) in members {
                result.set(&member, score, &mut Unlogged);
            }
        }
    }
    Ok(result)
}

fn intersection(call: &mut Call<'_, '_>, query: &Query) -> Result<Vec<(Vec<u8>, f64)>, Failure> {
    // The smallest first: the others are only asked for its members.
    let mut order = Vec::new();
    for (at, weight) in query.keys.clone().zip(&query.weights) {
        order.push((Source::open(call, at)?.len(), at, *weight));
    }
    order.sort_by_key(|(len, ..)| *len);
    let (_, first, weight) = order[0];
    let mut members = Source::open(call, first)?.members(weight);
    for (_, at, weight) in &order[1..] {
        let source = Source::open(call, *at)?;
        members.retain_mut(|(member, sum)| match source.score(member) {
            Some(score) => {
                *sum = query.aggregate.join(*sum, weigh(score, *weight));
                true
            }
            None => false,
        });
    }
    Ok(members)
}

fn show(call: &mut Call<'_, '_>, operation: Operation) -> Result<(), Failure> {
    let query = Query::parse(call, 1, operation, Kind::Show)?;
    let result = combine(call, &query, operation)?;
    let is_flat = query.has_scores && !call.out.is_resp3;
    call.out.array(if is_flat { result.len() * 2 } else { result.len() });
    result.walk(0, usize::MAX, false, &mut |member, score| {
        if query.has_scores && !is_flat {
            call.out.array(2);
        }
        call.out.bulk(member);
        if query.has_scores {
            call.out.double(score);
        }
    });
    Ok(())
}

fn keep(call: &mut Call<'_, '_>, by: Operation, event: &'static str) -> Result<(), Failure> {
    let query = Query::parse(call, 2, by, Kind::Store)?;
    let result = combine(call, &query, by)?;
    store(call, call.args.at(1), result, event);
    Ok(())
}

fn zintercard(call: &mut Call<'_, '_>) -> Result<(), Failure> {
    let query = Query::parse(call, 1, Operation::Intersection, Kind::Count)?;
    let count = intersection(call, &query)?.len();
    call.out.count(if query.limit == 0 { count } else { count.min(query.limit) });
    Ok(())
}
