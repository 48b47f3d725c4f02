//! Places on the earth as scores of sorted sets: 52 bits, of latitude and longitude in turn, so that near places mostly have
//! near scores. A search asks for the cell of its centre and the eight around it.

/// The latitudes that can be stored: those of the square maps of the web.
pub const LATITUDE_MAX: f64 = 85.051_128_78;
pub const LONGITUDE_MAX: f64 = 180.0;
/// The earth's radius in metres.
const EARTH_RADIUS_M: f64 = 6_372_797.560_856;
/// Half the circumference in the projection of web maps, in metres.
const MERCATOR_MAX_M: f64 = 20_037_726.37;
/// Bits of each coordinate.
pub const STEP_MAX: u8 = 26;

/// A place in degrees.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Place {
    pub longitude: f64,
    pub latitude: f64,
}

/// Bounds of a cell or a search, in degrees.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Bounds {
    west: f64,
    south: f64,
    east: f64,
    north: f64,
}

/// A cell of the grid: the highest `step` bits of each coordinate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Cell {
    bits: u64,
    step: u8,
}

/// Spreads 32 bits over the even places of 64.
fn spread(bits: u32) -> u64 {
    let mut x = u64::from(bits);
    x = (x | x << 16) & 0x0000_ffff_0000_ffff;
    x = (x | x << 8) & 0x00ff_00ff_00ff_00ff;
    x = (x | x << 4) & 0x0f0f_0f0f_0f0f_0f0f;
    x = (x | x << 2) & 0x3333_3333_3333_3333;
    (x | x << 1) & 0x5555_5555_5555_5555
}

fn gather(bits: u64) -> u32 {
    let mut x = bits & 0x5555_5555_5555_5555;
    x = (x | x >> 1) & 0x3333_3333_3333_3333;
    x = (x | x >> 2) & 0x0f0f_0f0f_0f0f_0f0f;
    x = (x | x >> 4) & 0x00ff_00ff_00ff_00ff;
    x = (x | x >> 8) & 0x0000_ffff_0000_ffff;
    (x | x >> 16) as u32
}

fn encode(place: Place, latitude_max: f64, step: u8) -> Cell {
    let scale = f64::from(1_u32 << step);
    let latitude = (place.latitude + latitude_max) / (2.0 * latitude_max) * scale;
    let longitude = (place.longitude + LONGITUDE_MAX) / (2.0 * LONGITUDE_MAX) * scale;
    Cell { bits: spread(latitude as u32) | spread(longitude as u32) << 1, step }
}

impl Cell {
    fn bounds(self) -> Bounds {
        let scale = (1_u64 << self.step) as f64;
        let (latitude, longitude) = (gather(self.bits), gather(self.bits >> 1));
        let south = |number: f64| -LATITUDE_MAX + number / scale * (2.0 * LATITUDE_MAX);
        let west = |number: f64| -LONGITUDE_MAX + number / scale * (2.0 * LONGITUDE_MAX);
        Bounds {
            west: west(f64::from(longitude)),
            south: south(f64::from(latitude)),
            east: west(f64::from(longitude) + 1.0),
            north: south(f64::from(latitude) + 1.0),
        }
    }

    /// The cell so many columns east and rows north of this one. It wraps around at the edges of the grid.
    fn beside(self, east: i64, north: i64) -> Self {
        let mask = (1_u64 << self.step) - 1;
        let moved = |number: u32, by: i64| (i64::from(number) + by) as u64 & mask;
        let latitude = moved(gather(self.bits), north);
        let longitude = moved(gather(self.bits >> 1), east);
        Self { bits: spread(latitude as u32) | spread(longitude as u32) << 1, step: self.step }
    }

    /// The scores of the cell: from the first up to, and without, the second.
    fn scores(self) -> (u64, u64) {
        let shift = 52 - u32::from(self.step) * 2;
        (self.bits << shift, (self.bits + 1) << shift)
    }
}

/// Whether a place can be stored.
pub fn is_valid(place: Place) -> bool {
    place.longitude.abs() <= LONGITUDE_MAX && place.latitude.abs() <= LATITUDE_MAX
}

/// The score of a place.
pub fn score(place: Place) -> f64 {
    encode(place, LATITUDE_MAX, STEP_MAX).bits as f64
}

/// The place of a score: the middle of its cell.
pub fn place(score: f64) -> Place {
    let bounds = Cell { bits: score as u64, step: STEP_MAX }.bounds();
    let longitude = ((bounds.west + bounds.east) / 2.0).clamp(-LONGITUDE_MAX, LONGITUDE_MAX);
    let latitude = ((bounds.south + bounds.north) / 2.0).clamp(-LATITUDE_MAX, LATITUDE_MAX);
    Place { longitude, latitude }
}

/// The standard geohash of a score, eleven letters.
pub fn geohash(score: f64) -> [u8; 11] {
    const LETTERS: &[u8; 32] = b"0123456789bcdefghjkmnpqrstuvwxyz";
    let bits = encode(place(score), 90.0, STEP_MAX).bits;
    let mut text = [b'0'; 11];
    // 52 bits are ten letters and a bit: the last one is always the first letter.
    for (number, letter) in text.iter_mut().enumerate().take(10) {
        *letter = LETTERS[(bits >> (52 - (number + 1) * 5)) as usize & 0x1f];
    }
    text
}

/// Metres between two places, on a ball.
pub fn distance_m(a: Place, b: Place) -> f64 {
    let v = ((b.longitude.to_radians() - a.longitude.to_radians()) / 2.0).sin();
    if v == 0.0 {
        return latitude_distance_m(a.latitude, b.latitude);
    }
    let (south, north) = (a.latitude.to_radians(), b.latitude.to_radians());
    let u = ((north - south) / 2.0).sin();
    let sum = u * u + south.cos() * north.cos() * v * v;
    2.0 * EARTH_RADIUS_M * sum.sqrt().asin()
}

fn latitude_distance_m(a: f64, b: f64) -> f64 {
    EARTH_RADIUS_M * (b.to_radians() - a.to_radians()).abs()
}

/// What a search covers, in metres around its centre.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Area {
    Radius(f64),
    Box { width: f64, height: f64 },
}

impl Area {
    /// Metres from the centre to a place, if the place is inside.
    pub fn distance(self, centre: Place, place: Place) -> Option<f64> {
        match self {
            Self::Radius(radius) => {
                let distance = distance_m(centre, place);
                (distance <= radius).then_some(distance)
            }
            Self::Box { width, height } => {
                if latitude_distance_m(place.latitude, centre.latitude) > height / 2.0 {
                    return None;
                }
                let level = Place { longitude: centre.longitude, latitude: place.latitude };
                if distance_m(level, place) > width / 2.0 {
                    return None;
                }
                Some(distance_m(centre, place))
            }
        }
    }

    fn half_sizes(self) -> (f64, f64) {
        match self {
            Self::Radius(radius) => (radius, radius),
            Self::Box { width, height } => (width / 2.0, height / 2.0),
        }
    }

    fn bounds(self, centre: Place) -> Bounds {
        let (width, height) = self.half_sizes();
        let north = (height / EARTH_RADIUS_M).to_degrees();
        let edge =
            if centre.latitude < 0.0 { centre.latitude - north } else { centre.latitude + north };
        let east = (width / EARTH_RADIUS_M / edge.to_radians().cos()).to_degrees();
        Bounds {
            west: centre.longitude - east,
            south: centre.latitude - north,
            east: centre.longitude + east,
            north: centre.latitude + north,
        }
    }

    /// The ranges of scores that hold all places inside, without overlaps: from each first up to, and without, the second.
    pub fn score_ranges(self, centre: Place) -> Vec<(u64, u64)> {
        let bounds = self.bounds(centre);
        let (width, height) = self.half_sizes();
        let reach = match self {
            Self::Radius(radius) => radius,
            Self::Box { .. } => (width * width + height * height).sqrt(),
        };
        let mut step = step_for(reach, centre.latitude);
        let mut cell = encode(centre, LATITUDE_MAX, step);
        // If the neighbours do not reach as far as the search does, cells must be one step larger.
        let north = cell.beside(0, 1).bounds();
        let south = cell.beside(0, -1).bounds();
        let east = cell.beside(1, 0).bounds();
        let west = cell.beside(-1, 0).bounds();
        let is_short = north.north < bounds.north
            || south.south > bounds.south
            || east.east < bounds.east
            || west.west > bounds.west;
        if step > 1 && is_short {
            step -= 1;
            cell = encode(centre, LATITUDE_MAX, step);
        }
        let own = cell.bounds();
        let is_needed = |east: i64, north: i64| {
            step < 2
                || !(own.south < bounds.south && north < 0
                    || own.north > bounds.north && north > 0
                    || own.west < bounds.west && east < 0
                    || own.east > bounds.east && east > 0)
        };
        let mut ranges: Vec<(u64, u64)> = Vec::with_capacity(9);
        for (east, north) in AROUND {
            let range = cell.beside(east, north).scores();
            if is_needed(east, north) && !ranges.contains(&range) {
                ranges.push(range);
            }
        }
        ranges
    }
}

/// The cell itself and its neighbours as columns to the east and rows to the north, in the order in which they are searched.
const AROUND: [(i64, i64); 9] =
    [(0, 0), (0, 1), (0, -1), (1, 0), (-1, 0), (1, 1), (-1, 1), (1, -1), (-1, -1)];

/// How fine the grid may be for nine cells to cover a reach in metres.
fn step_for(reach_m: f64, latitude: f64) -> u8 {
    if reach_m == 0.0 {
        return STEP_MAX;
    }
    let mut reach = reach_m;
    let mut step: i32 = 1;
    while reach < MERCATOR_MAX_M {
        reach *= 2.0;
        step += 1;
    }
    step -= 2;
    // Towards the poles a degree of longitude is shorter.
    if latitude.abs() > 66.0 {
        step -= 1;
        if latitude.abs() > 80.0 {
            step -= 1;
        }
    }
    step.clamp(1, i32::from(STEP_MAX)) as u8
}

#[cfg(test)]
mod tests {
    use super::super::table::tests::random;
    use super::*;

    const PALERMO: Place = Place { longitude: 13.361389, latitude: 38.115556 };
    const CATANIA: Place = Place { longitude: 15.087269, latitude: 37.502669 };

    #[test]
    fn the_examples_of_the_documentation_come_out() {
        assert_eq!(score(PALERMO), 3_479_099_956_230_698.0);
        assert_eq!(score(CATANIA), 3_479_447_370_796_909.0);
        assert_eq!(&geohash(score(PALERMO)), b"sqc8b49rny0");
        let distance = distance_m(place(score(PALERMO)), place(score(CATANIA)));
        assert_eq!(format!("{distance:.4}"), "166274.1516");
        assert_eq!(format!("{:.17}", place(score(PALERMO)).longitude), "13.36138933897018433");
    }

    #[test]
    fn the_ranges_of_a_search_hold_every_place_inside_and_do_not_overlap() {
        let mut random = random(11);
        let mut fraction = || (random() % 1_000_000) as f64 / 1_000_000.0;
        for _ in 0..20_000 {
            let centre = Place {
                longitude: fraction() * 340.0 - 170.0,
                latitude: fraction() * 140.0 - 70.0,
            };
            let size = 10_f64.powf(fraction() * 5.5);
            let area = if fraction() < 0.5 {
                Area::Radius(size)
            } else {
                Area::Box { width: size * 2.0, height: size * fraction() }
            };
            let near = Place {
                longitude: centre.longitude + (fraction() - 0.5) * size / 30_000.0,
                latitude: centre.latitude + (fraction() - 0.5) * size / 50_000.0,
            };
            if !is_valid(near) {
                continue;
            }
            let score = score(near);
            let ranges = area.score_ranges(centre);
            let hits =
                ranges.iter().filter(|(from, to)| (*from..*to).contains(&(score as u64))).count();
            assert!(hits <= 1);
            if area.distance(centre, place(score)).is_some() {
                assert_eq!(hits, 1, "{area:?} at {centre:?} misses {near:?}");
            }
        }
    }
}
