//! Which tables of a statement are bound to which keys.
//!
//! Columns are nodes. An equality that holds for every row of the result is an edge: between columns of one level both
//! ways, from an outer query's column only towards the inner one, and in the condition of an outer join only towards the
//! side that may be missing. A table is bound if each column of its key leads to a constant.

use std::collections::{BTreeMap, BTreeSet};

use lazuli_sharded_sql::{ColumnType, TableKind, TableName};

use super::{Bound, Context, KeySource};

/// One use of a relation in a statement.
#[derive(Clone, Debug)]
pub(crate) struct Instance {
    /// What columns are qualified with.
    pub(crate) alias: String,
    /// The query level that names it.
    pub(crate) level: usize,
    pub(crate) source: Source,
    /// Whether a join may leave it out of a row.
    pub(crate) is_nullable: bool,
    /// Whether it stands in a query in FROM or WITH, whose rows are computed before anything outside binds them.
    pub(crate) is_derived: bool,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Source {
    Table(TableName),
    /// A query in FROM that only chooses rows and columns: its columns by their names, and the columns of tables that
    /// they are, if they are such.
    Columns(BTreeMap<String, Option<Node>>),
    /// A subquery, a function or a common table expression: its columns are not known.
    Other,
}

/// A column of an instance.
pub(crate) type Node = (usize, String);

#[derive(Debug, Default)]
pub(crate) struct Scope {
    pub(crate) instances: Vec<Instance>,
    /// The level around each level.
    pub(crate) parents: Vec<Option<usize>>,
    /// To a node, the nodes whose values it must have.
    edges: BTreeMap<Node, BTreeSet<Node>>,
    constants: BTreeMap<Node, Vec<Vec<KeySource>>>,
}

impl Scope {
    pub(crate) fn level(&mut self, parent: Option<usize>) -> usize {
        self.parents.push(parent);
        self.parents.len() - 1
    }

    /// Every row has `node` equal to `other`.
    pub(crate) fn imply(&mut self, node: &Node, other: &Node) {
        self.edges.entry(node.clone()).or_default().insert(other.clone());
    }

    /// Every row has `node` equal to one of these.
    pub(crate) fn constant(&mut self, node: &Node, values: Vec<KeySource>) {
        self.constants.entry(node.clone()).or_default().push(values);
    }

    /// The column that a name means, looked for from a level outwards. None if that is not certain.
    pub(crate) fn resolve(
        &self,
        level: usize,
        qualifier: Option<&str>,
        column: &str,
        context: &Context<'_>,
    ) -> Option<Node> {
        let mut level = Some(level);
        while let Some(here) = level {
            let column_of = |index: usize| match &self.instances[index].source {
                Source::Columns(columns) => columns.get(column).cloned().flatten(),
                Source::Table(_) | Source::Other => Some((index, column.to_owned())),
            };
            let of_level = self.instances.iter().enumerate().filter(|(_, it)| it.level == here);
            let mut found = Vec::new();
            for (index, instance) in of_level {
                match (qualifier, &instance.source) {
                    (Some(qualifier), _) => {
                        if instance.alias == qualifier {
                            found.push(index);
                        }
                    }
                    // A relation with unknown columns may have this one.
                    (None, Source::Other) => return None,
                    (None, Source::Columns(columns)) => {
                        if columns.contains_key(column) {
                            found.push(index);
                        }
                    }
                    (None, Source::Table(name)) => {
                        let facts = context.facts.tables.get(name)?;
                        if facts.columns.iter().any(|it| it.name == column) {
                            found.push(index);
                        }
                    }
                }
            }
            match found[..] {
                [index] => return column_of(index),
                [] => level = self.parents[here],
                // Ambiguous: PostgreSQL says so, or it is the merged column of USING.
                _ => return None,
            }
        }
        None
    }

    fn reach(&self, from: &Node) -> BTreeSet<Node> {
        let mut seen = BTreeSet::from([from.clone()]);
        let mut next = vec![from.clone()];
        while let Some(node) = next.pop() {
            for other in self.edges.get(&node).into_iter().flatten() {
                if seen.insert(other.clone()) {
                    next.push(other.clone());
                }
            }
        }
        seen
    }

    /// The values that a column must have: the shortest list that is known.
    pub(crate) fn values_of(&self, node: &Node) -> Option<Vec<KeySource>> {
        let reached = self.reach(node);
        let lists = reached.iter().filter_map(|it| self.constants.get(it)).flatten();
        lists.min_by_key(|list| list.len()).cloned()
    }

    /// What a sharded table is bound to.
    pub(crate) fn bound(&self, index: usize, context: &Context<'_>) -> Option<Bound> {
        let (map, key) = self.key(index, context)?;
        let columns = key.iter().map(|(name, _)| self.values_of(&(index, name.clone())));
        let columns = columns.collect::<Option<Vec<_>>>()?;
        Some(Bound { map, types: key.iter().map(|(_, column)| *column).collect(), columns })
    }

    /// The map and the key of a sharded table.
    pub(crate) fn key<'a>(
        &self,
        index: usize,
        context: &Context<'a>,
    ) -> Option<(usize, &'a [(String, ColumnType)])> {
        let Source::Table(name) = &self.instances.get(index)?.source else { return None };
        match &context.snapshot.tables.get(name)?.kind {
            TableKind::Sharded { map, key } => Some((*map, key)),
            TableKind::Reference | TableKind::Single { .. } => None,
        }
    }

    pub(crate) fn sharded<'a>(
        &'a self,
        context: &'a Context<'_>,
    ) -> impl Iterator<Item = usize> + 'a {
        (0..self.instances.len()).filter(|index| self.key(*index, context).is_some())
    }

    /// Whether every row of one sharded table that matters has the key of a row of the other, so that both are on one shard.
    pub(crate) fn is_beside(&self, index: usize, root: usize, context: &Context<'_>) -> bool {
        let (Some((map, key)), Some((root_map, root_key))) =
            (self.key(index, context), self.key(root, context))
        else {
            return false;
        };
        map == root_map
            && key.iter().zip(root_key).all(|((name, _), (root_name, _))| {
                self.reach(&(index, name.clone())).contains(&(root, root_name.clone()))
            })
    }

    /// The type of a column, if it is one whose values compare without being changed. A domain, a type with blanks or
    /// digits that do not count, and a collation of its own are none.
    pub(crate) fn plain_type(&self, node: &Node, context: &Context<'_>) -> Option<ColumnType> {
        let Source::Table(name) = &self.instances.get(node.0)?.source else { return None };
        let columns = &context.facts.tables.get(name)?.columns;
        let column = columns.iter().find(|column| column.name == node.1)?;
        ColumnType::of_oid(column.oid).filter(|_| !column.is_collated)
    }

    /// Whether a column has the value of this one in every row.
    pub(crate) fn is_equal(&self, node: &Node, other: &Node) -> bool {
        self.reach(node).contains(other) && self.reach(other).contains(node)
    }
}
