//! Functions on GeoJSON: points, lines and polygons on the surface of the Earth (WGS 84), in metres.
//!
//! - `geometry.rs` reads GeoJSON and says what is wrong with it.
//! - `sphere.rs` decides what is inside of what: edges are arcs of great circles.
//! - `relation.rs` compares whole geometries by it.
//! - `ellipsoid.rs` measures: distances along the ellipsoid, areas on the sphere of the same area.

mod ellipsoid;
mod geometry;
mod relation;
mod sphere;

use lazuli_value::{Object, Value};

use geometry::Geometry;

use super::{Call, Function};

pub(super) const FUNCTIONS: &[Function] = &[
    Function::new("ST_AREA", 1, 1, area),
    Function::new("ST_DISTANCE", 2, 2, distance),
    Function::new("ST_INTERSECTS", 2, 2, |call| {
        Some(relation::intersect(&geometry(call, 0)?, &geometry(call, 1)?).into())
    }),
    Function::new("ST_ISVALID", 1, 1, |call| Some(Geometry::read(call.value(0)?).is_ok().into())),
    Function::new("ST_ISVALIDDETAILED", 1, 1, is_valid_detailed),
    Function::new("ST_WITHIN", 2, 2, |call| {
        Some(relation::is_within(&geometry(call, 0)?, &geometry(call, 1)?).into())
    }),
];

fn geometry(call: &Call<'_>, place: usize) -> Option<Geometry> {
    Geometry::read(call.value(place)?).ok()
}

fn area(call: &Call<'_>) -> Option<Value> {
    Value::number(ellipsoid::area(&geometry(call, 0)?))
}

fn distance(call: &Call<'_>) -> Option<Value> {
    let (one, two) = (geometry(call, 0)?, geometry(call, 1)?);
    Value::number(match relation::nearest(&one, &two) {
        Some((one, two)) => ellipsoid::distance(one, two),
        None => 0.0,
    })
}

fn is_valid_detailed(call: &Call<'_>) -> Option<Value> {
    let read = Geometry::read(call.value(0)?);
    let mut answer = Object::new();
    answer.insert("valid", Value::Bool(read.is_ok()));
    if let Err(reason) = read {
        answer.insert("reason", reason.into());
    }
    Some(Value::Object(answer))
}

#[cfg(test)]
mod tests;
