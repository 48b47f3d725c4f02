//! Window functions over several shards: right where every partition is on one shard.

use std::ops::ControlFlow;

use sqlparser::ast::{Expr, OrderByExpr, Query, Select, Visit, Visitor, WindowType};

use super::fanout::has_key;
use super::walk::Walk;

/// Whether every window of a select list and its order is partitioned by the sharding key.
pub(super) fn are_by_key(
    select: &Select,
    order: &[OrderByExpr],
    level: usize,
    root: usize,
    walk: &Walk<'_, '_>,
) -> bool {
    let mut windows = Windows { depth: 0, level, root, walk };
    let of_order = order.iter().any(|item| item.expr.visit(&mut windows).is_break());
    !of_order && select.projection.visit(&mut windows).is_continue()
}

/// Breaks at a window whose partitions may be on several shards. Those of subqueries are about other rows.
struct Windows<'w, 'a, 'c> {
    depth: usize,
    level: usize,
    root: usize,
    walk: &'w Walk<'a, 'c>,
}

impl Visitor for Windows<'_, '_, '_> {
    type Break = ();

    fn pre_visit_query(&mut self, _: &Query) -> ControlFlow<()> {
        self.depth += 1;
        ControlFlow::Continue(())
    }

    fn post_visit_query(&mut self, _: &Query) -> ControlFlow<()> {
        self.depth -= 1;
        ControlFlow::Continue(())
    }

    fn pre_visit_expr(&mut self, expr: &Expr) -> ControlFlow<()> {
        let Expr::Function(function) = expr else { return ControlFlow::Continue(()) };
        let is_fine = match &function.over {
            _ if self.depth > 0 => true,
            None => true,
            Some(WindowType::WindowSpec(spec)) if spec.window_name.is_none() => {
                has_key(&spec.partition_by, self.level, self.root, self.walk)
            }
            Some(_) => false,
        };
        if is_fine { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
    }
}
