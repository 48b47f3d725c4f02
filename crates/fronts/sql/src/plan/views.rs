//! Views: where a SELECT names one, it is planned with the query that the view is. A shard that gets the whole statement
//! gets it as it came, because the view is there too.

use std::collections::BTreeSet;
use std::ops::ControlFlow;

use sqlparser::ast::{
    Ident, Query, Statement, TableAlias, TableFactor, Visit, VisitMut, Visitor, VisitorMut,
};

use super::walk::{folded, parts};
use super::{Context, parse};
use crate::error::SqlError;
use lazuli_sharded_sql::TableName;

/// The most views of one statement, those in views among them.
const VIEWS_MAX: usize = 50;

/// The query of a view by the text that PostgreSQL keeps; none if it is not one that the router can read.
pub(crate) fn read(definition: &str) -> Option<Query> {
    match parse(definition.trim().trim_end_matches(';')) {
        // Names of its own could be taken for views.
        Ok(Statement::Query(query)) => names(&query).is_empty().then_some(*query),
        _ => None,
    }
}

fn names(query: &Query) -> BTreeSet<String> {
    let mut names = Names(BTreeSet::new());
    let _ = Visit::visit(query, &mut names);
    names.0
}

/// Puts the queries of views in the places of their names.
pub(super) fn expand(query: &mut Query, context: &Context<'_>) -> Result<(), SqlError> {
    if context.facts.views.is_empty() {
        return Ok(());
    }
    let mut views = Views { context, hidden: names(query), count: 0 };
    match VisitMut::visit(query, &mut views) {
        ControlFlow::Continue(()) => Ok(()),
        ControlFlow::Break(()) => {
            Err(SqlError::refused("a statement with so many views is not supported by the router"))
        }
    }
}

/// The names of all common table expressions.
struct Names(BTreeSet<String>);

impl Visitor for Names {
    type Break = ();

    fn pre_visit_query(&mut self, query: &Query) -> ControlFlow<()> {
        for cte in query.with.iter().flat_map(|with| &with.cte_tables) {
            self.0.insert(folded(&cte.alias.name));
        }
        ControlFlow::Continue(())
    }
}

struct Views<'a, 'c> {
    context: &'c Context<'a>,
    /// Names that may mean something else here.
    hidden: BTreeSet<String>,
    count: usize,
}

impl Views<'_, '_> {
    fn named(&self, name: &[String]) -> Option<&Query> {
        let views = &self.context.facts.views;
        match name {
            [one] if self.hidden.contains(one) => None,
            [one] => {
                let mut path = self.context.search_path.iter();
                // The first schema of the path that has a table or a view of this name.
                path.find_map(|schema| {
                    let name = TableName::new(schema, one);
                    let is_table = self.context.snapshot.tables.contains_key(&name);
                    if is_table { Some(None) } else { views.get(&name).map(Some) }
                })
                .flatten()
            }
            [schema, one] => views.get(&TableName::new(schema, one)),
            _ => None,
        }
    }
}

impl VisitorMut for Views<'_, '_> {
    type Break = ();

    // Before its children are visited, which then are those of the view.
    fn pre_visit_table_factor(&mut self, factor: &mut TableFactor) -> ControlFlow<()> {
        let TableFactor::Table { name, alias, args: None, sample: None, .. } = &*factor else {
            return ControlFlow::Continue(());
        };
        let name = parts(name).unwrap_or_default();
        let (Some(view), Some(last)) = (self.named(&name), name.last()) else {
            return ControlFlow::Continue(());
        };
        let own = || TableAlias {
            explicit: true,
            name: Ident::with_quote('"', last.clone()),
            columns: Vec::new(),
            at: None,
        };
        let alias = Some(alias.clone().unwrap_or_else(own));
        let subquery = Box::new(view.clone());
        self.count += 1;
        if self.count > VIEWS_MAX {
            return ControlFlow::Break(());
        }
        *factor = TableFactor::Derived { lateral: false, subquery, alias, sample: None };
        ControlFlow::Continue(())
    }
}
