//! From filters to queries on the inverted index. Every query made here is exact: where an index of flat values answers
//! too much (elements of complex collections, distances), the documents it finds are looked at once more.

use super::evaluate::Evaluator;
use super::ranges::{double_range, mixed_range, text_range, whole_range};
use super::tree::{CompareOp, Literal, MatchCall, Node, PathRef};
use crate::definition::{EdmType, IndexDefinition};
use crate::error::{Result, SearchError};
use crate::index::{Check, ColumnRange, Physical, PhysicalLeaf, Values, VerifyQuery};
use crate::value::Point;
use std::sync::Arc;
use tantivy::query::{
    AllQuery, BooleanQuery, ConstScoreQuery, EmptyQuery, ExistsQuery, Occur, Query, TermQuery,
    TermSetQuery,
};
use tantivy::schema::{IndexRecordOption, Term};

/// Compiles calls of the search functions, which need analyzers and synonyms.
pub(crate) trait MatchCompiler {
    fn compile_match(&self, call: &MatchCall) -> Result<Box<dyn Query>>;
}

/// The query of a filter. Only `search.ismatchscoring` adds to scores.
pub(crate) fn compile(
    definition: &IndexDefinition,
    physical: &Physical,
    node: &Node,
    matches: &dyn MatchCompiler,
) -> Result<Box<dyn Query>> {
    let evaluator = Arc::new(Evaluator::new(definition));
    Compiler { physical, evaluator, matches }.node(node)
}

struct Compiler<'a> {
    physical: &'a Physical,
    evaluator: Arc<Evaluator>,
    matches: &'a dyn MatchCompiler,
}

/// A query without a score.
fn unscored(query: Box<dyn Query>) -> Box<dyn Query> {
    Box::new(ConstScoreQuery::new(query, 0.0))
}

fn all() -> Box<dyn Query> {
    unscored(Box::new(AllQuery))
}

fn none() -> Box<dyn Query> {
    Box::new(EmptyQuery)
}

fn not(inner: Box<dyn Query>) -> Box<dyn Query> {
    Box::new(BooleanQuery::new(vec![(Occur::Must, all()), (Occur::MustNot, inner)]))
}

fn join(occur: Occur, parts: Vec<Box<dyn Query>>) -> Box<dyn Query> {
    Box::new(BooleanQuery::new(parts.into_iter().map(|it| (occur, it)).collect()))
}

/// A query that holds at least the documents in question, and whether it holds no others.
struct Coarse {
    query: Box<dyn Query>,
    exact: bool,
}

impl Compiler<'_> {
    fn node(&self, node: &Node) -> Result<Box<dyn Query>> {
        Ok(match node {
            Node::Constant(true) => all(),
            Node::Constant(false) => none(),
            Node::And(parts) => join(Occur::Must, self.nodes(parts)?),
            Node::Or(parts) => join(Occur::Should, self.nodes(parts)?),
            Node::Not(inner) => not(self.node(inner)?),
            Node::Match(call) => {
                let query = self.matches.compile_match(call)?;
                if call.scoring { query } else { unscored(query) }
            }
            Node::Any { body, variable, .. } => {
                let coarse = match body {
                    Some(body) => self.any(body, variable)?,
                    None => self.present(node)?,
                };
                self.verified(coarse, node)
            }
            Node::All { body, variable, .. } => match negated(body) {
                Some(opposite) => {
                    let coarse = self.any(&opposite, variable)?;
                    if coarse.exact {
                        not(coarse.query)
                    } else {
                        self.verified(Coarse { query: all(), exact: false }, node)
                    }
                }
                None => self.verified(Coarse { query: all(), exact: false }, node),
            },
            Node::Distance { path, point, op, kilometers } => {
                self.distance(path, *point, *op, *kilometers)?
            }
            Node::Within { path, polygon } => self.within(path, polygon)?,
            Node::Truth(_) | Node::Compare { .. } | Node::In { .. } => {
                let coarse = self.atom(node)?;
                self.verified(coarse, node)
            }
        })
    }

    fn nodes(&self, parts: &[Node]) -> Result<Vec<Box<dyn Query>>> {
        parts.iter().map(|it| self.node(it)).collect()
    }

    fn verified(&self, coarse: Coarse, node: &Node) -> Box<dyn Query> {
        if coarse.exact {
            return coarse.query;
        }
        let check = StoredCheck {
            evaluator: self.evaluator.clone(),
            node: node.clone(),
            source: self.physical.source,
        };
        Box::new(VerifyQuery { inner: Arc::from(coarse.query), check: Arc::new(check) })
    }

    /// Documents with an element that passes. Only comparisons of the element itself can be exact: others also need that
    /// there is an element.
    fn any(&self, body: &Node, variable: &str) -> Result<Coarse> {
        Ok(match body {
            Node::Compare { op: CompareOp::Ne, .. }
            | Node::Compare { value: Literal::Null, .. } => Coarse { query: all(), exact: false },
            Node::Truth(path) | Node::Compare { path, .. } | Node::In { path, .. } => {
                let mut coarse = self.atom(body)?;
                coarse.exact &= path.variable.as_deref() == Some(variable);
                coarse
            }
            Node::Or(parts) => {
                let parts: Vec<Coarse> =
                    parts.iter().map(|it| self.any(it, variable)).collect::<Result<_>>()?;
                let exact = parts.iter().all(|it| it.exact);
                let queries = parts.into_iter().map(|it| it.query).collect();
                Coarse { query: join(Occur::Should, queries), exact }
            }
            Node::And(parts) => {
                let parts: Vec<Coarse> =
                    parts.iter().map(|it| self.any(it, variable)).collect::<Result<_>>()?;
                let queries = parts.into_iter().map(|it| it.query).collect();
                Coarse { query: join(Occur::Must, queries), exact: false }
            }
            Node::Any { path, variable: inner, body: Some(nested) } => {
                let mut coarse = self.any(nested, inner)?;
                coarse.exact &= path.variable.as_deref() == Some(variable);
                coarse
            }
            Node::Any { path, body: None, .. } => {
                let mut coarse = self.present(body)?;
                coarse.exact &= path.variable.as_deref() == Some(variable);
                coarse
            }
            _ => Coarse { query: all(), exact: false },
        })
    }

    /// Documents where a collection has an element.
    fn present(&self, node: &Node) -> Result<Coarse> {
        let Node::Any { path, .. } = node else {
            return Ok(Coarse { query: all(), exact: false });
        };
        match self.physical.leaf(&path.full) {
            Some(leaf) if leaf.values.is_some() && leaf.leaf.kind != EdmType::String => {
                Ok(Coarse { query: exists(leaf), exact: true })
            }
            _ => Ok(Coarse { query: all(), exact: false }),
        }
    }

    fn leaf(&self, path: &PathRef) -> Result<&PhysicalLeaf> {
        self.physical
            .leaf(&path.full)
            .ok_or_else(|| SearchError::invalid(format!("'{}' cannot be filtered by", path.full)))
    }

    /// A comparison of a field that has no subfields.
    fn atom(&self, node: &Node) -> Result<Coarse> {
        let exact = |query| Ok(Coarse { query, exact: true });
        match node {
            Node::Truth(path) => {
                let leaf = self.leaf(path)?;
                exact(self.range(leaf, CompareOp::Eq, &Literal::Bool(true)))
            }
            Node::In { path, values } => {
                let Some(field) = self.leaf(path)?.values else { return exact(none()) };
                let terms = values.iter().map(|it| Term::from_field_text(field, it));
                exact(unscored(Box::new(TermSetQuery::new(terms))))
            }
            Node::Compare { path, op, value } => {
                if path.kind == EdmType::Complex || path.kind == EdmType::GeographyPoint {
                    return Ok(Coarse { query: all(), exact: false });
                }
                let leaf = self.leaf(path)?;
                if *value == Literal::Null {
                    // A string that is too long to be a value is not in the column.
                    if path.kind == EdmType::String {
                        return Ok(Coarse { query: all(), exact: false });
                    }
                    let exists = exists(leaf);
                    return exact(if *op == CompareOp::Eq { not(exists) } else { exists });
                }
                if *op == CompareOp::Ne {
                    return exact(not(self.range(leaf, CompareOp::Eq, value)));
                }
                exact(self.range(leaf, *op, value))
            }
            _ => Ok(Coarse { query: all(), exact: false }),
        }
    }

    /// The documents with a value in the range of an operator.
    fn range(&self, leaf: &PhysicalLeaf, op: CompareOp, value: &Literal) -> Box<dyn Query> {
        let Some(field) = leaf.values else { return none() };
        let values = match value {
            Literal::Text(text) if op == CompareOp::Eq => {
                let term = Term::from_field_text(field, text);
                return unscored(Box::new(TermQuery::new(term, IndexRecordOption::Basic)));
            }
            Literal::Text(text) => text_range(op, text),
            Literal::Bool(truth) => whole_range(op, i64::from(*truth)),
            Literal::Int(number) | Literal::Date(number) => whole_range(op, *number),
            Literal::Double(number) if leaf.leaf.kind == EdmType::Double => {
                double_range(op, *number)
            }
            Literal::Double(number) => mixed_range(op, *number),
            Literal::Null => None,
        };
        match values {
            Some(values) => unscored(Box::new(ColumnRange { column: leaf.column(), values })),
            None => none(),
        }
    }

    fn distance(
        &self,
        path: &PathRef,
        point: Point,
        op: CompareOp,
        kilometers: f64,
    ) -> Result<Box<dyn Query>> {
        let leaf = self.leaf(path)?;
        let nearer = matches!(op, CompareOp::Lt | CompareOp::Le);
        let inner = match leaf.latitude {
            Some(_) if nearer => {
                // One degree of latitude is at least 110.5 km everywhere.
                let degrees = kilometers / 110.5;
                let values = Values::Double(point.latitude - degrees..=point.latitude + degrees);
                unscored(Box::new(ColumnRange { column: leaf.coordinates().1, values }))
            }
            _ => all(),
        };
        let within = move |it: Point| {
            it.distance_km(point).partial_cmp(&kilometers).is_some_and(|order| op.accepts(order))
        };
        Ok(points(leaf, inner, Arc::new(within)))
    }

    fn within(&self, path: &PathRef, polygon: &[Point]) -> Result<Box<dyn Query>> {
        let leaf = self.leaf(path)?;
        let polygon = polygon.to_vec();
        Ok(points(leaf, all(), Arc::new(move |it: Point| it.within(&polygon))))
    }
}

fn points(
    leaf: &PhysicalLeaf,
    inner: Box<dyn Query>,
    accepts: Arc<dyn Fn(Point) -> bool + Send + Sync>,
) -> Box<dyn Query> {
    let (longitude, latitude) = leaf.coordinates();
    let check = PointCheck { longitude, latitude, accepts };
    Box::new(VerifyQuery { inner: Arc::from(inner), check: Arc::new(check) })
}

fn exists(leaf: &PhysicalLeaf) -> Box<dyn Query> {
    match leaf.values {
        Some(_) => unscored(Box::new(ExistsQuery::new(leaf.column(), false))),
        None => none(),
    }
}

/// The opposite of a comparison of elements, where it is one that an index knows.
fn negated(node: &Node) -> Option<Node> {
    Some(match node {
        Node::Not(inner) => inner.as_ref().clone(),
        Node::Compare { path, op: CompareOp::Ne, value } if *value != Literal::Null => {
            Node::Compare { path: path.clone(), op: CompareOp::Eq, value: value.clone() }
        }
        Node::And(parts) => Node::Or(parts.iter().map(negated).collect::<Option<_>>()?),
        _ => return None,
    })
}

/// Evaluates a filter on the stored document.
struct StoredCheck {
    evaluator: Arc<Evaluator>,
    node: Node,
    source: tantivy::schema::Field,
}

/// Blocks of stored documents that a check keeps decompressed.
const CHECK_BLOCKS: usize = 2;

impl Check for StoredCheck {
    fn checker(
        &self,
        reader: &tantivy::SegmentReader,
    ) -> tantivy::Result<Box<dyn FnMut(tantivy::DocId) -> bool + Send>> {
        let store = reader.get_store_reader(CHECK_BLOCKS)?;
        let (evaluator, node, source) = (self.evaluator.clone(), self.node.clone(), self.source);
        Ok(Box::new(move |doc| {
            let Ok(entry) = store.get::<tantivy::TantivyDocument>(doc) else { return false };
            let document = crate::search::stored_document(&entry, source);
            document.is_some_and(|it| evaluator.matches(&node, &it))
        }))
    }
}

/// Looks at the coordinates of points.
struct PointCheck {
    longitude: String,
    latitude: String,
    accepts: Arc<dyn Fn(Point) -> bool + Send + Sync>,
}

impl Check for PointCheck {
    fn checker(
        &self,
        reader: &tantivy::SegmentReader,
    ) -> tantivy::Result<Box<dyn FnMut(tantivy::DocId) -> bool + Send>> {
        let longitudes = reader.fast_fields().f64(&self.longitude)?;
        let latitudes = reader.fast_fields().f64(&self.latitude)?;
        let accepts = self.accepts.clone();
        Ok(Box::new(move |doc| {
            longitudes
                .values_for_doc(doc)
                .zip(latitudes.values_for_doc(doc))
                .any(|(longitude, latitude)| accepts(Point { longitude, latitude }))
        }))
    }
}
