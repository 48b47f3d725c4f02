//! Which arguments of a command are keys, by its key specs, and for the few commands that these do not describe in full.

use lazuli_resp::{Args, parse_integer};

use crate::command::{Begin, Command, Find, KeySpec};

/// Calls `visit` with the place of every argument that is a key, and with the spec that found it. False if the arguments do
/// not fit the specs, so that the keys are unknown.
pub(crate) fn visit(
    command: &'static Command,
    args: Args<'_>,
    mut visit: impl FnMut(usize, &'static KeySpec),
) -> bool {
    let mut is_known = true;
    for spec in &command.keys {
        is_known &= visit_spec(spec, args, &mut visit);
    }
    is_known
}

fn visit_spec(
    spec: &'static KeySpec,
    args: Args<'_>,
    visit: &mut impl FnMut(usize, &'static KeySpec),
) -> bool {
    let first = match spec.begin {
        Begin::Unknown => return true,
        Begin::Index(index) => index,
        Begin::Keyword(word, from) => match keyword(args, word, from) {
            Some(at) => at + 1,
            // The keyword is optional.
            None => return true,
        },
    };
    match spec.find {
        Find::Unknown => true,
        Find::Range { last, step, limit } => {
            let end = match last {
                last if last >= 0 => first + last as usize,
                last => {
                    let rest = args.len().saturating_sub(first);
                    let end = if limit > 1 { first + rest / limit } else { args.len() };
                    match end.checked_sub(last.unsigned_abs() as usize) {
                        Some(end) => end,
                        None => return false,
                    }
                }
            };
            if first >= args.len() || end >= args.len() {
                return first >= args.len() && matches!(spec.begin, Begin::Keyword(..));
            }
            (first..=end).step_by(step.max(1)).for_each(|at| visit(at, spec));
            true
        }
        Find::Count { count, first: offset, step } => {
            let at = first + count;
            let number =
                args.get(at).and_then(parse_integer).and_then(|it| usize::try_from(it).ok());
            let Some(number) = number else { return false };
            let begin = first + offset;
            if number > args.len() || begin + (number.max(1) - 1) * step >= args.len() {
                return number == 0;
            }
            (0..number).for_each(|it| visit(begin + it * step, spec));
            true
        }
    }
}

fn keyword(args: Args<'_>, word: &str, from: i32) -> Option<usize> {
    match usize::try_from(from) {
        Ok(from) => (from..args.len()).find(|at| args.is(*at, word)),
        Err(_) => {
            let from = args.len().checked_sub(from.unsigned_abs() as usize)?;
            (0..=from).rev().find(|at| args.is(*at, word))
        }
    }
}
