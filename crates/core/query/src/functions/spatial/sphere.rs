//! Positions as unit vectors, arcs between them, and rings of arcs.

use std::f64::consts::{PI, TAU};
use std::ops::{Add, Mul, Sub};

/// What counts as zero among products of unit vectors: about a hundredth of a millimetre.
const ZERO: f64 = 1e-12;

/// A vector in space, mostly of length one.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Vector {
    x: f64,
    y: f64,
    z: f64,
}

impl Vector {
    /// The place of a longitude and a latitude in radians.
    pub(super) fn at(longitude: f64, latitude: f64) -> Self {
        let (sin, cos) = latitude.sin_cos();
        Self { x: cos * longitude.cos(), y: cos * longitude.sin(), z: sin }
    }

    pub(super) fn longitude(self) -> f64 {
        self.y.atan2(self.x)
    }

    pub(super) fn latitude(self) -> f64 {
        self.z.atan2(self.x.hypot(self.y))
    }

    pub(super) fn dot(self, other: Self) -> f64 {
        self.x * other.x + self.y * other.y + self.z * other.z
    }

    pub(super) fn cross(self, other: Self) -> Self {
        Self {
            x: self.y * other.z - self.z * other.y,
            y: self.z * other.x - self.x * other.z,
            z: self.x * other.y - self.y * other.x,
        }
    }

    /// The vector of length one in the same direction, unless there is no direction.
    fn unit(self) -> Option<Self> {
        let length = self.dot(self).sqrt();
        (length > ZERO).then(|| self * (1.0 / length))
    }

    pub(super) fn is_at(self, other: Self) -> bool {
        let between = self - other;
        between.dot(between) < ZERO * ZERO
    }
}

impl Add for Vector {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self { x: self.x + other.x, y: self.y + other.y, z: self.z + other.z }
    }
}

impl Sub for Vector {
    type Output = Self;

    fn sub(self, other: Self) -> Self {
        self + other * -1.0
    }
}

impl Mul<f64> for Vector {
    type Output = Self;

    fn mul(self, by: f64) -> Self {
        Self { x: self.x * by, y: self.y * by, z: self.z * by }
    }
}

/// The shorter way between two positions.
#[derive(Clone, Copy, Debug)]
pub(super) struct Arc {
    from: Vector,
    to: Vector,
    /// Perpendicular to the plane of the arc; nothing if the arc has no length.
    normal: Option<Vector>,
    /// A box around the arc.
    least: Vector,
    most: Vector,
}

impl Arc {
    pub(super) fn new(from: Vector, to: Vector) -> Self {
        // An arc leaves the box of its ends by no more than it bends away from the line between them.
        let bend = 1.0 - ((1.0 + from.dot(to)).max(0.0) / 2.0).sqrt() + ZERO;
        let least = Vector {
            x: from.x.min(to.x) - bend,
            y: from.y.min(to.y) - bend,
            z: from.z.min(to.z) - bend,
        };
        let most = Vector {
            x: from.x.max(to.x) + bend,
            y: from.y.max(to.y) + bend,
            z: from.z.max(to.z) + bend,
        };
        Self { from, to, normal: from.cross(to).unit(), least, most }
    }

    /// Where the box of the arc begins and ends along an axis.
    fn extent(&self, axis: usize) -> (f64, f64) {
        let along = |it: Vector| [it.x, it.y, it.z][axis];
        (along(self.least), along(self.most))
    }

    pub(super) fn from(&self) -> Vector {
        self.from
    }

    /// Whether the boxes of two arcs have anything in common.
    fn may_meet(&self, other: &Self) -> bool {
        self.least.x <= other.most.x
            && other.least.x <= self.most.x
            && self.least.y <= other.most.y
            && other.least.y <= self.most.y
            && self.least.z <= other.most.z
            && other.least.z <= self.most.z
    }

    /// Whether the arcs cross, not counting that an end of one is on the other.
    pub(super) fn crosses(&self, other: &Self) -> bool {
        if !self.may_meet(other) {
            return false;
        }
        let (Some(one), Some(two)) = (self.normal, other.normal) else { return false };
        let divides = |normal: Vector, arc: &Self| {
            let (from, to) = (normal.dot(arc.from), normal.dot(arc.to));
            from.abs() > ZERO && to.abs() > ZERO && (from > 0.0) != (to > 0.0)
        };
        if !divides(one, other) || !divides(two, self) {
            return false;
        }
        // The planes meet in two opposite points. Both arcs must have the same one.
        let point = one.cross(two);
        (point.dot(self.from + self.to) > 0.0) == (point.dot(other.from + other.to) > 0.0)
    }

    pub(super) fn passes(&self, place: Vector) -> bool {
        self.nearest(place).is_at(place)
    }

    /// The place on the arc that is nearest to another place.
    pub(super) fn nearest(&self, place: Vector) -> Vector {
        if let Some(normal) = self.normal
            && let Some(on_circle) = (place - normal * place.dot(normal)).unit()
        {
            let is_behind_start = self.from.cross(on_circle).dot(normal) >= 0.0;
            let is_before_end = on_circle.cross(self.to).dot(normal) >= 0.0;
            if is_behind_start && is_before_end {
                return on_circle;
            }
        }
        if place.dot(self.from) >= place.dot(self.to) { self.from } else { self.to }
    }
}

/// Whether two of the arcs cross. They are compared only where their boxes overlap along the axis on which they are spread
/// most, so that it takes little more than sorting them.
pub(super) fn any_cross(arcs: impl Iterator<Item = Arc>) -> bool {
    let mut arcs: Vec<Arc> = arcs.collect();
    let spread = |axis: usize| {
        let least = arcs.iter().map(|arc| arc.extent(axis).0).fold(f64::INFINITY, f64::min);
        let most = arcs.iter().map(|arc| arc.extent(axis).1).fold(f64::NEG_INFINITY, f64::max);
        most - least
    };
    let axis = (0..3).max_by(|one, two| spread(*one).total_cmp(&spread(*two))).unwrap_or(0);
    arcs.sort_unstable_by(|one, two| one.extent(axis).0.total_cmp(&two.extent(axis).0));
    arcs.iter().enumerate().any(|(at, one)| {
        let end = one.extent(axis).1;
        let near = arcs[at + 1..].iter().take_while(|two| two.extent(axis).0 <= end);
        near.into_iter().any(|two| one.crosses(two))
    })
}

/// A closed line. It divides the sphere into two regions, of which the one on the left is meant.
#[derive(Clone, Debug)]
pub(super) struct Ring {
    arcs: Vec<Arc>,
    /// Whether the region on the left is the larger one.
    is_inverted: bool,
    /// A cap around the smaller region: its centre, and the least product with it that a place inside has.
    centre: Option<(Vector, f64)>,
}

impl Ring {
    /// A ring of positions, of which the last is the first.
    pub(super) fn new(places: &[Vector]) -> Self {
        let arcs: Vec<Arc> = places.windows(2).map(|pair| Arc::new(pair[0], pair[1])).collect();
        let is_inverted =
            area_on_left(places.iter().map(|it| (it.longitude(), it.latitude()))) > TAU;
        let sum = places.iter().fold(Vector { x: 0.0, y: 0.0, z: 0.0 }, |sum, it| sum + *it);
        let centre = sum.unit().and_then(|centre| {
            let reach = places.iter().map(|it| it.dot(centre)).fold(1.0, f64::min);
            // Beyond a hemisphere the cap says nothing: arcs may leave it.
            (reach > ZERO).then_some((centre, reach - ZERO))
        });
        Self { arcs, is_inverted, centre }
    }

    pub(super) fn arcs(&self) -> &[Arc] {
        &self.arcs
    }

    pub(super) fn has_on_edge(&self, place: Vector) -> bool {
        self.arcs.iter().any(|arc| arc.passes(place))
    }

    /// Whether a place that is not on the edge is in the region on the left.
    pub(super) fn has_on_left(&self, place: Vector) -> bool {
        self.encloses(place) != self.is_inverted
    }

    /// Whether a place that is not on the edge is in the smaller region: seen from there, the ring goes once around.
    pub(super) fn encloses(&self, place: Vector) -> bool {
        if self.centre.is_some_and(|(centre, reach)| place.dot(centre) < reach) {
            return false;
        }
        let axis = if place.z.abs() < 0.9 { (0.0, 0.0, 1.0) } else { (1.0, 0.0, 0.0) };
        let axis = Vector { x: axis.0, y: axis.1, z: axis.2 };
        let Some(east) = axis.cross(place).unit() else { return false };
        let north = place.cross(east);
        let angle = |to: Vector| to.dot(north).atan2(to.dot(east));
        let turned: f64 =
            self.arcs.iter().map(|arc| half_turn(angle(arc.to) - angle(arc.from))).sum();
        let turns = (turned / TAU).round();
        // Around the opposite place the ring goes the other way.
        turns == if self.is_inverted { -1.0 } else { 1.0 }
    }
}

/// An angle as a turn of less than half a circle to either side.
fn half_turn(angle: f64) -> f64 {
    if angle > PI {
        angle - TAU
    } else if angle < -PI {
        angle + TAU
    } else {
        angle
    }
}

/// The area on the left of a ring on the unit sphere. Positions are longitudes and latitudes in radians.
pub(super) fn area_on_left(places: impl Iterator<Item = (f64, f64)>) -> f64 {
    let (mut under, mut around) = (0.0, 0.0);
    let mut last: Option<(f64, f64)> = None;
    for (longitude, latitude) in places {
        if let Some((from, from_latitude)) = last {
            let turn = half_turn(longitude - from);
            let (one, two) = ((from_latitude / 2.0).tan(), (latitude / 2.0).tan());
            // The area between an arc and the equator.
            under += 2.0 * ((turn / 2.0).tan() * (one + two)).atan2(1.0 + one * two);
            around += turn;
        }
        last = Some((longitude, latitude));
    }
    // A ring that goes around a pole has the hemisphere of the pole on its left, without what is under it.
    let area = if (around / TAU).round() == 0.0 { -under } else { TAU - under };
    if area < 0.0 { area + 2.0 * TAU } else { area }
}
