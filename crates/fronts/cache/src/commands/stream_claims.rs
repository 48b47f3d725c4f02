//! Handing entries that wait for one consumer to another: XCLAIM and XAUTOCLAIM.

use lazuli_keyspace::types::stream::Pending;
use lazuli_keyspace::types::{Stream, StreamId};
use lazuli_keyspace::{Class, Log};
use lazuli_resp::{Reply, parse_integer};

use super::stream_groups::no_key_or_group;
use super::streams::{write_entry, write_id};
use crate::call::Call;
use crate::command::Run;
use crate::failure::Failure;
use crate::range::positive;
use crate::stream_ids::{interval_start, strict};

pub(super) const RUNS: &[(&str, Run)] = &[("xautoclaim", xautoclaim), ("xclaim", xclaim)];

/// How many pending entries XAUTOCLAIM looks at for each that it may claim.
const LOOKS_PER_CLAIM: usize = 10;
/// The most entries that one XAUTOCLAIM claims.
const CLAIMS_MAX: usize = 1_000_000;

/// What a claim does to each entry.
struct Claim<'a> {
    group: &'a [u8],
    consumer: &'a [u8],
    min_idle_ms: u64,
    now_ms: u64,
    delivered_ms: u64,
    deliveries: Option<u64>,
    is_forced: bool,
    shows_ids: bool,
}

/// What became of an entry.
enum Outcome {
    Claimed,
    /// It is pending for nobody, or not for long enough.
    Left,
    /// It is no longer in the stream, and not pending any more.
    Gone,
}

impl Claim<'_> {
    fn apply(&self, stream: &mut Stream, id: StreamId, log: &mut Log<'_>) -> Outcome {
        let is_there = stream.contains(id);
        let mut is_new = false;
        let claimed = stream.with_group(self.group, log, |group, log| {
            let pending = group.pending().get(&id).cloned();
            if !is_there {
                group.acknowledge(id, log);
                return if pending.is_some() { Outcome::Gone } else { Outcome::Left };
            }
            if pending.is_none() && !self.is_forced {
                return Outcome::Left;
            }
            let idle_ms = |it: &Pending| self.now_ms.saturating_sub(it.delivered_ms);
            if pending.as_ref().is_some_and(|it| idle_ms(it) < self.min_idle_ms) {
                return Outcome::Left;
            }
            let before = pending.map_or(1, |it| it.deliveries);
            let counted = before + u64::from(!self.shows_ids);
            let deliveries = self.deliveries.unwrap_or(counted);
            is_new = group.see(self.consumer, self.now_ms, log);
            group.give(id, self.consumer, self.delivered_ms, deliveries, log);
            Outcome::Claimed
        });
        if is_new {
            log.event(Class::STREAM, "xgroup-createconsumer");
        }
        claimed.unwrap_or(Outcome::Left)
    }

    fn write(&self, out: &mut Reply, stream: &Stream, id: StreamId) {
        if self.shows_ids {
            return write_id(out, id);
        }
        stream.range(id, id, false, &mut |id, texts| {
            write_entry(out, id, texts);
            false
        });
    }
}

fn min_idle_ms(call: &Call<'_, '_>, name: &str) -> Result<u64, Failure> {
    let number = parse_integer(call.args.at(4));
    let refused = || Failure::new(format!("ERR Invalid min-idle-time argument for {name}"));
    Ok(number.ok_or_else(refused)?.max(0) as u64)
}

fn check_group(call: &mut Call<'_, '_>) -> Result<(), Failure> {
    let (key, group) = (call.args.at(1), call.args.at(2));
    let stream = call.space.read::<Stream>(key)?;
    match stream.and_then(|stream| stream.group(group)) {
        Some(_) => Ok(()),
        None => Err(no_key_or_group(key, group)),
    }
}

/// The ids of XCLAIM, its options, and the last id it brings.
fn parse_claim<'a>(
    call: &Call<'a, '_>,
    min_idle_ms: u64,
) -> Result<(Claim<'a>, Vec<StreamId>, Option<StreamId>), Failure> {
    let args = call.args;
    let now_ms = call.now_ms();
    let mut claim = Claim {
        group: args.at(2),
        consumer: args.at(3),
        min_idle_ms,
        now_ms,
        delivered_ms: now_ms,
        deliveries: None,
        is_forced: false,
        shows_ids: false,
    };
    let ids: Vec<StreamId> = args.from(5).iter().map_while(|id| strict(id, 0).ok()).collect();
    let mut last_id = None;
    let mut at = 5 + ids.len();
    while at < args.len() {
        let number = |name: &str| {
            let refused = || Failure::new(format!("ERR Invalid {name} option argument for XCLAIM"));
            parse_integer(args.at(at + 1)).ok_or_else(refused)
        };
        let has_more = at + 1 < args.len();
        match args.at(at).to_ascii_lowercase().as_slice() {
            b"force" => claim.is_forced = true,
            b"justid" => claim.shows_ids = true,
            b"idle" if has_more => {
                let at_ms = (now_ms as i64).saturating_sub(number("IDLE")?);
                claim.delivered_ms = u64::try_from(at_ms).map_or(now_ms, |at| at.min(now_ms));
                at += 1;
            }
            b"time" if has_more => {
                let at_ms = number("TIME")?;
                claim.delivered_ms = u64::try_from(at_ms).map_or(now_ms, |at| at.min(now_ms));
                at += 1;
            }
            b"retrycount" if has_more => {
                claim.deliveries = u64::try_from(number("RETRYCOUNT")?).ok();
                at += 1;
            }
            b"lastid" if has_more => {
                last_id = Some(strict(args.at(at + 1), 0)?);
                at += 1;
            }
            _ => {
                let option = String::from_utf8_lossy(args.at(at)).into_owned();
                return Err(Failure::new(format!("ERR Unrecognized XCLAIM option '{option}'")));
            }
        }
        at += 1;
    }
    Ok((claim, ids, last_id))
}

fn xclaim(call: &mut Call<'_, '_>) -> Result<(), Failure> {
    check_group(call)?;
    let min_idle_ms = min_idle_ms(call, "XCLAIM")?;
    let (claim, ids, last_id) = parse_claim(call, min_idle_ms)?;
    let out = &mut *call.out;
    call.space.with(call.args.at(1), false, |stream: &mut Stream, log| {
        stream.with_group(claim.group, log, |group, log| {
            if let Some(last_id) = last_id.filter(|id| *id > group.last_id) {
                group.set_position(last_id, group.entries_read, log);
            }
        });
        let mut claimed = Vec::new();
        for id in ids {
            if let Outcome::Claimed = claim.apply(stream, id, log) {
                claimed.push(id);
            }
        }
        out.array(claimed.len());
        claimed.into_iter().for_each(|id| claim.write(out, stream, id));
    })?;
    Ok(())
}

fn xautoclaim(call: &mut Call<'_, '_>) -> Result<(), Failure> {
    let args = call.args;
    let min_idle_ms = min_idle_ms(call, "XAUTOCLAIM")?;
    let from = interval_start(args.at(5))?;
    let (mut count, mut shows_ids) = (100, false);
    let mut at = 6;
    while at < args.len() {
        if args.is(at, "count") && at + 1 < args.len() {
            let refused = Failure::of("ERR COUNT must be > 0");
            count = positive(args.at(at + 1), refused.clone())?;
            if count == 0 || count > i64::MAX as usize / 160 {
                return Err(refused);
            }
            at += 2;
        } else if args.is(at, "justid") {
            shows_ids = true;
            at += 1;
        } else {
            return Err(Failure::SYNTAX);
        }
    }
    check_group(call)?;
    let now_ms = call.now_ms();
    let claim = Claim {
        group: args.at(2),
        consumer: args.at(3),
        min_idle_ms,
        now_ms,
        delivered_ms: now_ms,
        deliveries: None,
        is_forced: false,
        shows_ids,
    };
    let count = count.min(CLAIMS_MAX);
    let out = &mut *call.out;
    call.space.with(args.at(1), false, |stream: &mut Stream, log| {
        let group = stream.group(claim.group);
        let looks = count.saturating_mul(LOOKS_PER_CLAIM);
        let mut ids: Vec<StreamId> = group
            .map(|group| group.pending().range(from..).map(|(id, _)| *id).take(looks + 1).collect())
            .unwrap_or_default();
        let beyond = if ids.len() > looks { ids.pop() } else { None };
        let (mut claimed, mut gone, mut next) = (Vec::new(), Vec::new(), beyond);
        for id in ids {
            if claimed.len() + gone.len() == count {
                next = Some(id);
                break;
            }
            match claim.apply(stream, id, log) {
                Outcome::Claimed => claimed.push(id),
                Outcome::Gone => gone.push(id),
                Outcome::Left => {}
            }
        }
        out.array(3);
        write_id(out, next.unwrap_or(StreamId::MIN));
        out.array(claimed.len());
        claimed.into_iter().for_each(|id| claim.write(out, stream, id));
        out.array(gone.len());
        gone.into_iter().for_each(|id| write_id(out, id));
    })?;
    Ok(())
}
