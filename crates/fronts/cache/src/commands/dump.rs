//! DUMP and RESTORE: values as bytes that other servers take, and theirs.

use lazuli_keyspace::Class;
use lazuli_keyspace::rdb::{self, BadPayload, longest_row};
use lazuli_resp::parse_integer;

use crate::call::Call;
use crate::command::Run;
use crate::failure::Failure;
use crate::limits::DURABLE_BYTES_MAX;

pub(super) const RUNS: &[(&str, Run)] = &[("dump", dump), ("restore", restore)];

fn dump(call: &mut Call<'_, '_>) -> Result<(), Failure> {
    match call.space.dump(call.args.at(1)) {
        None => call.out.null(),
        Some(payload) => call.out.bulk(&payload),
    }
    Ok(())
}

#[derive(Default)]
struct Options {
    replaces: bool,
    is_absolute: bool,
}

impl Options {
    fn parse(call: &Call<'_, '_>) -> Result<Self, Failure> {
        let mut found = Self::default();
        let mut at = 4;
        while at < call.args.len() {
            let number = call.args.get(at + 1).and_then(parse_integer);
            match call.args.at(at).to_ascii_lowercase().as_slice() {
                b"replace" => found.replaces = true,
                b"absttl" => found.is_absolute = true,
                // How recently and how often the key was used elsewhere says nothing about its use here.
                b"idletime" if at + 1 < call.args.len() => {
                    if number.is_none_or(|number| number < 0) {
                        return Err(Failure::of("ERR Invalid IDLETIME value, must be >= 0"));
                    }
                    at += 1;
                }
                b"freq" if at + 1 < call.args.len() => {
                    if number.is_none_or(|number| !(0..=255).contains(&number)) {
                        return Err(Failure::of("ERR Invalid FREQ value, must be >= 0 and <= 255"));
                    }
                    at += 1;
                }
                _ => return Err(Failure::SYNTAX),
            }
            at += 1;
        }
        Ok(found)
    }
}

pub(super) fn refused(bad: BadPayload) -> Failure {
    match bad {
        BadPayload::Envelope => Failure::of("ERR DUMP payload version or checksum are wrong"),
        BadPayload::Format | BadPayload::Short => Failure::of("ERR Bad data format"),
    }
}

fn restore(call: &mut Call<'_, '_>) -> Result<(), Failure> {
    let options = Options::parse(call)?;
    let key = call.args.at(1);
    if !options.replaces && call.space.exists(key) {
        return Err(Failure::of("BUSYKEY Target key name already exists."));
    }
    let ttl = u64::try_from(call.integer(2)?)
        .map_err(|_| const { Failure::of("ERR Invalid TTL value, must be >= 0") })?;
    let value = rdb::restore(call.args.at(3)).map_err(refused)?;
    if call.server.keyspace.is_persistent() && longest_row(&value) > DURABLE_BYTES_MAX {
        return Err(Failure::of("ERR a durable cache takes values up to 8 MiB"));
    }
    let now_ms = call.now_ms();
    let at_ms = match (ttl, options.is_absolute) {
        (0, _) => None,
        (ttl, true) => Some(ttl),
        (ttl, false) => Some(now_ms.saturating_add(ttl)),
    };
    if at_ms.is_some_and(|at| at <= now_ms) {
        // Its time is over already.
        call.space.delete(key);
    } else {
        call.space.put(key, value, at_ms);
        call.space.event(Class::GENERIC, "restore", key);
    }
    call.out.ok();
    Ok(())
}
