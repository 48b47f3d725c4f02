//! How far a text index has come, for each part of its routes. Kept in the commits of the text index, so that it goes on from
//! there after a crash, also where partitions were split, merged or moved meanwhile.

use bytes::Bytes;
use lazuli_engine::{KeyRange, Lsn, Space};

/// Where a part of the routes stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Position {
    /// The documents are being read one after another.
    Filling {
        /// The route behind which to go on; empty at the beginning.
        after: Bytes,
        /// From which number on the changes are needed afterwards: what was written since the reading began.
        from: Lsn,
    },
    /// All changes up to this place in their order are in.
    At(Bytes),
}

impl Position {
    /// The last number up to which all changes are in. A place among the changes of one number is behind the one before.
    fn lsn(&self) -> Lsn {
        match self {
            Self::Filling { from, .. } => *from,
            Self::At(place) => {
                let lsn = place.first_chunk::<8>().map_or(0, |bytes| u64::from_be_bytes(*bytes));
                match *place >= behind(Lsn(lsn)) {
                    true => Lsn(lsn),
                    false => Lsn(lsn.saturating_sub(1)),
                }
            }
        }
    }

    /// A position that misses nothing that either of the two lacks.
    fn lower(self, other: Self) -> Self {
        match (self, other) {
            (Self::At(one), Self::At(two)) => Self::At(one.min(two)),
            (Self::Filling { after: one, from }, Self::Filling { after: two, from: other }) => {
                Self::Filling { after: one.min(two), from: from.min(other) }
            }
            (Self::Filling { after, from }, at) | (at, Self::Filling { after, from }) => {
                Self::Filling { after, from: from.min(at.lsn()) }
            }
        }
    }
}

/// The place behind all changes of a number.
pub(crate) fn behind(lsn: Lsn) -> Bytes {
    [&lsn.0.to_be_bytes()[..], &[0xff]].concat().into()
}

/// The place of the change of one document, as the change records are ordered.
fn place_of(lsn: Lsn, route: &[u8]) -> Vec<u8> {
    [&lsn.0.to_be_bytes()[..], &[Space::ITEMS.0], route].concat()
}

/// The positions of all parts, in the order of routes. Parts that are not named have not begun.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Positions(Vec<(KeyRange, Position)>);

impl Positions {
    /// What holds for all of these routes; none if some part of them has not begun.
    pub(crate) fn lowest(&self, routes: &KeyRange) -> Option<Position> {
        let (mut lowest, mut from) = (None::<Position>, routes.start.clone());
        for (part, position) in self.0.iter().filter(|(part, _)| part.overlaps(routes)) {
            if part.start > from {
                return None;
            }
            lowest = Some(match lowest {
                Some(other) => other.lower(position.clone()),
                None => position.clone(),
            });
            match &part.end {
                Some(end) => from = end.clone(),
                None => return lowest,
            }
        }
        lowest.filter(|_| routes.end.as_ref().is_some_and(|end| from >= *end))
    }

    /// Up to which number the changes of all parts of these routes are in that have begun; none if none has.
    pub(crate) fn begun(&self, routes: &KeyRange) -> Option<Lsn> {
        let begun = self.0.iter().filter(|(part, _)| part.overlaps(routes));
        begun.map(|(_, position)| position.lsn()).min()
    }

    /// Says where these routes stand.
    pub(crate) fn set(&mut self, routes: &KeyRange, position: Position) {
        let mut parts = Vec::with_capacity(self.0.len() + 2);
        for (part, old) in self.0.drain(..) {
            let before = KeyRange::new(part.start.clone(), Some(routes.start.clone()));
            let before = part.intersect(&before);
            if !before.is_empty() {
                parts.push((before, old.clone()));
            }
            if let Some(end) = &routes.end {
                let after = part.intersect(&KeyRange::new(end.clone(), None));
                if !after.is_empty() {
                    parts.push((after, old));
                }
            }
        }
        parts.push((routes.clone(), position));
        parts.sort_by(|(one, _), (two, _)| one.start.cmp(&two.start));
        self.0 = parts;
    }

    /// Whether the write of this number to the document of this route is in.
    pub fn has(&self, route: &[u8], lsn: Lsn) -> bool {
        let part = self.0.iter().find(|(part, _)| part.contains(route));
        part.is_some_and(|(_, position)| match position {
            Position::Filling { .. } => false,
            Position::At(place) => place[..] >= place_of(lsn, route)[..],
        })
    }

    /// Whether everything up to this number is in, for all of these routes.
    pub fn has_all(&self, routes: &KeyRange, lsn: Lsn) -> bool {
        match self.lowest(routes) {
            Some(Position::At(place)) => lsn == Lsn::ZERO || place >= behind(lsn),
            _ => false,
        }
    }

    /// Whether all parts have read their documents and follow the changes.
    pub fn is_filled(&self) -> bool {
        let is_at = |(_, position): &(KeyRange, Position)| matches!(position, Position::At(_));
        !self.0.is_empty() && self.0.iter().all(is_at)
    }

    /// Whether no change up to where others stand is still needed. A part that has not begun needs none: it reads the
    /// documents first.
    pub(crate) fn reaches(&self, others: &Self) -> bool {
        self.0.iter().all(|(own, position)| {
            let place = match position {
                Position::At(place) => place.clone(),
                Position::Filling { from, .. } => behind(*from),
            };
            others.0.iter().all(|(theirs, other)| match other {
                Position::At(further) => place >= *further || !own.overlaps(theirs),
                Position::Filling { .. } => true,
            })
        })
    }

    /// Whether all routes have read their documents and follow the changes.
    pub(crate) fn is_at_everywhere(&self) -> bool {
        matches!(self.lowest(&KeyRange::all()), Some(Position::At(_)))
    }

    /// These, and where others follow the changes further on, those.
    pub(crate) fn raised_by(&self, others: &Self) -> Self {
        let mut raised = self.clone();
        for (theirs, other) in &others.0 {
            let Position::At(further) = other else { continue };
            for (own, position) in &self.0 {
                let both = own.intersect(theirs);
                let is_behind = matches!(position, Position::At(place) if place < further);
                if is_behind && !both.is_empty() {
                    raised.set(&both, other.clone());
                }
            }
        }
        raised
    }

    /// As text, for the commit of a text index: `start-end:place` for each part, in hexadecimal digits.
    pub fn to_text(&self) -> String {
        let mut text = String::new();
        for (routes, position) in &self.0 {
            let end = routes.end.as_deref().map_or("*".to_owned(), hex);
            let place = match position {
                Position::At(place) => format!("@{}", hex(place)),
                Position::Filling { after, from } => format!("+{}.{:x}", hex(after), from.0),
            };
            text.push_str(&format!("{}-{end}:{place};", hex(&routes.start)));
        }
        text
    }

    /// What [`Positions::to_text`] has written; none if it is something else.
    pub fn from_text(text: &str) -> Option<Self> {
        let mut parts = Vec::new();
        for part in text.split_terminator(';') {
            let (routes, place) = part.split_once(':')?;
            let (start, end) = routes.split_once('-')?;
            let end = if end == "*" { None } else { Some(unhex(end)?) };
            let routes = KeyRange::new(unhex(start)?, end);
            let position = match place.split_at_checked(1)? {
                ("@", place) => Position::At(unhex(place)?),
                ("+", rest) => {
                    let (after, from) = rest.split_once('.')?;
                    let from = Lsn(u64::from_str_radix(from, 16).ok()?);
                    Position::Filling { after: unhex(after)?, from }
                }
                _ => return None,
            };
            parts.push((routes, position));
        }
        Some(Self(parts))
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn unhex(text: &str) -> Option<Bytes> {
    if !text.len().is_multiple_of(2) || !text.is_ascii() {
        return None;
    }
    let digits = |at: usize| u8::from_str_radix(text.get(at..at + 2)?, 16).ok();
    (0..text.len()).step_by(2).map(digits).collect::<Option<Vec<u8>>>().map(Bytes::from)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn range(start: &str, end: &str) -> KeyRange {
        let end = (!end.is_empty()).then(|| Bytes::copy_from_slice(end.as_bytes()));
        KeyRange::new(Bytes::copy_from_slice(start.as_bytes()), end)
    }

    fn at(lsn: u64) -> Position {
        Position::At(behind(Lsn(lsn)))
    }

    #[test]
    fn a_merged_part_stands_where_the_slower_one_does() {
        let mut positions = Positions::default();
        positions.set(&range("", "m"), at(10));
        assert_eq!(positions.lowest(&range("", "")), None, "a part has not begun");
        positions.set(&range("m", ""), at(20));
        assert_eq!(positions.lowest(&range("", "")), Some(at(10)));
        assert_eq!(positions.lowest(&range("m", "")), Some(at(20)));
        positions.set(&range("p", "q"), at(30));
        assert_eq!(positions.lowest(&range("p", "q")), Some(at(30)));
        assert_eq!(positions.lowest(&range("m", "")), Some(at(20)));
        assert!(positions.has_all(&range("", "m"), Lsn(10)));
        assert!(!positions.has_all(&range("", "m"), Lsn(11)));
    }

    #[test]
    fn a_part_that_is_filled_needs_the_changes_since_it_began() {
        let mut positions = Positions::default();
        positions.set(&range("", "m"), Position::Filling { after: Bytes::from("c"), from: Lsn(5) });
        positions.set(&range("m", ""), at(3));
        let expected = Position::Filling { after: Bytes::from("c"), from: Lsn(3) };
        assert_eq!(positions.lowest(&range("", "")), Some(expected));
        assert!(!positions.is_filled() && !positions.has(b"a", Lsn(1)));
    }

    #[test]
    fn a_place_among_the_changes_of_a_number_leaves_that_number_to_be_read() {
        let among = Position::At(place_of(Lsn(9), b"k").into());
        let filling = Position::Filling { after: Bytes::new(), from: Lsn(12) };
        let expected = Position::Filling { after: Bytes::new(), from: Lsn(8) };
        assert_eq!(filling.lower(among), expected);
        let mut positions = Positions::default();
        assert_eq!(positions.begun(&range("", "")), None);
        positions.set(&range("", "m"), at(7));
        assert_eq!(positions.begun(&range("", "")), Some(Lsn(7)));
        assert_eq!(positions.begun(&range("m", "")), None);
    }

    #[test]
    fn positions_that_are_behind_anywhere_do_not_reach_others() {
        let mut positions = Positions::default();
        positions.set(&range("", "m"), at(5));
        positions.set(&range("m", ""), at(3));
        let mut others = positions.clone();
        assert!(positions.reaches(&others));
        others.set(&range("x", ""), at(4));
        assert!(!positions.reaches(&others) && others.reaches(&positions));
        assert!(Positions::default().reaches(&positions));
        let mut filling = Positions::default();
        filling.set(&range("", "c"), Position::Filling { after: Bytes::new(), from: Lsn(5) });
        assert!(filling.reaches(&positions));
        filling.set(&range("c", "f"), Position::Filling { after: Bytes::new(), from: Lsn(4) });
        assert!(!filling.reaches(&positions));
        assert!(positions.is_at_everywhere() && !Positions::default().is_at_everywhere());
        others.set(&range("", "m"), at(2));
        let raised = positions.raised_by(&others);
        assert!(raised.reaches(&positions) && raised.reaches(&others));
        assert_eq!(raised.lowest(&range("", "m")), Some(at(5)));
        assert_eq!(raised.lowest(&range("m", "x")), Some(at(3)));
    }

    #[test]
    fn positions_survive_their_text() {
        let mut positions = Positions::default();
        positions.set(&range("", "m"), Position::Filling { after: Bytes::new(), from: Lsn(5) });
        positions.set(&range("m", ""), at(3));
        assert_eq!(Positions::from_text(&positions.to_text()), Some(positions));
        assert_eq!(Positions::from_text(""), Some(Positions::default()));
        for text in ["x", "-*:", "-*:@0", "-*:+.", "0-*:@00", "-*:@é0"] {
            assert_eq!(Positions::from_text(text), None, "{text}");
        }
    }

    #[test]
    fn a_write_is_in_as_soon_as_its_own_record_is_passed() {
        let mut positions = Positions::default();
        positions.set(&range("", ""), Position::At(place_of(Lsn(7), b"k").into()));
        assert!(positions.has(b"k", Lsn(7)) && positions.has(b"a", Lsn(7)));
        assert!(!positions.has(b"z", Lsn(7)) && positions.has(b"z", Lsn(6)));
    }
}
