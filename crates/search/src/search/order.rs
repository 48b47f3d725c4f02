//! `$orderby`: clauses, and keys of documents that compare as the clauses say.

use crate::definition::{EdmType, IndexDefinition};
use crate::error::{Result, SearchError};
use crate::filter::scope::Scope;
use crate::filter::{Lexeme, Lexer, parse_geo_point};
use crate::index::Physical;
use crate::limits;
use crate::value::Point;
use tantivy::columnar::{Column, StrColumn};
use tantivy::index::SegmentReader;
use tantivy::{DocId, Score};

/// The clauses of an order; without clauses the score orders.
#[derive(Clone, Debug, Default)]
pub(crate) struct Order {
    pub(crate) clauses: Vec<Clause>,
}

/// One clause.
#[derive(Clone, Debug)]
pub(crate) struct Clause {
    pub(crate) by: By,
    pub(crate) descending: bool,
}

/// What a clause orders by.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum By {
    Score,
    Field(String),
    Distance(String, Point),
}

impl Order {
    pub(crate) fn parse(definition: &IndexDefinition, text: Option<&str>) -> Result<Order> {
        let mut order = Order::default();
        let Some(text) = text.filter(|it| !it.trim().is_empty()) else { return Ok(order) };
        let scope = Scope::new(definition);
        let mut lexer = Lexer::new(text)?;
        loop {
            let by = parse_by(&mut lexer, &scope)?;
            let descending = if lexer.take_name("desc")? {
                true
            } else {
                lexer.take_name("asc")?;
                false
            };
            order.clauses.push(Clause { by, descending });
            if !lexer.take(&Lexeme::Comma)? {
                break;
            }
        }
        if lexer.current != Lexeme::End {
            return Err(lexer.unexpected("','"));
        }
        if order.clauses.len() > limits::ORDER_CLAUSES_MAX {
            let max = limits::ORDER_CLAUSES_MAX;
            return Err(SearchError::invalid(format!("$orderby has more than {max} clauses.")));
        }
        Ok(order)
    }

    /// Whether scores are needed.
    pub(crate) fn by_score(&self) -> bool {
        self.clauses.is_empty() || self.clauses.iter().any(|it| it.by == By::Score)
    }
}

fn parse_by(lexer: &mut Lexer<'_>, scope: &Scope<'_>) -> Result<By> {
    if lexer.take_name("search.score")? {
        lexer.expect(&Lexeme::Open, "'('")?;
        lexer.expect(&Lexeme::Close, "')'")?;
        return Ok(By::Score);
    }
    if lexer.take_name("geo.distance")? {
        lexer.expect(&Lexeme::Open, "'('")?;
        let first = geo_argument(lexer, scope)?;
        lexer.expect(&Lexeme::Comma, "','")?;
        let second = geo_argument(lexer, scope)?;
        lexer.expect(&Lexeme::Close, "')'")?;
        return match (first, second) {
            (Ok(field), Err(point)) | (Err(point), Ok(field)) => Ok(By::Distance(field, point)),
            _ => Err(SearchError::invalid("geo.distance needs a field and a point")),
        };
    }
    let (path, _) = scope.read_path(lexer)?;
    let leaf = scope.definition().leaf(&path.full).filter(|it| it.sortable && !it.repeated);
    match leaf {
        Some(leaf) if leaf.kind == EdmType::GeographyPoint => {
            Err(SearchError::invalid("points are ordered by geo.distance"))
        }
        Some(_) => Ok(By::Field(path.full)),
        None => Err(SearchError::invalid(format!(
            "'{}' is not a sortable field. Only sortable fields can be used in orderby expressions.",
            path.full
        ))),
    }
}

/// A field, or (as the error) a point.
fn geo_argument(
    lexer: &mut Lexer<'_>,
    scope: &Scope<'_>,
) -> Result<std::result::Result<String, Point>> {
    if let Lexeme::Geography(text) = lexer.current.clone() {
        lexer.advance()?;
        let point = parse_geo_point(&text);
        return Ok(Err(point.ok_or_else(|| SearchError::invalid("a point is wrong"))?));
    }
    let (path, _) = scope.read_path(lexer)?;
    let sortable = scope.definition().leaf(&path.full).filter(|it| it.sortable);
    match sortable {
        Some(leaf) if leaf.kind == EdmType::GeographyPoint => Ok(Ok(path.full)),
        _ => Err(SearchError::invalid(format!("'{}' is not a sortable point", path.full))),
    }
}

/// A value that compares as a clause says: documents come in the order of growing keys. Absent values come first, and
/// last where the order descends.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Key {
    Number(u128),
    /// Strings of different segments have no common numbers.
    Text(Option<String>),
    TextDescending(std::cmp::Reverse<Option<String>>),
}

/// Reads the keys of one segment.
pub(super) struct SegmentKeys {
    columns: Vec<(KeyColumn, bool)>,
}

enum KeyColumn {
    Score,
    Whole(Column<i64>),
    Double(Column<f64>),
    Text(Option<StrColumn>),
    Distance(Column<f64>, Column<f64>, Point),
}

impl SegmentKeys {
    pub(super) fn open(
        order: &Order,
        physical: &Physical,
        reader: &SegmentReader,
    ) -> Result<SegmentKeys> {
        let fast = reader.fast_fields();
        let mut columns = Vec::new();
        for clause in &order.clauses {
            let lost = |path: &str| SearchError::lost(format!("'{path}' has no values"));
            let column = match &clause.by {
                By::Score => KeyColumn::Score,
                By::Distance(path, point) => {
                    let leaf = physical.leaf(path).ok_or_else(|| lost(path))?;
                    let (x, y) = leaf.coordinates();
                    KeyColumn::Distance(fast.f64(&x)?, fast.f64(&y)?, *point)
                }
                By::Field(path) => {
                    let leaf = physical.leaf(path).ok_or_else(|| lost(path))?;
                    let name = leaf.column();
                    match leaf.leaf.kind {
                        EdmType::String => KeyColumn::Text(fast.str(&name)?),
                        EdmType::Double => KeyColumn::Double(fast.f64(&name)?),
                        _ => KeyColumn::Whole(fast.i64(&name)?),
                    }
                }
            };
            columns.push((column, clause.descending));
        }
        Ok(SegmentKeys { columns })
    }

    /// The key of one clause. Strings have their numbers in the segment.
    pub(super) fn raw(&self, clause: usize, doc: DocId, score: Score) -> u128 {
        let (column, descending) = &self.columns[clause];
        let value = match column {
            KeyColumn::Score => Some(double_key(f64::from(score))),
            KeyColumn::Whole(column) => column.first(doc).map(|it| (it as u64) ^ (1 << 63)),
            KeyColumn::Double(column) => column.first(doc).map(double_key),
            KeyColumn::Text(column) => column.as_ref().and_then(|it| it.ords().first(doc)),
            KeyColumn::Distance(x, y, point) => x
                .first(doc)
                .zip(y.first(doc))
                .map(|(x, y)| double_key(Point { longitude: x, latitude: y }.distance_km(*point))),
        };
        let key = value.map_or(0, |it| (1 << 64) | u128::from(it));
        if *descending { !key } else { key }
    }

    pub(super) fn len(&self) -> usize {
        self.columns.len()
    }

    /// The key that compares with those of other segments.
    pub(super) fn comparable(&self, clause: usize, raw: u128) -> Key {
        let (column, descending) = &self.columns[clause];
        let KeyColumn::Text(column) = column else { return Key::Number(raw) };
        let plain = if *descending { !raw } else { raw };
        let text = (plain != 0).then(|| {
            let mut text = String::new();
            let number = u64::try_from(plain & u128::from(u64::MAX)).unwrap_or(0);
            if let Some(column) = column {
                // A number that came out of the column is in its dictionary.
                let _known = column.ord_to_str(number, &mut text);
            }
            text
        });
        if *descending { Key::TextDescending(std::cmp::Reverse(text)) } else { Key::Text(text) }
    }
}

/// A double as a number with the same order. What is no number is the greatest.
fn double_key(number: f64) -> u64 {
    let number = if number == 0.0 { 0.0 } else { number };
    let bits = if number.is_nan() { f64::NAN.to_bits() } else { number.to_bits() };
    if bits >> 63 == 0 { bits | (1 << 63) } else { !bits }
}
