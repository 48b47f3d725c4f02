//! Searches for places in a circle or a box.

use lazuli_keyspace::types::geo::{self, Area, Place};
use lazuli_keyspace::types::{SortedSet, Unlogged};
use lazuli_resp::parse_double;

use super::geo::{place_at, unit, write_distance, write_place};
use super::zset_ranges::store;
use crate::call::Call;
use crate::command::Run;
use crate::failure::Failure;

pub(super) const RUNS: &[(&str, Run)] = &[
    ("georadius", |call| search(call, Kind::Radius { is_member: false, stores: true })),
    ("georadius_ro", |call| search(call, Kind::Radius { is_member: false, stores: false })),
    ("georadiusbymember", |call| search(call, Kind::Radius { is_member: true, stores: true })),
    ("georadiusbymember_ro", |call| search(call, Kind::Radius { is_member: true, stores: false })),
    ("geosearch", |call| search(call, Kind::Search)),
    ("geosearchstore", |call| search(call, Kind::Store)),
];

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// The older commands, whose centre and radius stand at fixed places.
    Radius {
        is_member: bool,
        stores: bool,
    },
    Search,
    Store,
}

impl Kind {
    fn is_search(self) -> bool {
        matches!(self, Self::Search | Self::Store)
    }
}

#[derive(Default)]
struct Query<'a> {
    centre: Option<Place>,
    /// A centre was named, even if its key does not exist, and it was named by a member.
    has_centre: bool,
    is_from_member: bool,
    area: Option<Area>,
    metres: f64,
    has_distance: bool,
    has_hash: bool,
    has_place: bool,
    /// Whether the farthest come first.
    sort: Option<bool>,
    count: usize,
    is_any: bool,
    target: Option<&'a [u8]>,
    stores_distance: bool,
}

/// A place that was found.
struct Hit {
    member: Vec<u8>,
    score: f64,
    distance_m: f64,
}

const NO_MEMBER: Failure = Failure::of("ERR could not decode requested zset member");

/// The place of the member at an argument; none if there is no such key.
fn member_place(
    call: &mut Call<'_, '_>,
    key: usize,
    member: usize,
) -> Result<Option<Place>, Failure> {
    let member = call.args.at(member);
    match call.space.read::<SortedSet>(call.args.at(key))? {
        None => Ok(None),
        Some(zset) => zset.score(member).map(|score| Some(geo::place(score))).ok_or(NO_MEMBER),
    }
}

fn length(text: &[u8], refused: &'static str) -> Result<f64, Failure> {
    parse_double(text).ok_or(Failure::of(refused))
}

/// A radius and its unit, and how many metres the unit has.
fn radius(call: &Call<'_, '_>, at: usize) -> Result<(Area, f64), Failure> {
    let radius = length(call.args.at(at), "ERR need numeric radius")?;
    if radius < 0.0 {
        return Err(Failure::of("ERR radius cannot be negative"));
    }
    let metres = unit(call.args.at(at + 1))?;
    Ok((Area::Radius(radius * metres), metres))
}

fn rectangle(call: &Call<'_, '_>, at: usize) -> Result<(Area, f64), Failure> {
    let width = length(call.args.at(at), "ERR need numeric width")?;
    let height = length(call.args.at(at + 1), "ERR need numeric height")?;
    if width < 0.0 || height < 0.0 {
        return Err(Failure::of("ERR height or width cannot be negative"));
    }
    let metres = unit(call.args.at(at + 2))?;
    Ok((Area::Box { width: width * metres, height: height * metres }, metres))
}

impl<'a> Query<'a> {
    fn parse(call: &mut Call<'a, '_>, kind: Kind, key: usize) -> Result<Self, Failure> {
        let mut found = Self { metres: 1.0, ..Self::default() };
        let exists = call.space.read::<SortedSet>(call.args.at(key))?.is_some();
        let from = match kind {
            Kind::Radius { is_member: false, .. } => {
                found.centre = Some(place_at(call.args, 2)?);
                let (area, metres) = radius(call, 4)?;
                (found.area, found.metres) = (Some(area), metres);
                6
            }
            Kind::Radius { is_member: true, .. } => {
                if exists {
                    found.centre = member_place(call, key, 2)?;
                    let (area, metres) = radius(call, 3)?;
                    (found.area, found.metres) = (Some(area), metres);
                }
                5
            }
            Kind::Search => 2,
            Kind::Store => {
                found.target = Some(call.args.at(1));
                3
            }
        };
        let mut at = from;
        while at < call.args.len() {
            at += 1 + found.option(call, kind, key, at)?;
        }
        found.check(call, kind)?;
        Ok(found)
    }

    /// Reads the option at a place; says how many arguments it has.
    fn option(
        &mut self,
        call: &mut Call<'a, '_>,
        kind: Kind,
        key: usize,
        at: usize,
    ) -> Result<usize, Failure> {
        let more = call.args.len() - 1 - at;
        let may_store = matches!(kind, Kind::Radius { stores: true, .. });
        match call.args.at(at).to_ascii_lowercase().as_slice() {
            b"withdist" => self.has_distance = true,
            b"withhash" => self.has_hash = true,
            b"withcoord" => self.has_place = true,
            b"any" => self.is_any = true,
            b"asc" => self.sort = Some(false),
            b"desc" => self.sort = Some(true),
            b"count" if more >= 1 => {
                let count = usize::try_from(call.integer(at + 1)?).unwrap_or(0);
                if count == 0 {
                    return Err(Failure::of("ERR COUNT must be > 0"));
                }
                self.count = count;
                return Ok(1);
            }
            word @ (b"store" | b"storedist") if may_store && more >= 1 => {
                self.target = Some(call.args.at(at + 1));
                self.stores_distance = word == b"storedist";
                return Ok(1);
            }
            b"storedist" if kind == Kind::Store => self.stores_distance = true,
            _ if kind.is_search() => return self.shape(call, key, at),
            _ => return Err(Failure::SYNTAX),
        }
        Ok(0)
    }

    /// Reads centre or area of the newer commands.
    fn shape(&mut self, call: &mut Call<'a, '_>, key: usize, at: usize) -> Result<usize, Failure> {
        let more = call.args.len() - 1 - at;
        let is_box = matches!(self.area, Some(Area::Box { .. }));
        let is_circle = matches!(self.area, Some(Area::Radius(_)));
        let is_place = self.has_centre && !self.is_from_member;
        match call.args.at(at).to_ascii_lowercase().as_slice() {
            b"frommember" if more >= 1 && !is_place => {
                self.centre = member_place(call, key, at + 1)?;
                self.has_centre = true;
                self.is_from_member = true;
                Ok(1)
            }
            b"fromlonlat" if more >= 2 && !self.is_from_member => {
                self.centre = Some(place_at(call.args, at + 1)?);
                self.has_centre = true;
                Ok(2)
            }
            b"byradius" if more >= 2 && !is_box => {
                let (area, metres) = radius(call, at + 1)?;
                (self.area, self.metres) = (Some(area), metres);
                Ok(2)
            }
            b"bybox" if more >= 3 && !is_circle => {
                let (area, metres) = rectangle(call, at + 1)?;
                (self.area, self.metres) = (Some(area), metres);
                Ok(3)
            }
            _ => Err(Failure::SYNTAX),
        }
    }

    fn check(&self, call: &Call<'_, '_>, kind: Kind) -> Result<(), Failure> {
        let name = call.args.at(0);
        let name = String::from_utf8_lossy(name);
        if self.target.is_some() && (self.has_distance || self.has_hash || self.has_place) {
            let what = match kind {
                Kind::Store => "GEOSEARCHSTORE",
                _ => "STORE option in GEORADIUS",
            };
            return Err(Failure::new(format!(
                "ERR {what} is not compatible with WITHDIST, WITHHASH and WITHCOORD options"
            )));
        }
        if kind.is_search() && !self.has_centre {
            return Err(Failure::new(format!(
                "ERR exactly one of FROMMEMBER or FROMLONLAT can be specified for {name}"
            )));
        }
        if kind.is_search() && self.area.is_none() {
            return Err(Failure::new(format!(
                "ERR exactly one of BYRADIUS and BYBOX can be specified for {name}"
            )));
        }
        if self.is_any && self.count == 0 {
            return Err(Failure::of("ERR the ANY argument requires COUNT argument"));
        }
        Ok(())
    }

    fn find(&self, zset: &SortedSet) -> Vec<Hit> {
        let (Some(centre), Some(area)) = (self.centre, self.area) else { return Vec::new() };
        let most = if self.is_any { self.count } else { usize::MAX };
        let mut hits = Vec::new();
        for (from, to) in area.score_ranges(centre) {
            let first = zset.partition(&|score, _| score < from as f64);
            let behind = zset.partition(&|score, _| score < to as f64);
            zset.walk(first, behind - first, false, &mut |member, score| {
                if hits.len() < most
                    && let Some(distance_m) = area.distance(centre, geo::place(score))
                {
                    hits.push(Hit { member: member.to_vec(), score, distance_m });
                }
            });
        }
        // Without an order the nearest are meant, where not all are wanted.
        let sort = self.sort.or((self.count > 0 && !self.is_any).then_some(false));
        match sort {
            Some(false) => hits.sort_by(|a, b| a.distance_m.total_cmp(&b.distance_m)),
            Some(true) => hits.sort_by(|a, b| b.distance_m.total_cmp(&a.distance_m)),
            None => {}
        }
        if self.count > 0 {
            hits.truncate(self.count);
        }
        hits
    }

    fn write(&self, call: &mut Call<'_, '_>, hits: &[Hit]) {
        let extras = [self.has_distance, self.has_hash, self.has_place];
        let extras = extras.into_iter().filter(|is_wanted| *is_wanted).count();
        call.out.array(hits.len());
        for hit in hits {
            if extras > 0 {
                call.out.array(extras + 1);
            }
            call.out.bulk(&hit.member);
            if self.has_distance {
                write_distance(call.out, hit.distance_m / self.metres);
            }
            if self.has_hash {
                call.out.integer(hit.score as i64);
            }
            if self.has_place {
                write_place(call.out, geo::place(hit.score));
            }
        }
    }
}

fn search(call: &mut Call<'_, '_>, kind: Kind) -> Result<(), Failure> {
    let key = if kind == Kind::Store { 2 } else { 1 };
    let query = Query::parse(call, kind, key)?;
    let zset = call.space.read::<SortedSet>(call.args.at(key))?;
    let hits = zset.map(|zset| query.find(zset)).unwrap_or_default();
    let Some(target) = query.target else {
        query.write(call, &hits);
        return Ok(());
    };
    let mut result = SortedSet::default();
    for hit in &hits {
        let score = if query.stores_distance { hit.distance_m / query.metres } else { hit.score };
        result.set(&hit.member, score, &mut Unlogged);
    }
    let event = if kind == Kind::Store { "geosearchstore" } else { "georadiusstore" };
    store(call, target, result, event);
    Ok(())
}
