//! HyperLogLogs: strings in the byte format of Redis, so that `GET`, `DUMP` and other servers can read them.
//!
//! 16 bytes of header (magic, form, cached count), then 16,384 registers: dense, 6 bits each, or sparse, as runs.
//! In the sparse form a byte `00xxxxxx` is a run of up to 64 zeros, two bytes `01xxxxxx yyyyyyyy` one of up to 16,384 zeros,
//! and `1vvvvvxx` a run of up to 4 registers with a value of up to 32.

use super::limits::HLL_SPARSE_BYTES;

const MAGIC: &[u8; 4] = b"HYLL";
const HEADER: usize = 16;
const REGISTERS: usize = 1 << 14;
const DENSE_BYTES: usize = HEADER + REGISTERS * 6 / 8;
const DENSE: u8 = 0;
const SPARSE: u8 = 1;
/// The highest value that the sparse form can hold.
const SPARSE_VALUE_MAX: u8 = 32;

/// Why a string cannot be used as a HyperLogLog.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NotOne {
    /// It is an ordinary string.
    Other,
    /// It begins as one, and goes on as none.
    Corrupt,
}

/// An empty one, in the sparse form.
pub fn empty() -> Vec<u8> {
    let mut bytes = MAGIC.to_vec();
    bytes.push(SPARSE);
    bytes.resize(HEADER, 0);
    bytes.extend_from_slice(&zeros(REGISTERS));
    bytes
}

/// Whether a string is a HyperLogLog, by its header.
pub fn check(bytes: &[u8]) -> Result<(), NotOne> {
    if bytes.len() < HEADER || &bytes[..4] != MAGIC || bytes[4] > SPARSE {
        return Err(NotOne::Other);
    }
    if bytes[4] == DENSE && bytes.len() != DENSE_BYTES {
        return Err(NotOne::Other);
    }
    Ok(())
}

pub fn is_dense(bytes: &[u8]) -> bool {
    bytes[4] == DENSE
}

/// A run of zeros in the sparse form.
fn zeros(len: usize) -> Vec<u8> {
    let less = len - 1;
    if len > 64 { vec![0x40 | (less >> 8) as u8, less as u8] } else { vec![less as u8] }
}

fn run(value: u8, len: usize) -> u8 {
    0x80 | (value - 1) << 2 | (len - 1) as u8
}

/// One code of the sparse form.
struct Code {
    value: u8,
    len: usize,
    bytes: usize,
}

fn code(bytes: &[u8], at: usize) -> Option<Code> {
    let byte = *bytes.get(at)?;
    Some(match byte >> 6 {
        0 => Code { value: 0, len: usize::from(byte & 0x3f) + 1, bytes: 1 },
        1 => {
            let low = *bytes.get(at + 1)?;
            let len = (usize::from(byte & 0x3f) << 8 | usize::from(low)) + 1;
            Code { value: 0, len, bytes: 2 }
        }
        _ => Code { value: (byte >> 2 & 0x1f) + 1, len: usize::from(byte & 3) + 1, bytes: 1 },
    })
}

fn is_run(bytes: &[u8], at: usize) -> bool {
    bytes.get(at).is_some_and(|byte| byte & 0x80 != 0)
}

/// Where an element counts: its register and the value for it.
fn register_of(element: &[u8]) -> (usize, u8) {
    let hash = murmur(element, 0xadc8_3b19);
    let index = hash as usize & (REGISTERS - 1);
    let rest = (hash >> 14) | 1 << 50;
    (index, rest.trailing_zeros() as u8 + 1)
}

/// MurmurHash2 with 64 bits.
fn murmur(bytes: &[u8], seed: u64) -> u64 {
    const M: u64 = 0xc6a4_a793_5bd1_e995;
    let mut hash = seed ^ (bytes.len() as u64).wrapping_mul(M);
    let (words, rest) = bytes.as_chunks::<8>();
    for word in words {
        let mut word = u64::from_le_bytes(*word).wrapping_mul(M);
        word ^= word >> 47;
        hash = (hash ^ word.wrapping_mul(M)).wrapping_mul(M);
    }
    if !rest.is_empty() {
        for (place, byte) in rest.iter().enumerate() {
            hash ^= u64::from(*byte) << (8 * place);
        }
        hash = hash.wrapping_mul(M);
    }
    hash ^= hash >> 47;
    hash = hash.wrapping_mul(M);
    hash ^ hash >> 47
}

fn dense_get(registers: &[u8], index: usize) -> u8 {
    let (byte, shift) = (index * 6 / 8, index * 6 % 8);
    let next = registers.get(byte + 1).copied().unwrap_or_default();
    let both = u16::from(registers[byte]) | u16::from(next) << 8;
    (both >> shift) as u8 & 63
}

fn dense_set(registers: &mut [u8], index: usize, value: u8) {
    let (byte, shift) = (index * 6 / 8, index * 6 % 8);
    let next = registers.get(byte + 1).copied().unwrap_or_default();
    let mut both = u16::from(registers[byte]) | u16::from(next) << 8;
    both = both & !(63 << shift) | u16::from(value) << shift;
    registers[byte] = both as u8;
    if let Some(next) = registers.get_mut(byte + 1) {
        *next = (both >> 8) as u8;
    }
}

/// Adds an element; says whether a register changed.
pub fn add(bytes: &mut Vec<u8>, element: &[u8]) -> Result<bool, NotOne> {
    let (index, value) = register_of(element);
    raise(bytes, index, value)
}

/// Sets a register to a value if that is higher than what it has.
fn raise(bytes: &mut Vec<u8>, index: usize, value: u8) -> Result<bool, NotOne> {
    let is_changed = if is_dense(bytes) {
        raise_dense(bytes, index, value)
    } else {
        raise_sparse(bytes, index, value)?
    };
    if is_changed {
        forget_count(bytes);
    }
    Ok(is_changed)
}

fn raise_dense(bytes: &mut [u8], index: usize, value: u8) -> bool {
    let registers = &mut bytes[HEADER..];
    let is_higher = value > dense_get(registers, index);
    if is_higher {
        dense_set(registers, index, value);
    }
    is_higher
}

fn raise_sparse(bytes: &mut Vec<u8>, index: usize, value: u8) -> Result<bool, NotOne> {
    if value > SPARSE_VALUE_MAX {
        densify(bytes)?;
        return Ok(raise_dense(bytes, index, value));
    }
    let (mut at, mut first, mut previous) = (HEADER, 0, None);
    let found = loop {
        let found = code(bytes, at).ok_or(NotOne::Corrupt)?;
        if index < first + found.len {
            break found;
        }
        previous = Some(at);
        at += found.bytes;
        first += found.len;
    };
    if found.value >= value {
        return Ok(false);
    }
    let last = first + found.len - 1;
    let rest = |len: usize| match found.value {
        0 => zeros(len),
        old => vec![run(old, len)],
    };
    let mut codes = Vec::with_capacity(5);
    if index > first {
        codes.extend(rest(index - first));
    }
    codes.push(run(value, 1));
    if index < last {
        codes.extend(rest(last - index));
    }
    if codes.len() > found.bytes && bytes.len() + codes.len() - found.bytes > HLL_SPARSE_BYTES {
        densify(bytes)?;
        return Ok(raise_dense(bytes, index, value));
    }
    bytes.splice(at..at + found.bytes, codes);
    join_runs(bytes, previous.unwrap_or(HEADER));
    Ok(true)
}

/// Joins runs of the same value that lie side by side, among the next five codes.
fn join_runs(bytes: &mut Vec<u8>, from: usize) {
    let mut at = from;
    for _ in 0..5 {
        let Some(left) = code(bytes, at) else { return };
        if is_run(bytes, at)
            && is_run(bytes, at + 1)
            && let Some(right) = code(bytes, at + 1)
            && left.value == right.value
            && left.len + right.len <= 4
        {
            bytes[at + 1] = run(left.value, left.len + right.len);
            bytes.remove(at);
        } else {
            at += left.bytes;
        }
    }
}

/// Writes the registers anew in the dense form.
pub fn densify(bytes: &mut Vec<u8>) -> Result<(), NotOne> {
    if is_dense(bytes) {
        return Ok(());
    }
    let values = registers(bytes)?;
    let mut dense = bytes[..HEADER].to_vec();
    dense[4] = DENSE;
    dense.resize(DENSE_BYTES, 0);
    for (index, value) in values.iter().enumerate().filter(|(_, value)| **value > 0) {
        dense_set(&mut dense[HEADER..], index, *value);
    }
    *bytes = dense;
    Ok(())
}

/// The values of all registers.
pub fn registers(bytes: &[u8]) -> Result<Vec<u8>, NotOne> {
    let mut values = Vec::with_capacity(REGISTERS);
    if is_dense(bytes) {
        values.extend((0..REGISTERS).map(|index| dense_get(&bytes[HEADER..], index)));
        return Ok(values);
    }
    let mut at = HEADER;
    while at < bytes.len() {
        let found = code(bytes, at).ok_or(NotOne::Corrupt)?;
        if values.len() + found.len > REGISTERS {
            return Err(NotOne::Corrupt);
        }
        values.resize(values.len() + found.len, found.value);
        at += found.bytes;
    }
    if values.len() == REGISTERS { Ok(values) } else { Err(NotOne::Corrupt) }
}

/// Raises all registers to at least the given values.
pub fn merge(bytes: &mut Vec<u8>, values: &[u8]) -> Result<(), NotOne> {
    for (index, value) in values.iter().enumerate().filter(|(_, value)| **value > 0) {
        raise(bytes, index, *value)?;
    }
    forget_count(bytes);
    Ok(())
}

/// Notes that the count in the header is out of date.
pub fn forget_count(bytes: &mut [u8]) {
    bytes[15] |= 0x80;
}

/// The count in the header, if no register has changed since it was written.
pub fn cached_count(bytes: &[u8]) -> Option<u64> {
    let count: [u8; 8] = bytes[8..HEADER].try_into().ok()?;
    (count[7] & 0x80 == 0).then(|| u64::from_le_bytes(count))
}

pub fn cache_count(bytes: &mut [u8], count: u64) {
    bytes[8..HEADER].copy_from_slice(&count.to_le_bytes());
}

/// How many different elements the registers stand for, by Ertl's estimator.
pub fn count(values: &[u8]) -> u64 {
    const HIGHEST: usize = 50;
    const ALPHA: f64 = 0.721_347_520_444_481_7;
    let mut histogram = [0_u32; 64];
    values.iter().for_each(|value| histogram[usize::from(*value & 63)] += 1);
    let m = REGISTERS as f64;
    let mut z = m * tau((m - f64::from(histogram[HIGHEST + 1])) / m);
    for value in (1..=HIGHEST).rev() {
        z = (z + f64::from(histogram[value])) * 0.5;
    }
    z += m * sigma(f64::from(histogram[0]) / m);
    (ALPHA * m * m / z).round() as u64
}

fn tau(mut x: f64) -> f64 {
    if x == 0.0 || x == 1.0 {
        return 0.0;
    }
    let (mut y, mut z) = (1.0, 1.0 - x);
    loop {
        x = x.sqrt();
        let before = z;
        y *= 0.5;
        z -= (1.0 - x).powi(2) * y;
        if before == z {
            return z / 3.0;
        }
    }
}

fn sigma(mut x: f64) -> f64 {
    if x == 1.0 {
        return f64::INFINITY;
    }
    let (mut y, mut z) = (1.0, x);
    loop {
        x *= x;
        let before = z;
        z += x * y;
        y += y;
        if before == z {
            return z;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sparse_and_dense_forms_hold_the_same_registers() {
        for step in [1, 7, 1000] {
            let (mut sparse, mut dense) = (empty(), empty());
            densify(&mut dense).unwrap();
            for number in 0..5000_u32 {
                let element = (number * step).to_string();
                let changed = add(&mut sparse, element.as_bytes()).unwrap();
                assert_eq!(add(&mut dense, element.as_bytes()).unwrap(), changed);
                if number % 500 == 0 {
                    assert_eq!(registers(&sparse).unwrap(), registers(&dense).unwrap());
                }
            }
            assert_eq!(registers(&sparse).unwrap(), registers(&dense).unwrap());
            assert!(is_dense(&sparse), "5,000 elements are too many for the sparse form");
        }
    }

    #[test]
    fn counts_are_near_the_truth() {
        let mut bytes = empty();
        assert_eq!(count(&registers(&bytes).unwrap()), 0);
        for number in 0..100_000_u32 {
            add(&mut bytes, &number.to_le_bytes()).unwrap();
            if [10, 100, 1000, 10_000, 99_999].contains(&number) {
                let told = count(&registers(&bytes).unwrap()) as f64;
                let truth = f64::from(number + 1);
                assert!((told - truth).abs() / truth < 0.03, "{told} of {truth}");
            }
        }
    }

    #[test]
    fn a_corrupt_sparse_form_is_told() {
        let mut bytes = empty();
        bytes.truncate(17);
        assert_eq!(registers(&bytes), Err(NotOne::Corrupt));
        assert_eq!(check(b"HYLX"), Err(NotOne::Other));
        let mut long = empty();
        long.push(0);
        assert_eq!(registers(&long), Err(NotOne::Corrupt));
        assert_eq!(raise(&mut bytes, 5, 3), Err(NotOne::Corrupt));
    }
}
