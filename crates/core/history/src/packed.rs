//! A point in 32 bytes. Large numbers keep their leading digits: 27 bits of them for sizes, 11 for latencies.

use lazuli_engine::Size;

use crate::point::{Latency, Point};
use crate::step::Step;

/// The bits of the exponent of a packed number.
const EXPONENT_BITS: u32 = 5;
const MANTISSA_BITS_32: u32 = 32 - EXPONENT_BITS;
const MANTISSA_BITS_16: u32 = 16 - EXPONENT_BITS;
/// Marks an unknown size.
const UNKNOWN: u32 = u32::MAX;

#[derive(Clone, Copy, Debug)]
pub(crate) struct Packed {
    pub(crate) step: u32,
    items: u32,
    bytes: u32,
    reads: u32,
    writes: u32,
    throttled: u32,
    read_mean_us: u16,
    read_p99_us: u16,
    write_mean_us: u16,
    write_p99_us: u16,
}

const _: () = assert!(size_of::<Packed>() == 32);

impl Packed {
    pub(crate) fn new(step: u32, size: Option<Size>, traffic: &Point) -> Self {
        Self {
            step,
            items: size.map_or(UNKNOWN, |size| pack_32(size.items)),
            bytes: size.map_or(UNKNOWN, |size| pack_32(size.bytes)),
            reads: saturated(traffic.reads),
            writes: saturated(traffic.writes),
            throttled: saturated(traffic.throttled),
            read_mean_us: pack_16(traffic.read.mean_us),
            read_p99_us: pack_16(traffic.read.p99_us),
            write_mean_us: pack_16(traffic.write.mean_us),
            write_p99_us: pack_16(traffic.write.p99_us),
        }
    }

    pub(crate) fn size(&self) -> Option<Size> {
        let known = self.items != UNKNOWN;
        known.then(|| Size {
            items: unpack_32(self.items),
            bytes: unpack_32(self.bytes),
            outside: 0,
        })
    }

    /// The point without its size, which may have to be taken from another point.
    pub(crate) fn traffic(&self, step: Step) -> Point {
        let latency = |mean, p99| Latency { mean_us: unpack_16(mean), p99_us: unpack_16(p99) };
        Point {
            at_ms: step.begin_ms(self.step),
            size: Size::default(),
            reads: self.reads.into(),
            writes: self.writes.into(),
            throttled: self.throttled.into(),
            read: latency(self.read_mean_us, self.read_p99_us),
            write: latency(self.write_mean_us, self.write_p99_us),
        }
    }
}

fn saturated(number: u64) -> u32 {
    u32::try_from(number).unwrap_or(u32::MAX)
}

/// A number as mantissa and exponent: the lowest bits are dropped until the rest fits.
fn pack(number: u64, mantissa_bits: u32) -> u32 {
    let bits = u64::BITS - number.leading_zeros();
    let exponent = bits.saturating_sub(mantissa_bits);
    let largest = (1 << EXPONENT_BITS) - 1;
    if exponent > largest {
        return (largest << mantissa_bits) | ((1 << mantissa_bits) - 1);
    }
    (exponent << mantissa_bits) | (number >> exponent) as u32
}

fn unpack(packed: u32, mantissa_bits: u32) -> u64 {
    let mantissa = packed & ((1 << mantissa_bits) - 1);
    u64::from(mantissa) << (packed >> mantissa_bits)
}

fn pack_32(number: u64) -> u32 {
    // The largest value is the marker for an unknown size.
    pack(number, MANTISSA_BITS_32).min(UNKNOWN - 1)
}

fn unpack_32(packed: u32) -> u64 {
    unpack(packed, MANTISSA_BITS_32)
}

fn pack_16(number: u64) -> u16 {
    pack(number, MANTISSA_BITS_16) as u16
}

fn unpack_16(packed: u16) -> u64 {
    unpack(packed.into(), MANTISSA_BITS_16)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_keep_their_leading_digits() {
        for number in [0, 1, 2_047, 2_048, 99_999, 134_217_727, 10 << 30, 7 << 40, 1 << 57] {
            let (coarse, fine) = (unpack_16(pack_16(number)), unpack_32(pack_32(number)));
            if number < 1 << 42 {
                assert!(number - coarse <= number / 1_000, "{number} became {coarse}");
            }
            assert!(number - fine <= number / 100_000_000, "{number} became {fine}");
        }
        assert_eq!(unpack_32(pack_32(123_456_789)), 123_456_789, "small ones are exact");
        assert!(unpack_32(pack_32(u64::MAX)) > 1 << 57);
        assert!(unpack_16(pack_16(u64::MAX)) > 1 << 41);
    }

    #[test]
    fn a_point_reads_back_and_knows_whether_it_has_a_size() {
        let traffic = Point {
            reads: 7,
            writes: 1_000_000,
            throttled: 3,
            read: Latency { mean_us: 250, p99_us: 1_900 },
            write: Latency { mean_us: 1, p99_us: 0 },
            ..Point::default()
        };
        let size = Size { items: 12, bytes: 3_456, outside: 0 };
        let packed = Packed::new(9, Some(size), &traffic);
        assert_eq!(packed.size(), Some(size));
        assert_eq!(packed.traffic(Step::Minute), Point { at_ms: 540_000, ..traffic });
        assert_eq!(Packed::new(9, None, &traffic).size(), None);
    }
}
