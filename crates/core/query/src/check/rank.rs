//! ORDER BY RANK, and ORDER BY a distance: what may stand there.

use crate::error::{QueryError, code};
use crate::functions::rank::Ranking;
use crate::syntax::Select;
use crate::tree::{Expression, Sort};

/// How the rows of a level are ranked, if they are.
pub(super) fn ranking(
    select: &Select,
    sort: &[Sort],
    outer: usize,
) -> Result<Option<Ranking>, QueryError> {
    if !select.is_ranked {
        return Ok(None);
    }
    let refused = |message: &str| QueryError::invalid(message).at(code::SYNTAX, select.span);
    if outer > 0 {
        return Err(refused("ORDER BY RANK is not allowed in a subquery."));
    }
    if select.is_distinct || !select.group.is_empty() {
        return Err(refused("ORDER BY RANK is not allowed with DISTINCT or GROUP BY."));
    }
    let ranking = match sort {
        [only] => Ranking::of(&only.expression),
        _ => None,
    };
    let needed = "ORDER BY RANK needs FULLTEXTSCORE, VECTORDISTANCE, or RRF over several of them.";
    ranking.map(Some).ok_or_else(|| refused(needed))
}

/// The direction of an order by a score, if the expression is one: the best comes first, whatever was written.
pub(super) fn is_descending(expression: &Expression) -> Option<bool> {
    Ranking::of(expression).map(|ranking| ranking.larger_is_better())
}
