//! Commands that wait for items of lists. Each tries what its sibling without waiting does, and waits if there is nothing.

use lazuli_keyspace::types::list::End;

use super::lists::{ManyPop, end_at, move_item, pop_first};
use crate::call::{Call, Null};
use crate::command::Run;
use crate::failure::Failure;

pub(super) const RUNS: &[(&str, Run)] = &[
    ("blmove", blmove),
    ("blmpop", blmpop),
    ("blpop", |call| pop(call, End::Front)),
    ("brpop", |call| pop(call, End::Back)),
    ("brpoplpush", |call| shift(call, (End::Back, End::Front), 3)),
];

fn pop(call: &mut Call<'_, '_>, end: End) -> Result<(), Failure> {
    let last = call.args.len() - 1;
    let timeout_ms = call.timeout_ms(last)?;
    if !pop_first(call, 1..last, end)? {
        let args = call.args;
        call.block((1..last).map(|at| args.at(at)), timeout_ms, Null::Array);
    }
    Ok(())
}

fn blmove(call: &mut Call<'_, '_>) -> Result<(), Failure> {
    let ends = (end_at(call, 3)?, end_at(call, 4)?);
    shift(call, ends, 5)
}

fn shift(call: &mut Call<'_, '_>, ends: (End, End), timeout: usize) -> Result<(), Failure> {
    let timeout_ms = call.timeout_ms(timeout)?;
    if let Some(item) = move_item(call, ends)? {
        call.out.bulk(&item);
    } else if call.may_block {
        let source = call.args.at(1);
        call.block([source].into_iter(), timeout_ms, Null::Array);
    } else {
        call.out.null();
    }
    Ok(())
}

fn blmpop(call: &mut Call<'_, '_>) -> Result<(), Failure> {
    let timeout_ms = call.timeout_ms(1)?;
    let pop = ManyPop::parse(call, 2)?;
    if !pop.run(call)? {
        let args = call.args;
        call.block(pop.keys.clone().map(|at| args.at(at)), timeout_ms, Null::Array);
    }
    Ok(())
}
