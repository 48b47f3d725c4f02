//! BITFIELD: integers of any width inside of a string.

use lazuli_keyspace::Class;

use crate::call::Call;
use crate::command::Run;
use crate::failure::Failure;

pub(super) const RUNS: &[(&str, Run)] = &[("bitfield", bitfield), ("bitfield_ro", bitfield)];

#[derive(Clone, Copy)]
struct Field {
    is_signed: bool,
    bits: u32,
    offset: usize,
}

#[derive(Clone, Copy)]
enum Overflow {
    Wrap,
    Saturate,
    Fail,
}

enum Step {
    Get(Field),
    Set(Field, i64, Overflow),
    Add(Field, i64, Overflow),
}

fn field(call: &Call<'_, '_>, index: usize) -> Result<Field, Failure> {
    let bad = Failure::of(
        "ERR Invalid bitfield type. Use something like i16 u8. Note that u64 is not supported but \
         i64 is.",
    );
    let text = String::from_utf8_lossy(call.args.at(index)).into_owned();
    let (sign, bits) = text.split_at_checked(1).ok_or(bad.clone())?;
    let is_signed = match sign {
        "i" => true,
        "u" => false,
        _ => return Err(bad),
    };
    let bits = bits.parse::<u32>().ok().filter(|it| (1..=64).contains(it)).ok_or(bad.clone())?;
    if !is_signed && bits == 64 {
        return Err(bad);
    }
    let text = String::from_utf8_lossy(call.args.at(index + 1)).into_owned();
    let bad = || Failure::of("ERR bit offset is not an integer or out of range");
    let (digits, unit) = match text.strip_prefix('#') {
        Some(digits) => (digits, bits as usize),
        None => (&text[..], 1),
    };
    let offset = digits.parse::<usize>().ok().and_then(|it| it.checked_mul(unit));
    let offset = offset.filter(|it| it >> 3 < call.string_bytes_max()).ok_or_else(bad)?;
    Ok(Field { is_signed, bits, offset })
}

fn parse(call: &Call<'_, '_>) -> Result<Vec<Step>, Failure> {
    let (args, mut at) = (call.args, 2);
    let (mut steps, mut overflow) = (Vec::new(), Overflow::Wrap);
    while at < args.len() {
        let left = args.len() - at;
        if args.is(at, "get") && left >= 3 {
            steps.push(Step::Get(field(call, at + 1)?));
            at += 3;
        } else if args.is(at, "set") && left >= 4 {
            let field = field(call, at + 1)?;
            steps.push(Step::Set(field, call.integer(at + 3)?, overflow));
            at += 4;
        } else if args.is(at, "incrby") && left >= 4 {
            let field = field(call, at + 1)?;
            steps.push(Step::Add(field, call.integer(at + 3)?, overflow));
            at += 4;
        } else if args.is(at, "overflow") && left >= 2 {
            overflow = match args.at(at + 1).to_ascii_lowercase().as_slice() {
                b"wrap" => Overflow::Wrap,
                b"sat" => Overflow::Saturate,
                b"fail" => Overflow::Fail,
                _ => return Err(Failure::of("ERR Invalid OVERFLOW type specified")),
            };
            at += 2;
        } else {
            return Err(Failure::SYNTAX);
        }
    }
    let writes = steps.iter().any(|it| !matches!(it, Step::Get(_)));
    if writes && call.command.name == "bitfield_ro" {
        return Err(Failure::of("ERR BITFIELD_RO only supports the GET subcommand"));
    }
    Ok(steps)
}

impl Field {
    fn read(self, string: &[u8]) -> i128 {
        let mut value: u64 = 0;
        for place in self.offset..self.offset + self.bits as usize {
            let byte = string.get(place >> 3).copied().unwrap_or_default();
            value = value << 1 | u64::from(byte >> (7 - (place & 7)) & 1);
        }
        if self.is_signed && value >> (self.bits - 1) & 1 == 1 {
            return i128::from(value) - (1 << self.bits);
        }
        i128::from(value)
    }

    fn write(self, string: &mut [u8], value: i128) {
        for index in 0..self.bits {
            let place = self.offset + index as usize;
            let mask = 1 << (7 - (place & 7));
            match value >> (self.bits - 1 - index) & 1 {
                0 => string[place >> 3] &= !mask,
                _ => string[place >> 3] |= mask,
            }
        }
    }

    /// A value that fits, or none if it does not and that is a failure.
    fn fit(self, value: i128, overflow: Overflow) -> Option<i128> {
        let span = 1i128 << self.bits;
        let (least, most) = match self.is_signed {
            true => (-(span / 2), span / 2 - 1),
            false => (0, span - 1),
        };
        if (least..=most).contains(&value) {
            return Some(value);
        }
        match overflow {
            Overflow::Fail => None,
            Overflow::Saturate => Some(value.clamp(least, most)),
            Overflow::Wrap => {
                let wrapped = value.rem_euclid(span);
                Some(if wrapped > most { wrapped - span } else { wrapped })
            }
        }
    }

    fn end(self) -> usize {
        (self.offset + self.bits as usize).div_ceil(8)
    }
}

fn bitfield(call: &mut Call<'_, '_>) -> Result<(), Failure> {
    let (key, steps) = (call.args.at(1), parse(call)?);
    let end = |step: &Step| match step {
        Step::Get(_) => 0,
        Step::Set(field, ..) | Step::Add(field, ..) => field.end(),
    };
    let needed = steps.iter().map(end).max().unwrap_or_default();
    if needed > call.string_bytes_max() {
        return Err(Failure::STRING_TOO_LONG);
    }
    let string = call.space.string(key)?.unwrap_or_default();
    let mut answers: Vec<Option<i128>> = Vec::with_capacity(steps.len());
    if needed == 0 {
        let read = |step: &Step| match step {
            Step::Get(field) => Some(field.read(string)),
            Step::Set(..) | Step::Add(..) => None,
        };
        answers.extend(steps.iter().map(read));
    } else {
        call.space.change_string(key, true, |string| {
            if string.len() < needed {
                string.resize(needed, 0);
            }
            answers.extend(steps.iter().map(|step| step.run(string)));
        })?;
        call.space.event(Class::STRING, "setbit", key);
    }
    call.out.array(answers.len());
    for answer in answers {
        match answer {
            Some(value) => call.out.integer(value as i64),
            None => call.out.null(),
        }
    }
    Ok(())
}

impl Step {
    /// What the step answers: the old value, or the new one of an increment; none if it overflows and must not.
    fn run(&self, string: &mut [u8]) -> Option<i128> {
        match *self {
            Self::Get(field) => Some(field.read(string)),
            Self::Set(field, value, overflow) => {
                let old = field.read(string);
                // What is set into an unsigned field counts as unsigned, also where it is negative.
                let value = match field.is_signed {
                    true => i128::from(value),
                    false => i128::from(value as u64),
                };
                field.write(string, field.fit(value, overflow)?);
                Some(old)
            }
            Self::Add(field, by, overflow) => {
                let new = field.fit(field.read(string) + i128::from(by), overflow)?;
                field.write(string, new);
                Some(new)
            }
        }
    }
}
