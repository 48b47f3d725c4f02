//! Reads filters. What comes out has only fields that exist, and constants of their types.

use super::functions;
use super::lexer::{Lexeme, Lexer};
use super::scope::Scope;
use super::tree::{CompareOp, Literal, Node, PathRef};
use crate::definition::{EdmType, IndexDefinition};
use crate::error::{Result, SearchError};
use crate::limits;
use crate::value::Point;

/// Reads a whole filter.
pub(super) fn parse(definition: &IndexDefinition, text: &str) -> Result<Node> {
    if text.chars().count() > limits::FILTER_CHARS_MAX {
        return Err(SearchError::invalid("the filter is too long"));
    }
    let lexer = Lexer::new(text)?;
    let mut parser = Parser { lexer, scope: Scope::new(definition), depth: 0, clauses: 0 };
    let node = parser.or()?;
    match parser.lexer.current {
        Lexeme::End => Ok(node),
        _ => Err(parser.lexer.unexpected("the end of the filter")),
    }
}

/// The state of reading.
pub(super) struct Parser<'a> {
    pub(super) lexer: Lexer<'a>,
    pub(super) scope: Scope<'a>,
    depth: usize,
    clauses: usize,
}

impl Parser<'_> {
    fn enter(&mut self) -> Result<()> {
        self.depth += 1;
        if self.depth > limits::FILTER_DEPTH_MAX {
            return Err(SearchError::invalid("the filter nests too deeply"));
        }
        Ok(())
    }

    fn or(&mut self) -> Result<Node> {
        self.enter()?;
        let mut parts = vec![self.and()?];
        while self.lexer.take_name("or")? {
            parts.push(self.and()?);
        }
        self.depth -= 1;
        Ok(if parts.len() == 1 { parts.remove(0) } else { Node::Or(parts) })
    }

    fn and(&mut self) -> Result<Node> {
        let mut parts = vec![self.unary()?];
        while self.lexer.take_name("and")? {
            parts.push(self.unary()?);
        }
        Ok(if parts.len() == 1 { parts.remove(0) } else { Node::And(parts) })
    }

    fn unary(&mut self) -> Result<Node> {
        if self.lexer.take_name("not")? {
            self.enter()?;
            let inner = self.unary()?;
            self.depth -= 1;
            return Ok(Node::Not(Box::new(inner)));
        }
        self.clauses += 1;
        if self.clauses > limits::FILTER_CLAUSES_MAX {
            return Err(SearchError::invalid("the filter has too many clauses"));
        }
        self.primary()
    }

    fn primary(&mut self) -> Result<Node> {
        match self.lexer.current.clone() {
            Lexeme::Open => {
                self.lexer.advance()?;
                let inner = self.or()?;
                self.lexer.expect(&Lexeme::Close, "')'")?;
                Ok(inner)
            }
            Lexeme::Name(name) => match name.as_str() {
                "true" | "false" | "null" => self.constant_first(),
                "search.in" => functions::search_in(self),
                "search.ismatch" => functions::is_match(self, false),
                "search.ismatchscoring" => functions::is_match(self, true),
                "geo.intersects" => functions::intersects(self),
                "geo.distance" => self.distance(),
                _ if name.contains('.') => Err(self.lexer.unexpected("a known function")),
                _ => self.field(),
            },
            Lexeme::End => Err(self.lexer.unexpected("an expression")),
            _ => self.constant_first(),
        }
    }

    fn distance(&mut self) -> Result<Node> {
        let (path, point) = functions::distance(self)?;
        let op = self.operator()?;
        let kilometers = functions::number(self)?;
        self.check_distance_op(op)?;
        Ok(Node::Distance { path, point, op, kilometers })
    }

    fn check_distance_op(&self, op: CompareOp) -> Result<()> {
        if matches!(op, CompareOp::Eq | CompareOp::Ne) {
            return Err(SearchError::invalid("geo.distance is compared with lt, le, gt or ge"));
        }
        Ok(())
    }

    /// A constant on the left: `5 lt Rating`, or a constant by itself.
    fn constant_first(&mut self) -> Result<Node> {
        let constant = self.constant()?;
        let Some(op) = self.operator_opt()? else {
            return match constant {
                Constant::Bool(value) => Ok(Node::Constant(value)),
                _ => Err(self.lexer.unexpected("a comparison")),
            };
        };
        if self.lexer.current == Lexeme::Name("geo.distance".to_owned()) {
            let (path, point) = functions::distance(self)?;
            let kilometers = match constant {
                Constant::Int(number) => number as f64,
                Constant::Double(number) => number,
                _ => return Err(SearchError::invalid("geo.distance is compared with a number")),
            };
            self.check_distance_op(op)?;
            return Ok(Node::Distance { path, point, op: op.mirrored(), kilometers });
        }
        if !matches!(self.lexer.current, Lexeme::Name(_)) || self.is_constant() {
            let other = self.constant()?;
            return Ok(Node::Constant(compare_constants(&constant, op, &other)));
        }
        let (path, lambda) = self.scope.read_path(&mut self.lexer)?;
        if lambda.is_some() {
            return Err(SearchError::invalid("'any' and 'all' cannot be compared"));
        }
        self.compare(path, op.mirrored(), constant)
    }

    fn field(&mut self) -> Result<Node> {
        let (path, lambda) = self.scope.read_path(&mut self.lexer)?;
        if let Some(lambda) = lambda {
            return self.lambda(path, &lambda);
        }
        if let Some(op) = self.operator_opt()? {
            let constant = self.constant()?;
            return self.compare(path, op, constant);
        }
        self.scope.check_filterable(&path)?;
        if path.kind != EdmType::Boolean || path.collection {
            return Err(self.lexer.unexpected("a comparison"));
        }
        Ok(Node::Truth(path))
    }

    fn lambda(&mut self, path: PathRef, name: &str) -> Result<Node> {
        if !path.collection {
            let what = format!("'{name}' needs a collection, and '{}' is none", path.full);
            return Err(SearchError::invalid(what));
        }
        self.scope.check_filterable(&path)?;
        self.lexer.expect(&Lexeme::Open, "'('")?;
        if self.lexer.take(&Lexeme::Close)? {
            if name == "all" {
                return Err(SearchError::invalid("'all' needs an expression"));
            }
            return Ok(Node::Any { path, variable: String::new(), body: None });
        }
        let Lexeme::Name(variable) = self.lexer.advance()? else {
            return Err(self.lexer.unexpected("a variable"));
        };
        self.lexer.expect(&Lexeme::Colon, "':'")?;
        self.scope.enter(&variable, &path.full)?;
        let body = self.or()?;
        self.scope.leave();
        self.lexer.expect(&Lexeme::Close, "')'")?;
        Ok(match name {
            "any" => Node::Any { path, variable, body: Some(Box::new(body)) },
            _ => Node::All { path, variable, body: Box::new(body) },
        })
    }

    pub(super) fn operator(&mut self) -> Result<CompareOp> {
        match self.operator_opt()? {
            Some(op) => Ok(op),
            None => Err(self.lexer.unexpected("a comparison")),
        }
    }

    fn operator_opt(&mut self) -> Result<Option<CompareOp>> {
        let Lexeme::Name(name) = &self.lexer.current else { return Ok(None) };
        let op = match name.as_str() {
            "eq" => CompareOp::Eq,
            "ne" => CompareOp::Ne,
            "gt" => CompareOp::Gt,
            "lt" => CompareOp::Lt,
            "ge" => CompareOp::Ge,
            "le" => CompareOp::Le,
            _ => return Ok(None),
        };
        self.lexer.advance()?;
        Ok(Some(op))
    }

    fn is_constant(&self) -> bool {
        matches!(&self.lexer.current, Lexeme::Name(it) if matches!(it.as_str(), "true" | "false" | "null"))
    }

    fn constant(&mut self) -> Result<Constant> {
        let constant = match &self.lexer.current {
            Lexeme::Text(text) => Constant::Text(text.clone()),
            Lexeme::Int(number) => Constant::Int(*number),
            Lexeme::Double(number) => Constant::Double(*number),
            Lexeme::Date(ms) => Constant::Date(*ms),
            Lexeme::Name(name) => match name.as_str() {
                "true" => Constant::Bool(true),
                "false" => Constant::Bool(false),
                "null" => Constant::Null,
                _ => {
                    let what = "a constant (comparing a field with another field is not supported)";
                    return Err(self.lexer.unexpected(what));
                }
            },
            _ => return Err(self.lexer.unexpected("a constant")),
        };
        self.lexer.advance()?;
        Ok(constant)
    }

    fn compare(&self, path: PathRef, op: CompareOp, constant: Constant) -> Result<Node> {
        self.scope.check_filterable(&path)?;
        let nothing = matches!(constant, Constant::Null);
        if path.collection || (path.kind == EdmType::Complex && !nothing) {
            let what = format!("'{}' cannot be compared with a constant", path.full);
            return Err(SearchError::invalid(what));
        }
        if nothing && !matches!(op, CompareOp::Eq | CompareOp::Ne) {
            return Err(SearchError::invalid("null can only be compared with eq or ne"));
        }
        let value = typed(self.scope.definition(), &path, op, constant)?;
        Ok(Node::Compare { path, op, value })
    }
}

/// A constant as it was written.
enum Constant {
    Null,
    Bool(bool),
    Int(i64),
    Double(f64),
    Text(String),
    Date(i64),
}

fn typed(
    definition: &IndexDefinition,
    path: &PathRef,
    op: CompareOp,
    constant: Constant,
) -> Result<Literal> {
    let equality = matches!(op, CompareOp::Eq | CompareOp::Ne);
    Ok(match (path.kind, constant) {
        (_, Constant::Null) => Literal::Null,
        (EdmType::String, Constant::Text(text)) => {
            Literal::Text(normalized(definition, path, text))
        }
        (EdmType::Boolean, Constant::Bool(value)) if equality => Literal::Bool(value),
        (EdmType::Int32 | EdmType::Int64, Constant::Int(number)) => Literal::Int(number),
        (EdmType::Int32 | EdmType::Int64, Constant::Double(number)) => Literal::Double(number),
        (EdmType::Double, Constant::Int(number)) => Literal::Double(number as f64),
        (EdmType::Double, Constant::Double(number)) => Literal::Double(number),
        (EdmType::DateTimeOffset, Constant::Date(ms)) => Literal::Date(ms),
        (kind, _) => {
            return Err(SearchError::invalid(format!(
                "A binary operator with incompatible types was detected: '{}' is of type '{}'.",
                path.full,
                kind.name()
            )));
        }
    })
}

/// A string as the field's normalizer makes it.
pub(super) fn normalized(definition: &IndexDefinition, path: &PathRef, text: String) -> String {
    let normalizer = definition.leaf(&path.full).and_then(|it| it.normalizer.as_deref());
    match normalizer.and_then(|name| definition.analysis.normalizer(name).ok()) {
        Some(normalizer) => normalizer.normalize(&text),
        None => text,
    }
}

fn compare_constants(left: &Constant, op: CompareOp, right: &Constant) -> bool {
    let number = |it: &Constant| match it {
        Constant::Int(number) => Some(*number as f64),
        Constant::Double(number) => Some(*number),
        _ => None,
    };
    let order = match (left, right) {
        (Constant::Text(left), Constant::Text(right)) => Some(left.cmp(right)),
        (Constant::Bool(left), Constant::Bool(right)) => Some(left.cmp(right)),
        (Constant::Date(left), Constant::Date(right)) => Some(left.cmp(right)),
        (Constant::Null, Constant::Null) => Some(std::cmp::Ordering::Equal),
        _ => number(left).zip(number(right)).and_then(|(left, right)| left.partial_cmp(&right)),
    };
    order.map_or(op == CompareOp::Ne, |order| op.accepts(order))
}

/// The point in `POINT(lon lat)`.
pub(crate) fn parse_geo_point(text: &str) -> Option<Point> {
    let inner = text.trim().strip_prefix("POINT")?.trim().strip_prefix('(')?.strip_suffix(')')?;
    let mut numbers = inner.split_whitespace().map(str::parse::<f64>);
    match (numbers.next()?, numbers.next()?, numbers.next()) {
        (Ok(longitude), Ok(latitude), None) => Point::new(longitude, latitude),
        _ => None,
    }
}
