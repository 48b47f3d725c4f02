//! LPOS: where items are in a list.

use lazuli_keyspace::types::List;

use crate::call::Call;
use crate::command::Run;
use crate::failure::Failure;
use crate::range::positive;

pub(super) const RUNS: &[(&str, Run)] = &[("lpos", lpos)];

/// What LPOS is told.
struct Position {
    rank: i64,
    /// None asks for one, as a number and not as an array.
    count: Option<usize>,
    most: usize,
}

impl Position {
    fn parse(call: &Call<'_, '_>) -> Result<Self, Failure> {
        let mut found = Self { rank: 1, count: None, most: 0 };
        let mut at = 3;
        while at < call.args.len() {
            if at + 1 == call.args.len() {
                return Err(Failure::SYNTAX);
            }
            let number = call.args.at(at + 1);
            match call.args.at(at).to_ascii_lowercase().as_slice() {
                b"rank" => {
                    found.rank = call.integer(at + 1)?;
                    if found.rank == i64::MIN {
                        return Err(Failure::of(
                            "ERR value is out of range, value must between \
                             -9223372036854775807 and 9223372036854775807",
                        ));
                    }
                    if found.rank == 0 {
                        return Err(Failure::of(
                            "ERR RANK can't be zero: use 1 to start from the first match, 2 from \
                             the second ... or use negative to start from the end of the list",
                        ));
                    }
                }
                b"count" => {
                    let refused = Failure::of("ERR COUNT can't be negative");
                    found.count = Some(positive(number, refused)?);
                }
                b"maxlen" => {
                    found.most = positive(number, Failure::of("ERR MAXLEN can't be negative"))?;
                }
                _ => return Err(Failure::SYNTAX),
            }
            at += 2;
        }
        Ok(found)
    }

    fn find(&self, list: &List, item: &[u8]) -> Vec<usize> {
        let most = if self.most == 0 { usize::MAX } else { self.most };
        let wanted = match self.count {
            None => 1,
            Some(0) => usize::MAX,
            Some(count) => count,
        };
        let skipped = (self.rank.unsigned_abs() - 1) as usize;
        let last = list.len().saturating_sub(1);
        let select = |items: &mut dyn Iterator<Item = &[u8]>| -> Vec<usize> {
            let equal = items.take(most).enumerate().filter(|(_, other)| *other == item);
            equal.map(|(index, _)| index).skip(skipped).take(wanted).collect()
        };
        if self.rank > 0 {
            return select(&mut list.iter_from(0));
        }
        let found = select(&mut list.iter_back_from(last));
        found.into_iter().map(|back| last - back).collect()
    }
}

fn lpos(call: &mut Call<'_, '_>) -> Result<(), Failure> {
    let position = Position::parse(call)?;
    let item = call.args.at(2);
    let list = call.space.read::<List>(call.args.at(1))?;
    let found = list.map(|list| position.find(list, item)).unwrap_or_default();
    match (position.count, found.first()) {
        (Some(_), _) => {
            call.out.array(found.len());
            found.iter().for_each(|index| call.out.count(*index));
        }
        (None, Some(index)) => call.out.count(*index),
        (None, None) => call.out.null(),
    }
    Ok(())
}
