//! Distances along the ellipsoid of WGS 84, and areas.

use super::geometry::{Geometry, Position};
use super::sphere::{Vector, area_on_left};

/// The radius at the equator, in metres.
const EQUATOR_M: f64 = 6_378_137.0;
const FLATTENING: f64 = 1.0 / 298.257_223_563;
const POLE_M: f64 = EQUATOR_M * (1.0 - FLATTENING);

/// The radius of the sphere that has the area of the ellipsoid.
const AREA_RADIUS_M: f64 = 6_371_007.180_918_475;

/// The radius of the sphere by which nearly opposite places are measured.
const MEAN_RADIUS_M: f64 = 6_371_008.771_415_06;

/// Rounds after which the distance of nearly opposite places is given up.
const ROUNDS_MAX: usize = 100;

/// The distance of two places in metres, by Vincenty's inverse formula: exact to less than a millimetre, where the sphere
/// would be wrong by up to half a percent. For nearly opposite places it does not converge, and the sphere is used.
pub(super) fn distance(one: Vector, two: Vector) -> f64 {
    let reduced = |place: Vector| ((1.0 - FLATTENING) * place.latitude().tan()).atan().sin_cos();
    let ((sin_one, cos_one), (sin_two, cos_two)) = (reduced(one), reduced(two));
    let longitude = two.longitude() - one.longitude();
    let mut lambda = longitude;
    for _ in 0..ROUNDS_MAX {
        let (sin_lambda, cos_lambda) = lambda.sin_cos();
        let sin_sigma =
            (cos_two * sin_lambda).hypot(cos_one * sin_two - sin_one * cos_two * cos_lambda);
        if sin_sigma == 0.0 {
            return 0.0;
        }
        let cos_sigma = sin_one * sin_two + cos_one * cos_two * cos_lambda;
        let sigma = sin_sigma.atan2(cos_sigma);
        let sin_alpha = cos_one * cos_two * sin_lambda / sin_sigma;
        let cos_sq_alpha = 1.0 - sin_alpha * sin_alpha;
        // On the equator there is no middle.
        let cos_middle = if cos_sq_alpha > 1e-18 {
            cos_sigma - 2.0 * sin_one * sin_two / cos_sq_alpha
        } else {
            0.0
        };
        let c = FLATTENING / 16.0 * cos_sq_alpha * (4.0 + FLATTENING * (4.0 - 3.0 * cos_sq_alpha));
        let last = lambda;
        let tail = cos_middle + c * cos_sigma * (2.0 * cos_middle * cos_middle - 1.0);
        lambda = longitude + (1.0 - c) * FLATTENING * sin_alpha * (sigma + c * sin_sigma * tail);
        if (lambda - last).abs() < 1e-12 {
            return length(sigma, sin_sigma, cos_sigma, cos_sq_alpha, cos_middle);
        }
    }
    MEAN_RADIUS_M * one.cross(two).dot(one.cross(two)).sqrt().atan2(one.dot(two))
}

/// The last step of the formula.
fn length(sigma: f64, sin_sigma: f64, cos_sigma: f64, cos_sq_alpha: f64, cos_middle: f64) -> f64 {
    let u = cos_sq_alpha * (EQUATOR_M * EQUATOR_M - POLE_M * POLE_M) / (POLE_M * POLE_M);
    let a = 1.0 + u / 16384.0 * (4096.0 + u * (-768.0 + u * (320.0 - 175.0 * u)));
    let b = u / 1024.0 * (256.0 + u * (-128.0 + u * (74.0 - 47.0 * u)));
    let middle = 2.0 * cos_middle * cos_middle - 1.0;
    let fine = b / 6.0
        * cos_middle
        * (4.0 * sin_sigma * sin_sigma - 3.0)
        * (4.0 * cos_middle * cos_middle - 3.0);
    let change = b * sin_sigma * (cos_middle + b / 4.0 * (cos_sigma * middle - fine));
    POLE_M * a * (sigma - change)
}

/// The area of the polygons in square metres; points and lines have none.
pub(super) fn area(geometry: &Geometry) -> f64 {
    let Geometry::Polygons(polygons) = geometry else { return 0.0 };
    let mut sum = 0.0;
    for polygon in polygons {
        let mut rings = polygon.positions.iter();
        sum += rings.next().map_or(0.0, |outer| area_of(outer));
        // A hole is the smaller region, whichever way around it is written.
        let whole = 4.0 * std::f64::consts::PI;
        sum -= rings.map(|hole| area_of(hole)).map(|it| it.min(whole - it)).sum::<f64>();
    }
    sum * AREA_RADIUS_M * AREA_RADIUS_M
}

fn area_of(ring: &[Position]) -> f64 {
    area_on_left(
        ring.iter().map(|it| (it.longitude.to_radians(), same_area(it.latitude.to_radians()))),
    )
}

/// The latitude at which the sphere of the same area has as much below it as the ellipsoid.
fn same_area(latitude: f64) -> f64 {
    let e2: f64 = FLATTENING * (2.0 - FLATTENING);
    let e = e2.sqrt();
    let q = |sin: f64| {
        let slow = sin / (1.0 - e2 * sin * sin);
        (1.0 - e2) * (slow - ((1.0 - e * sin) / (1.0 + e * sin)).ln() / (2.0 * e))
    };
    (q(latitude.sin()) / q(1.0)).clamp(-1.0, 1.0).asin()
}
