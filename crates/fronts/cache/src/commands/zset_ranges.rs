//! Ranges of sorted sets: by rank, by score, by the bytes of members; shown, counted, stored, removed.

use lazuli_keyspace::types::{SortedSet, Unlogged};
use lazuli_keyspace::{Class, Value};

use crate::bounds::{Bounds, LexBounds, ScoreBounds};
use crate::call::Call;
use crate::command::Run;
use crate::failure::Failure;
use crate::range::Cut;

pub(super) const RUNS: &[(&str, Run)] = &[
    ("zcount", zcount),
    ("zlexcount", zlexcount),
    ("zrange", |call| show(call, Fixed { by: None, direction: None })),
    ("zrangebylex", |call| show(call, Fixed { by: Some(By::Members), direction: Some(false) })),
    ("zrangebyscore", |call| show(call, Fixed { by: Some(By::Scores), direction: Some(false) })),
    ("zrangestore", zrangestore),
    ("zremrangebylex", zremrangebylex),
    ("zremrangebyrank", zremrangebyrank),
    ("zremrangebyscore", zremrangebyscore),
    ("zrevrange", |call| show(call, Fixed { by: Some(By::Ranks), direction: Some(true) })),
    ("zrevrangebylex", |call| show(call, Fixed { by: Some(By::Members), direction: Some(true) })),
    ("zrevrangebyscore", |call| show(call, Fixed { by: Some(By::Scores), direction: Some(true) })),
];

#[derive(Clone, Copy, PartialEq, Eq)]
enum By {
    Ranks,
    Scores,
    Members,
}

/// What the name of a command has decided already.
struct Fixed {
    by: Option<By>,
    /// Whether it goes down.
    direction: Option<bool>,
}

/// A range as a command asks for it.
struct Query<'a> {
    bounds: Bounds<'a>,
    is_reverse: bool,
    offset: i64,
    /// Negative for all.
    limit: i64,
    has_scores: bool,
}

impl<'a> Query<'a> {
    /// `from` is the place of the first bound.
    fn parse(
        call: &Call<'a, '_>,
        from: usize,
        fixed: Fixed,
        stores: bool,
    ) -> Result<Self, Failure> {
        let args = call.args;
        let (mut by, mut direction) = (fixed.by, fixed.direction);
        let (mut offset, mut limit, mut has_scores) = (0, -1, false);
        let mut at = from + 2;
        while at < args.len() {
            match args.at(at).to_ascii_lowercase().as_slice() {
                b"withscores" if !stores => has_scores = true,
                b"limit" if at + 2 < args.len() => {
                    (offset, limit) = (call.integer(at + 1)?, call.integer(at + 2)?);
                    at += 2;
                }
                b"rev" if fixed.direction.is_none() => direction = Some(true),
                b"bylex" if fixed.by.is_none() => by = Some(By::Members),
                b"byscore" if fixed.by.is_none() => by = Some(By::Scores),
                _ => return Err(Failure::SYNTAX),
            }
            at += 1;
        }
        let (by, is_reverse) = (by.unwrap_or(By::Ranks), direction.unwrap_or(false));
        if limit != -1 && by == By::Ranks {
            return Err(Failure::of(
                "ERR syntax error, LIMIT is only supported in combination with either BYSCORE or \
                 BYLEX",
            ));
        }
        if has_scores && by == By::Members {
            return Err(Failure::of(
                "ERR syntax error, WITHSCORES not supported in combination with BYLEX",
            ));
        }
        // Downwards the higher bound comes first.
        let (low, high) = if is_reverse { (from + 1, from) } else { (from, from + 1) };
        let bounds = match by {
            By::Ranks => Bounds::Ranks(call.integer(from)?, call.integer(from + 1)?),
            By::Scores => Bounds::Scores(ScoreBounds::parse(args.at(low), args.at(high))?),
            By::Members => Bounds::Members(LexBounds::parse(args.at(low), args.at(high))?),
        };
        Ok(Self { bounds, is_reverse, offset, limit, has_scores })
    }

    fn find(&self, zset: &SortedSet) -> Cut {
        let Cut { from, count } = self.bounds.find(zset, self.is_reverse);
        // A negative offset skips everything.
        let skipped = usize::try_from(self.offset).unwrap_or(usize::MAX).min(count);
        let most = usize::try_from(self.limit).unwrap_or(usize::MAX);
        Cut { from: from + skipped, count: (count - skipped).min(most) }
    }
}

fn show(call: &mut Call<'_, '_>, fixed: Fixed) -> Result<(), Failure> {
    let query = Query::parse(call, 2, fixed, false)?;
    let Some(zset) = call.space.read::<SortedSet>(call.args.at(1))? else {
        call.out.array(0);
        return Ok(());
    };
    let Cut { from, count } = query.find(zset);
    let is_flat = query.has_scores && !call.out.is_resp3;
    call.out.array(if is_flat { count * 2 } else { count });
    zset.walk(from, count, query.is_reverse, &mut |member, score| {
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

fn zrangestore(call: &mut Call<'_, '_>) -> Result<(), Failure> {
    let query = Query::parse(call, 3, Fixed { by: None, direction: None }, true)?;
    let target = call.args.at(1);
    let mut result = SortedSet::default();
    if let Some(zset) = call.space.read::<SortedSet>(call.args.at(2))? {
        let Cut { from, count } = query.find(zset);
        zset.walk(from, count, query.is_reverse, &mut |member, score| {
            result.set(member, score, &mut Unlogged);
        });
    }
    store(call, target, result, "zrangestore");
    Ok(())
}

/// Puts a result in the place of a key, which goes if there is nothing in it, and replies with its size.
pub(super) fn store(call: &mut Call<'_, '_>, key: &[u8], result: SortedSet, event: &'static str) {
    call.out.count(result.len());
    if result.is_empty() {
        call.space.delete(key);
    } else {
        call.space.put(key, Value::Sorted(result), None);
        call.space.event(Class::SORTED, event, key);
    }
}

fn count(call: &mut Call<'_, '_>, bounds: Bounds<'_>) -> Result<(), Failure> {
    let zset = call.space.read::<SortedSet>(call.args.at(1))?;
    call.out.count(zset.map_or(0, |zset| bounds.find(zset, false).count));
    Ok(())
}

fn zcount(call: &mut Call<'_, '_>) -> Result<(), Failure> {
    let bounds = Bounds::Scores(ScoreBounds::parse(call.args.at(2), call.args.at(3))?);
    count(call, bounds)
}

fn zlexcount(call: &mut Call<'_, '_>) -> Result<(), Failure> {
    let bounds = Bounds::Members(LexBounds::parse(call.args.at(2), call.args.at(3))?);
    count(call, bounds)
}

fn remove(call: &mut Call<'_, '_>, bounds: Bounds<'_>, event: &'static str) -> Result<(), Failure> {
    let removed = call.space.with(call.args.at(1), false, |zset: &mut SortedSet, log| {
        let Cut { from, count } = bounds.find(zset, false);
        for (member, _) in zset.slice(from, count, false) {
            zset.remove(&member, log);
        }
        if count > 0 {
            log.event(Class::SORTED, event);
        }
        count
    })?;
    call.out.count(removed.unwrap_or(0));
    Ok(())
}

fn zremrangebyrank(call: &mut Call<'_, '_>) -> Result<(), Failure> {
    let bounds = Bounds::Ranks(call.integer(2)?, call.integer(3)?);
    remove(call, bounds, "zremrangebyrank")
}

fn zremrangebyscore(call: &mut Call<'_, '_>) -> Result<(), Failure> {
    let bounds = Bounds::Scores(ScoreBounds::parse(call.args.at(2), call.args.at(3))?);
    remove(call, bounds, "zremrangebyscore")
}

fn zremrangebylex(call: &mut Call<'_, '_>) -> Result<(), Failure> {
    let bounds = Bounds::Members(LexBounds::parse(call.args.at(2), call.args.at(3))?);
    remove(call, bounds, "zremrangebylex")
}
