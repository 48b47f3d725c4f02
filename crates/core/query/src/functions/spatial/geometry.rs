//! GeoJSON: what the service takes of it, and what can be wrong.

use lazuli_value::{ArrayRef, ValueRef};

use super::super::limits::{PARTS_MAX, POINTS_MAX};
use super::sphere::{Ring, Vector, any_cross};

/// A longitude and a latitude in degrees.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Position {
    pub(super) longitude: f64,
    pub(super) latitude: f64,
}

impl Position {
    fn vector(self) -> Vector {
        Vector::at(self.longitude.to_radians(), self.latitude.to_radians())
    }
}

/// A polygon: an outer ring, and holes.
#[derive(Clone, Debug)]
pub(super) struct Polygon {
    pub(super) rings: Vec<Ring>,
    pub(super) positions: Vec<Vec<Position>>,
}

#[derive(Clone, Debug)]
pub(super) enum Geometry {
    Point(Vector),
    Line(Vec<Vector>),
    Polygons(Vec<Polygon>),
}

type Reason = &'static str;

impl Geometry {
    /// Reads a GeoJSON object, or says why it is none.
    pub(super) fn read(value: ValueRef<'_>) -> Result<Self, Reason> {
        let object = value.as_object().ok_or("The value is not a GeoJSON object.")?;
        let kind = object.get("type").and_then(ValueRef::as_str);
        let kind = kind.ok_or("The GeoJSON object has no type.")?;
        let coordinates = object.get("coordinates").and_then(ValueRef::as_array);
        let coordinates = coordinates.ok_or("The GeoJSON object has no array of coordinates.")?;
        match kind {
            "Point" => Ok(Self::Point(position(coordinates)?.vector())),
            "LineString" => line(coordinates),
            "Polygon" => Ok(Self::Polygons(vec![polygon(coordinates, &mut 0)?])),
            "MultiPolygon" => {
                let mut points = 0;
                let parts = arrays(coordinates, "A MultiPolygon must have arrays of rings.")?;
                let polygons = parts.into_iter().map(|part| polygon(part, &mut points));
                Ok(Self::Polygons(polygons.collect::<Result<_, _>>()?))
            }
            _ => Err("The type must be Point, LineString, Polygon or MultiPolygon."),
        }
    }
}

fn arrays<'a>(array: ArrayRef<'a>, reason: Reason) -> Result<Vec<ArrayRef<'a>>, Reason> {
    let parts: Vec<_> = array.iter().take(PARTS_MAX + 1).collect();
    if parts.len() > PARTS_MAX {
        return Err("The GeoJSON object has too many parts.");
    }
    if parts.is_empty() {
        return Err(reason);
    }
    parts.into_iter().map(|part| part.as_array().ok_or(reason)).collect()
}

fn position(coordinates: ArrayRef<'_>) -> Result<Position, Reason> {
    const SHAPE: Reason = "A position must be an array of two or three numbers.";
    let numbers: Option<Vec<f64>> = coordinates.iter().take(4).map(ValueRef::as_f64).collect();
    let numbers = numbers.ok_or(SHAPE)?;
    let ([longitude, latitude] | [longitude, latitude, _]) = numbers[..] else { return Err(SHAPE) };
    if !(-90.0..=90.0).contains(&latitude) {
        return Err("Latitude values must be between -90 and 90 degrees.");
    }
    if !(-180.0..=180.0).contains(&longitude) {
        return Err("Longitude values must be between -180 and 180 degrees.");
    }
    Ok(Position { longitude, latitude })
}

fn positions(coordinates: ArrayRef<'_>, points: &mut usize) -> Result<Vec<Position>, Reason> {
    let mut all = Vec::new();
    for element in coordinates.iter() {
        *points += 1;
        if *points > POINTS_MAX {
            return Err("The GeoJSON object has more than 4096 points.");
        }
        let inside = element.as_array();
        all.push(position(inside.ok_or("A position must be an array of two or three numbers.")?)?);
    }
    Ok(all)
}

fn line(coordinates: ArrayRef<'_>) -> Result<Geometry, Reason> {
    let all = positions(coordinates, &mut 0)?;
    if all.len() < 2 {
        return Err("A LineString must have at least two positions.");
    }
    Ok(Geometry::Line(all.into_iter().map(Position::vector).collect()))
}

fn polygon(coordinates: ArrayRef<'_>, points: &mut usize) -> Result<Polygon, Reason> {
    let parts = arrays(coordinates, "A Polygon must have arrays of positions.")?;
    let (mut all, mut rings) = (Vec::new(), Vec::new());
    for part in parts {
        let ring = positions(part, points)?;
        if ring.len() < 4 {
            return Err("A ring must have at least four positions.");
        }
        if ring.first() != ring.last() {
            return Err("The first and the last position of a ring must be the same.");
        }
        let places: Vec<Vector> = ring.iter().map(|it| it.vector()).collect();
        rings.push(Ring::new(&places));
        all.push(ring);
    }
    if any_cross(rings.iter().flat_map(|ring| ring.arcs()).copied()) {
        return Err("The edges of a Polygon must not cross.");
    }
    Ok(Polygon { rings, positions: all })
}
