//! Whether geometries intersect, whether one is within another, and where they are nearest to each other.

use super::geometry::{Geometry, Polygon};
use super::sphere::{Arc, Vector};

/// A geometry as places and arcs.
struct Outline {
    places: Vec<Vector>,
    arcs: Vec<Arc>,
}

impl Outline {
    fn of(geometry: &Geometry) -> Self {
        match geometry {
            Geometry::Point(place) => Self { places: vec![*place], arcs: Vec::new() },
            Geometry::Line(places) => {
                let arcs = places.windows(2).map(|pair| Arc::new(pair[0], pair[1])).collect();
                Self { places: places.clone(), arcs }
            }
            Geometry::Polygons(polygons) => {
                let rings = polygons.iter().flat_map(|polygon| &polygon.rings);
                let arcs: Vec<Arc> = rings.flat_map(|ring| ring.arcs().iter().copied()).collect();
                Self { places: arcs.iter().map(Arc::from).collect(), arcs }
            }
        }
    }
}

/// Whether a place is in a polygon or on its edge.
fn holds(polygon: &Polygon, place: Vector) -> bool {
    if polygon.rings.iter().any(|ring| ring.has_on_edge(place)) {
        return true;
    }
    let mut rings = polygon.rings.iter();
    let is_in = rings.next().is_some_and(|outer| outer.has_on_left(place));
    is_in && !rings.any(|hole| hole.encloses(place))
}

fn polygons(geometry: &Geometry) -> &[Polygon] {
    match geometry {
        Geometry::Polygons(polygons) => polygons,
        Geometry::Point(_) | Geometry::Line(_) => &[],
    }
}

/// Whether the geometries have a place in common.
pub(super) fn intersect(one: &Geometry, two: &Geometry) -> bool {
    let (outline_one, outline_two) = (Outline::of(one), Outline::of(two));
    let holds_any = |geometry: &Geometry, places: &[Vector]| {
        polygons(geometry).iter().any(|polygon| places.iter().any(|place| holds(polygon, *place)))
    };
    let touches = |arcs: &[Arc], places: &[Vector]| {
        arcs.iter().any(|arc| places.iter().any(|place| arc.passes(*place)))
    };
    let is_same = || match (one, two) {
        (Geometry::Point(one), Geometry::Point(two)) => one.is_at(*two),
        _ => false,
    };
    is_same()
        || outline_one.arcs.iter().any(|arc| outline_two.arcs.iter().any(|it| arc.crosses(it)))
        || touches(&outline_one.arcs, &outline_two.places)
        || touches(&outline_two.arcs, &outline_one.places)
        || holds_any(one, &outline_two.places)
        || holds_any(two, &outline_one.places)
}

/// Whether all of the first geometry is in the second. Only polygons have anything in them.
pub(super) fn is_within(one: &Geometry, two: &Geometry) -> bool {
    let parts: Vec<Geometry> = match one {
        Geometry::Polygons(polygons) => {
            polygons.iter().map(|polygon| Geometry::Polygons(vec![polygon.clone()])).collect()
        }
        other => vec![other.clone()],
    };
    let containers = polygons(two);
    parts.iter().all(|part| containers.iter().any(|polygon| is_in_polygon(part, polygon)))
}

fn is_in_polygon(part: &Geometry, polygon: &Polygon) -> bool {
    let outline = Outline::of(part);
    let edges = || polygon.rings.iter().flat_map(|ring| ring.arcs());
    if !outline.places.iter().all(|place| holds(polygon, *place)) {
        return false;
    }
    if outline.arcs.iter().any(|arc| edges().any(|edge| arc.crosses(edge))) {
        return false;
    }
    // A hole that the part surrounds is not in the polygon.
    let holes = polygon.rings.iter().skip(1);
    let mut inside_out = holes.filter_map(|hole| hole.arcs().first().map(Arc::from));
    !inside_out.any(|place| {
        polygons(part).iter().any(|part| {
            holds(part, place) && !part.rings.iter().any(|ring| ring.has_on_edge(place))
        })
    })
}

/// The two places at which the geometries are nearest to each other, or nothing if they intersect.
pub(super) fn nearest(one: &Geometry, two: &Geometry) -> Option<(Vector, Vector)> {
    if let (Geometry::Point(one), Geometry::Point(two)) = (one, two) {
        return Some((*one, *two));
    }
    if intersect(one, two) {
        return None;
    }
    let (outline_one, outline_two) = (Outline::of(one), Outline::of(two));
    let mut best: Option<(Vector, Vector)> = None;
    let mut consider = |from: Vector, to: Vector| {
        if best.is_none_or(|(one, two)| from.dot(to) > one.dot(two)) {
            best = Some((from, to));
        }
    };
    for place in &outline_one.places {
        for arc in &outline_two.arcs {
            consider(*place, arc.nearest(*place));
        }
    }
    for place in &outline_two.places {
        for arc in &outline_one.arcs {
            consider(*place, arc.nearest(*place));
        }
    }
    best
}
