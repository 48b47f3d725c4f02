//! Sorted sets: scores of members.

use lazuli_keyspace::Class;
use lazuli_keyspace::types::SortedSet;
use lazuli_resp::parse_double;

use super::hashes::Draw;
use crate::call::Call;
use crate::command::Run;
use crate::failure::Failure;
use crate::scan::{self, Scan};

pub(super) const RUNS: &[(&str, Run)] = &[
    ("zadd", zadd),
    ("zcard", zcard),
    ("zincrby", zincrby),
    ("zmscore", zmscore),
    ("zrandmember", zrandmember),
    ("zrank", |call| rank(call, false)),
    ("zrem", zrem),
    ("zrevrank", |call| rank(call, true)),
    ("zscan", zscan),
    ("zscore", zscore),
];

const NOT_A_SCORE: Failure = Failure::of("ERR resulting score is not a number (NaN)");

/// What ZADD is told before the scores.
#[derive(Clone, Copy, Default)]
struct Options {
    is_nx: bool,
    is_xx: bool,
    is_gt: bool,
    is_lt: bool,
    counts_changes: bool,
    increments: bool,
}

#[derive(Default)]
struct Counts {
    added: usize,
    updated: usize,
    /// The score of the last member that was not left alone.
    score: Option<f64>,
}

impl Options {
    /// The options, and where the scores begin.
    fn parse(call: &Call<'_, '_>) -> Result<(Self, usize), Failure> {
        let mut found = Self::default();
        let mut at = 2;
        loop {
            match call.args.at(at).to_ascii_lowercase().as_slice() {
                b"nx" => found.is_nx = true,
                b"xx" => found.is_xx = true,
                b"gt" => found.is_gt = true,
                b"lt" => found.is_lt = true,
                b"ch" => found.counts_changes = true,
                b"incr" => found.increments = true,
                _ => break,
            }
            at += 1;
        }
        let rest = call.args.len().saturating_sub(at);
        if rest == 0 || !rest.is_multiple_of(2) {
            return Err(Failure::SYNTAX);
        }
        if found.is_nx && found.is_xx {
            return Err(Failure::of("ERR XX and NX options at the same time are not compatible"));
        }
        let (nx, gt, lt) = (found.is_nx, found.is_gt, found.is_lt);
        if nx && (gt || lt) || gt && lt {
            return Err(Failure::of(
                "ERR GT, LT, and/or NX options at the same time are not compatible",
            ));
        }
        if found.increments && rest > 2 {
            return Err(Failure::of("ERR INCR option supports a single increment-element pair"));
        }
        Ok((found, at))
    }

    /// Sets one score as the options say.
    fn apply(
        self,
        zset: &mut SortedSet,
        (member, score): (&[u8], f64),
        counts: &mut Counts,
        log: &mut lazuli_keyspace::Log<'_>,
    ) -> Result<(), Failure> {
        let Some(before) = zset.score(member) else {
            if !self.is_xx {
                zset.set(member, score, log);
                counts.added += 1;
                counts.score = Some(score);
            }
            return Ok(());
        };
        if self.is_nx {
            return Ok(());
        }
        let score = if self.increments { before + score } else { score };
        if score.is_nan() {
            return Err(NOT_A_SCORE);
        }
        if self.is_lt && score >= before || self.is_gt && score <= before {
            return Ok(());
        }
        counts.score = Some(score);
        if score != before {
            zset.set(member, score, log);
            counts.updated += 1;
        }
        Ok(())
    }
}

fn zadd(call: &mut Call<'_, '_>) -> Result<(), Failure> {
    let (options, from) = Options::parse(call)?;
    let args = call.args;
    let mut pairs = Vec::with_capacity((args.len() - from) / 2);
    for at in (from..args.len()).step_by(2) {
        pairs.push((args.at(at + 1), parse_double(args.at(at)).ok_or(Failure::NOT_FLOAT)?));
    }
    let counts = change(call, options, &pairs)?;
    if options.increments {
        match counts.score {
            Some(score) => call.out.double(score),
            None => call.out.null(),
        }
    } else {
        let updated = if options.counts_changes { counts.updated } else { 0 };
        call.out.count(counts.added + updated);
    }
    Ok(())
}

fn change(
    call: &mut Call<'_, '_>,
    options: Options,
    pairs: &[(&[u8], f64)],
) -> Result<Counts, Failure> {
    let key = call.args.at(1);
    let counts = call.space.with(key, !options.is_xx, |zset: &mut SortedSet, log| {
        let mut counts = Counts::default();
        for pair in pairs {
            options.apply(zset, *pair, &mut counts, log)?;
        }
        if counts.added + counts.updated > 0 {
            log.event(Class::SORTED, if options.increments { "zincr" } else { "zadd" });
        }
        Ok::<Counts, Failure>(counts)
    })?;
    counts.unwrap_or_else(|| Ok(Counts::default()))
}

fn zincrby(call: &mut Call<'_, '_>) -> Result<(), Failure> {
    let by = call.double(2)?;
    let options = Options { increments: true, ..Options::default() };
    let counts = change(call, options, &[(call.args.at(3), by)])?;
    call.out.double(counts.score.unwrap_or(by));
    Ok(())
}

fn zrem(call: &mut Call<'_, '_>) -> Result<(), Failure> {
    let args = call.args;
    let removed = call.space.with(args.at(1), false, |zset: &mut SortedSet, log| {
        let mut remove = |member: &&[u8]| zset.remove(member, log).is_some();
        let removed = args.from(2).iter().filter(&mut remove).count();
        if removed > 0 {
            log.event(Class::SORTED, "zrem");
        }
        removed
    })?;
    call.out.count(removed.unwrap_or(0));
    Ok(())
}

fn zcard(call: &mut Call<'_, '_>) -> Result<(), Failure> {
    let zset = call.space.read::<SortedSet>(call.args.at(1))?;
    call.out.count(zset.map_or(0, SortedSet::len));
    Ok(())
}

fn write_score(call: &mut Call<'_, '_>, score: Option<f64>) {
    match score {
        Some(score) => call.out.double(score),
        None => call.out.null(),
    }
}

fn zscore(call: &mut Call<'_, '_>) -> Result<(), Failure> {
    let member = call.args.at(2);
    let zset = call.space.read::<SortedSet>(call.args.at(1))?;
    let score = zset.and_then(|zset| zset.score(member));
    write_score(call, score);
    Ok(())
}

fn zmscore(call: &mut Call<'_, '_>) -> Result<(), Failure> {
    let members = call.args.from(2);
    let zset = call.space.read::<SortedSet>(call.args.at(1))?;
    let score = |member: &[u8]| zset.and_then(|zset| zset.score(member));
    let scores: Vec<Option<f64>> = members.iter().map(score).collect();
    call.out.array(members.len());
    scores.into_iter().for_each(|score| write_score(call, score));
    Ok(())
}

fn rank(call: &mut Call<'_, '_>, is_reverse: bool) -> Result<(), Failure> {
    let member = call.args.at(2);
    let zset = call.space.read::<SortedSet>(call.args.at(1))?;
    match zset.and_then(|zset| zset.rank(member).map(|rank| (rank, zset.len()))) {
        Some((rank, len)) => call.out.count(if is_reverse { len - 1 - rank } else { rank }),
        None => call.out.null(),
    }
    Ok(())
}

fn zrandmember(call: &mut Call<'_, '_>) -> Result<(), Failure> {
    let draw = Draw::parse(call, "withscores")?;
    let server = call.server;
    let mut random = || server.keyspace.random();
    let zset = call.space.read::<SortedSet>(call.args.at(1))?;
    let Some(draw) = draw else {
        let member = zset.and_then(|zset| zset.random(&mut random));
        call.out.bulk_or_null(member.as_ref().map(|(member, _)| member.as_slice()));
        return Ok(());
    };
    let drawn = match zset {
        Some(zset) if draw.is_distinct => zset.sample(draw.count, &mut random),
        Some(zset) => (0..draw.count).filter_map(|_| zset.random(&mut random)).collect(),
        None => Vec::new(),
    };
    draw.head(call, drawn.len());
    for (member, score) in &drawn {
        draw.pair(call);
        call.out.bulk(member);
        if draw.is_with {
            call.out.double(*score);
        }
    }
    Ok(())
}

fn zscan(call: &mut Call<'_, '_>) -> Result<(), Failure> {
    let cursor = scan::cursor(call.args.at(2))?;
    let args = call.args;
    let Some(zset) = call.space.read::<SortedSet>(args.at(1))? else {
        call.out.array(2);
        call.out.text("0");
        call.out.array(0);
        return Ok(());
    };
    let scan = Scan::parse(args, 3)?;
    let mut found: Vec<(Vec<u8>, f64)> = Vec::new();
    let next = zset.scan(cursor, scan.count, &mut |member, score| {
        if scan.takes(member) {
            found.push((member.to_vec(), score));
        }
    });
    call.out.array(2);
    call.out.text(&next.to_string());
    call.out.array(found.len() * 2);
    for (member, score) in &found {
        call.out.bulk(member);
        call.out.text(&lazuli_resp::double_text(*score));
    }
    Ok(())
}
