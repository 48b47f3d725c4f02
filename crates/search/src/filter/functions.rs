//! The functions of filters.

use super::lexer::Lexeme;
use super::parser::{Parser, normalized, parse_geo_point};
use super::tree::{MatchCall, Node, PathRef};
use crate::definition::EdmType;
use crate::error::{Result, SearchError};
use crate::limits;
use crate::value::Point;
use std::collections::BTreeSet;

/// `search.in(field, 'a,b', ',')`.
pub(super) fn search_in(parser: &mut Parser<'_>) -> Result<Node> {
    open(parser)?;
    let (path, _) = parser.scope.read_path(&mut parser.lexer)?;
    parser.scope.check_filterable(&path)?;
    if path.kind != EdmType::String || path.collection {
        return Err(SearchError::invalid("search.in needs a field or variable of type Edm.String"));
    }
    parser.lexer.expect(&Lexeme::Comma, "','")?;
    let list = parser.lexer.expect_text()?;
    let mut delimiters = " ,".to_owned();
    if parser.lexer.take(&Lexeme::Comma)? {
        delimiters = parser.lexer.expect_text()?;
        if delimiters.is_empty() {
            return Err(SearchError::invalid("search.in needs at least one delimiter"));
        }
    }
    parser.lexer.expect(&Lexeme::Close, "')'")?;
    let definition = parser.scope.definition();
    let values: BTreeSet<String> = list
        .split(|c| delimiters.contains(c))
        .map(str::trim)
        .filter(|it| !it.is_empty())
        .map(|it| normalized(definition, &path, it.to_owned()))
        .collect();
    Ok(Node::In { path, values })
}

/// `search.ismatch('text', 'fields', 'full', 'all')`.
pub(super) fn is_match(parser: &mut Parser<'_>, scoring: bool) -> Result<Node> {
    if parser.scope.in_lambda() {
        let what = "search.ismatch and search.ismatchscoring cannot stand inside of 'any' or 'all'";
        return Err(SearchError::invalid(what));
    }
    open(parser)?;
    let search = parser.lexer.expect_text()?;
    let mut arguments = Vec::new();
    while parser.lexer.take(&Lexeme::Comma)? {
        if parser.lexer.take_name("null")? {
            arguments.push(None);
        } else {
            arguments.push(Some(parser.lexer.expect_text()?));
        }
    }
    parser.lexer.expect(&Lexeme::Close, "')'")?;
    let mut arguments = arguments.into_iter();
    let fields = arguments.next().flatten();
    let full = match arguments.next().flatten().as_deref() {
        None | Some("simple") => false,
        Some("full") => true,
        Some(_) => return Err(SearchError::invalid("queryType must be 'simple' or 'full'")),
    };
    let all = match arguments.next().flatten().as_deref() {
        None | Some("any") => false,
        Some("all") => true,
        Some(_) => return Err(SearchError::invalid("searchMode must be 'any' or 'all'")),
    };
    if arguments.next().is_some() {
        return Err(SearchError::invalid("search.ismatch has at most four arguments"));
    }
    Ok(Node::Match(MatchCall { search, fields, full, all, scoring }))
}

/// `geo.intersects(field, geography'POLYGON((…))')`.
pub(super) fn intersects(parser: &mut Parser<'_>) -> Result<Node> {
    open(parser)?;
    let path = geo_path(parser)?;
    parser.lexer.expect(&Lexeme::Comma, "','")?;
    let Lexeme::Geography(text) = parser.lexer.advance()? else {
        return Err(SearchError::invalid("geo.intersects needs a polygon"));
    };
    parser.lexer.expect(&Lexeme::Close, "')'")?;
    Ok(Node::Within { path, polygon: parse_polygon(&text)? })
}

/// `geo.distance(field, geography'POINT(…)')`, in either order.
pub(crate) fn distance(parser: &mut Parser<'_>) -> Result<(PathRef, Point)> {
    open(parser)?;
    let point = |text: &str| {
        parse_geo_point(text)
            .ok_or_else(|| SearchError::invalid(format!("'{text}' is not a point")))
    };
    let result = if let Lexeme::Geography(text) = parser.lexer.current.clone() {
        parser.lexer.advance()?;
        parser.lexer.expect(&Lexeme::Comma, "','")?;
        (geo_path(parser)?, point(&text)?)
    } else {
        let path = geo_path(parser)?;
        parser.lexer.expect(&Lexeme::Comma, "','")?;
        let Lexeme::Geography(text) = parser.lexer.advance()? else {
            return Err(SearchError::invalid("geo.distance needs a point"));
        };
        (path, point(&text)?)
    };
    parser.lexer.expect(&Lexeme::Close, "')'")?;
    Ok(result)
}

/// A number of kilometers.
pub(super) fn number(parser: &mut Parser<'_>) -> Result<f64> {
    match parser.lexer.current {
        Lexeme::Int(number) => {
            parser.lexer.advance()?;
            Ok(number as f64)
        }
        Lexeme::Double(number) => {
            parser.lexer.advance()?;
            Ok(number)
        }
        _ => Err(parser.lexer.unexpected("a number")),
    }
}

fn open(parser: &mut Parser<'_>) -> Result<()> {
    parser.lexer.advance()?;
    parser.lexer.expect(&Lexeme::Open, "'('")
}

fn geo_path(parser: &mut Parser<'_>) -> Result<PathRef> {
    let (path, _) = parser.scope.read_path(&mut parser.lexer)?;
    parser.scope.check_filterable(&path)?;
    if path.kind != EdmType::GeographyPoint || path.collection {
        return Err(SearchError::invalid(format!("'{}' is not a geography point", path.full)));
    }
    Ok(path)
}

/// The ring of `POLYGON((lon lat, …))`.
fn parse_polygon(text: &str) -> Result<Vec<Point>> {
    let wrong = || SearchError::invalid("a polygon is POLYGON((longitude latitude, …)), closed");
    let inner = text
        .trim()
        .strip_prefix("POLYGON")
        .map(str::trim)
        .and_then(|it| it.strip_prefix("(("))
        .and_then(|it| it.strip_suffix("))"))
        .ok_or_else(wrong)?;
    let mut points = Vec::new();
    for pair in inner.split(',') {
        let point = parse_geo_point(&format!("POINT({})", pair.trim())).ok_or_else(wrong)?;
        points.push(point);
        if points.len() > limits::POLYGON_POINTS_MAX {
            return Err(SearchError::invalid("the polygon has too many points"));
        }
    }
    if points.len() < 4 || points.first() != points.last() {
        return Err(wrong());
    }
    Ok(points)
}
