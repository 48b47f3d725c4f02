//! Strings as arrays of bits. The first bit is the highest of the first byte.

use lazuli_keyspace::{Class, Expiry};

use crate::call::Call;
use crate::command::Run;
use crate::commands::strings::clamp;
use crate::failure::Failure;

pub(super) const RUNS: &[(&str, Run)] = &[
    ("bitcount", bitcount),
    ("bitop", bitop),
    ("bitpos", bitpos),
    ("getbit", getbit),
    ("setbit", setbit),
];

/// The place of a bit.
pub(super) fn offset(call: &Call<'_, '_>, index: usize) -> Result<usize, Failure> {
    let bad = || Failure::of("ERR bit offset is not an integer or out of range");
    let offset = call.integer(index).map_err(|_| bad())?;
    let offset = usize::try_from(offset).ok();
    offset.filter(|it| it >> 3 < call.string_bytes_max()).ok_or_else(bad)
}

fn getbit(call: &mut Call<'_, '_>) -> Result<(), Failure> {
    let offset = offset(call, 2)?;
    let string = call.space.string(call.args.at(1))?.unwrap_or_default();
    call.out.integer(i64::from(bit(string, offset)));
    Ok(())
}

fn bit(string: &[u8], offset: usize) -> bool {
    string.get(offset >> 3).is_some_and(|byte| byte >> (7 - (offset & 7)) & 1 == 1)
}

fn setbit(call: &mut Call<'_, '_>) -> Result<(), Failure> {
    let (key, offset) = (call.args.at(1), offset(call, 2)?);
    let is_on = match call.args.at(3) {
        b"0" => false,
        b"1" => true,
        _ => return Err(Failure::of("ERR bit is not an integer or out of range")),
    };
    let before = call.space.change_string(key, true, |string| {
        let before = bit(string, offset);
        if string.len() <= offset >> 3 {
            string.resize((offset >> 3) + 1, 0);
        }
        let mask = 1 << (7 - (offset & 7));
        match is_on {
            true => string[offset >> 3] |= mask,
            false => string[offset >> 3] &= !mask,
        }
        before
    })?;
    call.space.event(Class::STRING, "setbit", key);
    call.out.integer(i64::from(before.unwrap_or_default()));
    Ok(())
}

/// Whether places are counted in bits; the default is bytes.
fn is_in_bits(call: &Call<'_, '_>, index: usize) -> Result<bool, Failure> {
    match call.args.get(index) {
        None => Ok(false),
        Some(_) if call.args.is(index, "bit") => Ok(true),
        Some(_) if call.args.is(index, "byte") => Ok(false),
        Some(_) => Err(Failure::SYNTAX),
    }
}

fn bitcount(call: &mut Call<'_, '_>) -> Result<(), Failure> {
    // Without the key, nothing more is asked.
    if call.space.string(call.args.at(1))?.is_none() {
        call.out.integer(0);
        return Ok(());
    }
    let count = call.args.len();
    if count == 3 || count > 5 {
        return Err(Failure::SYNTAX);
    }
    let bounds = match count {
        2 => None,
        _ => Some((call.integer(2)?, call.integer(3)?, is_in_bits(call, 4)?)),
    };
    let string = call.space.string(call.args.at(1))?.unwrap_or_default();
    let ones = |bytes: &[u8]| bytes.iter().map(|it| u64::from(it.count_ones())).sum::<u64>();
    let total = match bounds {
        None => ones(string),
        Some((start, end, false)) => {
            clamp(start, end, string.len()).map_or(0, |(start, end)| ones(&string[start..=end]))
        }
        Some((start, end, true)) => {
            let inside = clamp(start, end, string.len() * 8);
            inside.map_or(0, |(start, end)| {
                let (first, last) = (start >> 3, end >> 3);
                let head = (start - (first << 3)) as u32;
                let tail = (7 - (end & 7)) as u32;
                let before = u64::from((string[first] >> 1 >> (7 - head)).count_ones());
                let after = string[last] & ((1u16 << tail) - 1) as u8;
                ones(&string[first..=last]) - before - u64::from(after.count_ones())
            })
        }
    };
    call.out.integer(total as i64);
    Ok(())
}

fn bitpos(call: &mut Call<'_, '_>) -> Result<(), Failure> {
    let wanted = match call.args.at(2) {
        b"0" => false,
        b"1" => true,
        _ => {
            call.integer(2)?;
            return Err(Failure::of("ERR The bit argument must be 1 or 0."));
        }
    };
    // Without the key, nothing more is asked.
    if call.space.string(call.args.at(1))?.is_none() {
        call.out.integer(if wanted { -1 } else { 0 });
        return Ok(());
    }
    if call.args.len() > 6 {
        return Err(Failure::SYNTAX);
    }
    let start = if call.args.len() > 3 { call.integer(3)? } else { 0 };
    let end = if call.args.len() > 4 { Some(call.integer(4)?) } else { None };
    let in_bits = is_in_bits(call, 5)?;
    let Some(string) = call.space.string(call.args.at(1))? else {
        call.out.integer(if wanted { -1 } else { 0 });
        return Ok(());
    };
    let length = if in_bits { string.len() * 8 } else { string.len() };
    let inside = clamp(start, end.unwrap_or(-1), length);
    let bits = inside.map(|(start, end)| match in_bits {
        true => (start, end),
        false => (start * 8, end * 8 + 7),
    });
    let found = bits.and_then(|(first, last)| position(string, wanted, first, last));
    let answer = match (found, bits) {
        (Some(at), _) => at as i64,
        // Without an end the string is as if zeros followed it.
        (None, Some(_)) if !wanted && end.is_none() => string.len() as i64 * 8,
        (None, _) => -1,
    };
    call.out.integer(answer);
    Ok(())
}

fn position(string: &[u8], wanted: bool, first: usize, last: usize) -> Option<usize> {
    let skipped = if wanted { 0x00 } else { 0xff };
    let mut at = first;
    while at <= last {
        if at & 7 == 0 && at + 7 <= last && string[at >> 3] == skipped {
            at += 8;
        } else if bit(string, at) == wanted {
            return Some(at);
        } else {
            at += 1;
        }
    }
    None
}

fn bitop(call: &mut Call<'_, '_>) -> Result<(), Failure> {
    let (args, target) = (call.args, call.args.at(2));
    let operation = args.at(1).to_ascii_lowercase();
    let join: fn(u8, u8) -> u8 = match operation.as_slice() {
        b"and" => |a, b| a & b,
        b"or" => |a, b| a | b,
        b"xor" => |a, b| a ^ b,
        b"not" => |a, _| a,
        _ => return Err(Failure::SYNTAX),
    };
    if operation == b"not" && args.len() != 4 {
        return Err(Failure::of("ERR BITOP NOT must be called with a single source key."));
    }
    let mut result: Option<Vec<u8>> = None;
    for key in args.from(3).iter() {
        let string = call.space.string(key)?.unwrap_or_default();
        let Some(so_far) = &mut result else {
            result = Some(string.to_vec());
            continue;
        };
        if so_far.len() < string.len() {
            so_far.resize(string.len(), 0);
        }
        for (index, byte) in so_far.iter_mut().enumerate() {
            *byte = join(*byte, string.get(index).copied().unwrap_or_default());
        }
    }
    let mut result = result.unwrap_or_default();
    if operation == b"not" {
        result.iter_mut().for_each(|byte| *byte = !*byte);
    }
    if result.is_empty() {
        call.space.delete(target);
    } else {
        call.space.set(target, &result, Expiry::Never);
        call.space.event(Class::STRING, "set", target);
    }
    call.out.count(result.len());
    Ok(())
}
