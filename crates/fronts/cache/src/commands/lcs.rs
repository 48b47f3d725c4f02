//! LCS: the longest common subsequence of two strings.

use crate::call::Call;
use crate::command::Run;
use crate::failure::Failure;

pub(super) const RUNS: &[(&str, Run)] = &[("lcs", lcs)];

/// The most cells of the table that a comparison fills.
const CELLS_MAX: usize = 128 * 1024 * 1024;

#[derive(Default)]
struct Query {
    is_length: bool,
    is_index: bool,
    has_lengths: bool,
    shortest: usize,
}

impl Query {
    fn parse(call: &Call<'_, '_>) -> Result<Self, Failure> {
        let mut found = Self::default();
        let mut at = 3;
        while at < call.args.len() {
            match call.args.at(at).to_ascii_lowercase().as_slice() {
                b"idx" => found.is_index = true,
                b"len" => found.is_length = true,
                b"withmatchlen" => found.has_lengths = true,
                b"minmatchlen" if at + 1 < call.args.len() => {
                    found.shortest = call.integer(at + 1)?.max(0) as usize;
                    at += 1;
                }
                _ => return Err(Failure::SYNTAX),
            }
            at += 1;
        }
        if found.is_index && found.is_length {
            return Err(Failure::of(
                "ERR If you want both the length and indexes, please just use IDX.",
            ));
        }
        Ok(found)
    }
}

fn string(call: &mut Call<'_, '_>, at: usize) -> Result<Vec<u8>, Failure> {
    let found = call
        .space
        .string(call.args.at(at))
        .map_err(|_| Failure::of("ERR The specified keys must contain string values"))?;
    Ok(found.unwrap_or_default().to_vec())
}

/// A run of bytes that both strings have: where it begins in each, and its length.
struct Match {
    a: usize,
    b: usize,
    len: usize,
}

/// Lengths of common subsequences of all beginnings of both strings.
fn table(a: &[u8], b: &[u8]) -> Vec<u32> {
    let width = b.len() + 1;
    let mut cells = vec![0_u32; (a.len() + 1) * width];
    for i in 1..=a.len() {
        for j in 1..=b.len() {
            cells[i * width + j] = if a[i - 1] == b[j - 1] {
                cells[(i - 1) * width + j - 1] + 1
            } else {
                cells[(i - 1) * width + j].max(cells[i * width + j - 1])
            };
        }
    }
    cells
}

/// The subsequence and its runs, the last one first.
fn walk(a: &[u8], b: &[u8], cells: &[u32]) -> (Vec<u8>, Vec<Match>) {
    let width = b.len() + 1;
    let (mut i, mut j) = (a.len(), b.len());
    let (mut text, mut runs) = (Vec::new(), Vec::<Match>::new());
    while i > 0 && j > 0 {
        if a[i - 1] == b[j - 1] {
            text.push(a[i - 1]);
            match runs.last_mut() {
                Some(run) if run.a == i && run.b == j => {
                    (run.a, run.b, run.len) = (i - 1, j - 1, run.len + 1);
                }
                _ => runs.push(Match { a: i - 1, b: j - 1, len: 1 }),
            }
            (i, j) = (i - 1, j - 1);
        } else if cells[(i - 1) * width + j] > cells[i * width + j - 1] {
            i -= 1;
        } else {
            j -= 1;
        }
    }
    text.reverse();
    (text, runs)
}

fn lcs(call: &mut Call<'_, '_>) -> Result<(), Failure> {
    let (a, b) = (string(call, 1)?, string(call, 2)?);
    let query = Query::parse(call)?;
    if (a.len() + 1).saturating_mul(b.len() + 1) > CELLS_MAX {
        return Err(Failure::of(
            "ERR Insufficient memory, transient memory for LCS exceeds proto-max-bulk-len",
        ));
    }
    let cells = table(&a, &b);
    let len = cells.last().copied().unwrap_or(0);
    if query.is_length {
        call.out.integer(i64::from(len));
        return Ok(());
    }
    let (text, mut runs) = walk(&a, &b, &cells);
    if !query.is_index {
        call.out.bulk(&text);
        return Ok(());
    }
    runs.retain(|run| run.len >= query.shortest);
    call.out.map(2);
    call.out.text("matches");
    call.out.array(runs.len());
    for run in &runs {
        call.out.array(if query.has_lengths { 3 } else { 2 });
        for begin in [run.a, run.b] {
            call.out.array(2);
            call.out.count(begin);
            call.out.count(begin + run.len - 1);
        }
        if query.has_lengths {
            call.out.count(run.len);
        }
    }
    call.out.text("len");
    call.out.integer(i64::from(len));
    Ok(())
}
