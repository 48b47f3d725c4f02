//! Places on the earth: added to sorted sets, told, measured. Searches are in `geo_search`.

use lazuli_keyspace::Class;
use lazuli_keyspace::types::SortedSet;
use lazuli_keyspace::types::geo::{self, Place};
use lazuli_resp::{Args, Reply, parse_double};

use crate::call::Call;
use crate::command::Run;
use crate::failure::Failure;

pub(super) const RUNS: &[(&str, Run)] =
    &[("geoadd", geoadd), ("geodist", geodist), ("geohash", geohash), ("geopos", geopos)];

/// The place whose longitude and latitude stand at an argument and the next.
pub(super) fn place_at(args: Args<'_>, at: usize) -> Result<Place, Failure> {
    let degrees = |at: usize| parse_double(args.at(at)).ok_or(Failure::NOT_FLOAT);
    let place = Place { longitude: degrees(at)?, latitude: degrees(at + 1)? };
    if !geo::is_valid(place) {
        let Place { longitude, latitude } = place;
        let text = format!("ERR invalid longitude,latitude pair {longitude:.6},{latitude:.6}");
        return Err(Failure::new(text));
    }
    Ok(place)
}

/// How many metres a unit has.
pub(super) fn unit(text: &[u8]) -> Result<f64, Failure> {
    match text.to_ascii_lowercase().as_slice() {
        b"m" => Ok(1.0),
        b"km" => Ok(1000.0),
        b"ft" => Ok(0.3048),
        b"mi" => Ok(1609.34),
        _ => Err(Failure::of("ERR unsupported unit provided. please use M, KM, FT, MI")),
    }
}

pub(super) fn write_distance(out: &mut Reply, distance: f64) {
    out.text(&format!("{distance:.4}"));
}

pub(super) fn write_place(out: &mut Reply, place: Place) {
    out.array(2);
    for degrees in [place.longitude, place.latitude] {
        let text = format!("{degrees:.17}");
        let text = text.trim_end_matches('0').trim_end_matches('.');
        if out.is_resp3 {
            out.bytes.extend_from_slice(format!(",{text}\r\n").as_bytes());
        } else {
            out.text(text);
        }
    }
}

fn geoadd(call: &mut Call<'_, '_>) -> Result<(), Failure> {
    let args = call.args;
    let (mut is_nx, mut is_xx, mut counts_changes) = (false, false, false);
    let mut at = 2;
    loop {
        match args.at(at).to_ascii_lowercase().as_slice() {
            b"nx" => is_nx = true,
            b"xx" => is_xx = true,
            b"ch" => counts_changes = true,
            _ => break,
        }
        at += 1;
    }
    let rest = args.len().saturating_sub(at);
    if !rest.is_multiple_of(3) || (is_nx && is_xx) {
        return Err(Failure::SYNTAX);
    }
    let mut places = Vec::with_capacity(rest / 3);
    for at in (at..args.len()).step_by(3) {
        places.push((args.at(at + 2), geo::score(place_at(args, at)?)));
    }
    if places.is_empty() {
        return Err(Failure::SYNTAX);
    }
    let counts = call.space.with(args.at(1), !is_xx, |zset: &mut SortedSet, log| {
        let (mut added, mut updated) = (0, 0);
        for (member, score) in places {
            match zset.score(member) {
                None if !is_xx => {
                    zset.set(member, score, log);
                    added += 1;
                }
                Some(before) if !is_nx && before != score => {
                    zset.set(member, score, log);
                    updated += 1;
                }
                _ => {}
            }
        }
        if added + updated > 0 {
            log.event(Class::SORTED, "zadd");
        }
        (added, updated)
    })?;
    let (added, updated) = counts.unwrap_or_default();
    call.out.count(if counts_changes { added + updated } else { added });
    Ok(())
}

fn geodist(call: &mut Call<'_, '_>) -> Result<(), Failure> {
    let args = call.args;
    let metres = match args.len() {
        4 => 1.0,
        5 => unit(args.at(4))?,
        _ => return Err(Failure::SYNTAX),
    };
    let zset = call.space.read::<SortedSet>(args.at(1))?;
    let place = |at: usize| zset.and_then(|zset| zset.score(args.at(at))).map(geo::place);
    match (place(2), place(3)) {
        (Some(from), Some(to)) => write_distance(call.out, geo::distance_m(from, to) / metres),
        _ => call.out.null(),
    }
    Ok(())
}

fn geohash(call: &mut Call<'_, '_>) -> Result<(), Failure> {
    let members = call.args.from(2);
    let zset = call.space.read::<SortedSet>(call.args.at(1))?;
    call.out.array(members.len());
    for member in members.iter() {
        let score = zset.and_then(|zset| zset.score(member));
        call.out.bulk_or_null(score.map(geo::geohash).as_ref().map(|text| text.as_slice()));
    }
    Ok(())
}

fn geopos(call: &mut Call<'_, '_>) -> Result<(), Failure> {
    let members = call.args.from(2);
    let zset = call.space.read::<SortedSet>(call.args.at(1))?;
    call.out.array(members.len());
    for member in members.iter() {
        match zset.and_then(|zset| zset.score(member)) {
            Some(score) => write_place(call.out, geo::place(score)),
            None => call.out.null_array(),
        }
    }
    Ok(())
}
