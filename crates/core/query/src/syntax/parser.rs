//! Tokens into the tree: clauses. Expressions are in `expressions.rs`.

use super::lexer::{Token, tokens};
use super::tree::{Collection, Count, Expr, FromItem, OrderItem, PathStep, Projection, Select};
use crate::error::{QueryError, Span, code};
use crate::limits::{DEPTH_MAX, TEXT_BYTES_MAX};

/// Words that are no names. The rest of the grammar's words mean something only in their place.
const RESERVED: &[&str] = &[
    "AND", "ARRAY", "AS", "ASC", "BETWEEN", "BY", "DESC", "DISTINCT", "ESCAPE", "EXISTS", "FROM",
    "GROUP", "IN", "JOIN", "LIKE", "LIMIT", "NOT", "OFFSET", "OR", "ORDER", "SELECT", "TOP",
    "VALUE", "WHERE",
];

/// The tree of a query's text.
pub(crate) fn parse(text: &str) -> Result<Select, QueryError> {
    if text.len() > TEXT_BYTES_MAX {
        let message = format!(
            "The SQL query text exceeded the maximum limit of {TEXT_BYTES_MAX} characters."
        );
        return Err(QueryError::invalid(message));
    }
    let mut parser = Parser { tokens: tokens(text)?, at: 0, depth: 0 };
    let select = parser.select()?;
    if parser.peek() == &Token::End { Ok(select) } else { parser.fail() }
}

pub(super) struct Parser {
    tokens: Vec<(Token, Span)>,
    at: usize,
    pub(super) depth: usize,
}

impl Parser {
    pub(super) fn peek(&self) -> &Token {
        &self.tokens[self.at].0
    }

    pub(super) fn peek_behind(&self, places: usize) -> &Token {
        &self.tokens[(self.at + places).min(self.tokens.len() - 1)].0
    }

    pub(super) fn span(&self) -> Span {
        self.tokens[self.at].1
    }

    /// The token before the next one.
    pub(super) fn last_span(&self) -> Span {
        self.tokens[self.at.saturating_sub(1)].1
    }

    pub(super) fn next(&mut self) -> Token {
        let token = self.tokens[self.at].0.clone();
        // The last token is the end, and stays.
        self.at = (self.at + 1).min(self.tokens.len() - 1);
        token
    }

    /// The error of a token that cannot stand where it does.
    pub(super) fn error(&self) -> QueryError {
        let near = match self.peek() {
            Token::Word(word) => word.clone(),
            Token::Number(number) => number.to_json(),
            Token::Text(text) => text.clone(),
            Token::Parameter(name) => name.clone(),
            Token::Symbol(symbol) => (*symbol).to_owned(),
            Token::End => "<EOF>".to_owned(),
        };
        let message = format!("Syntax error, incorrect syntax near '{near}'.");
        QueryError::invalid(message).at(code::SYNTAX, self.span())
    }

    pub(super) fn fail<T>(&self) -> Result<T, QueryError> {
        Err(self.error())
    }

    pub(super) fn is_symbol(&self, symbol: &str) -> bool {
        matches!(self.peek(), Token::Symbol(it) if *it == symbol)
    }

    pub(super) fn take_symbol(&mut self, symbol: &str) -> bool {
        let is = self.is_symbol(symbol);
        if is {
            self.next();
        }
        is
    }

    pub(super) fn symbol(&mut self, symbol: &str) -> Result<(), QueryError> {
        if self.take_symbol(symbol) { Ok(()) } else { self.fail() }
    }

    pub(super) fn is_word(&self, word: &str) -> bool {
        matches!(self.peek(), Token::Word(it) if it.eq_ignore_ascii_case(word))
    }

    pub(super) fn take_word(&mut self, word: &str) -> bool {
        let is = self.is_word(word);
        if is {
            self.next();
        }
        is
    }

    pub(super) fn word(&mut self, word: &str) -> Result<(), QueryError> {
        if self.take_word(word) { Ok(()) } else { self.fail() }
    }

    /// A word that may be a name.
    pub(super) fn is_name(&self) -> bool {
        matches!(self.peek(), Token::Word(word) if !is_reserved(word))
    }

    pub(super) fn name(&mut self) -> Result<String, QueryError> {
        if !self.is_name() {
            return self.fail();
        }
        match self.next() {
            Token::Word(word) => Ok(word),
            _ => self.fail(),
        }
    }

    /// Goes one level deeper.
    pub(super) fn descend(&mut self) -> Result<(), QueryError> {
        self.depth += 1;
        if self.depth <= DEPTH_MAX { Ok(()) } else { Err(self.too_deep()) }
    }

    pub(super) fn too_deep(&self) -> QueryError {
        let message = format!("The query is nested deeper than the limit of {DEPTH_MAX} levels.");
        QueryError::invalid(message).at(code::SYNTAX, self.span())
    }

    pub(super) fn select(&mut self) -> Result<Select, QueryError> {
        self.descend()?;
        let start = self.span();
        self.word("SELECT")?;
        let is_distinct = self.take_word("DISTINCT");
        let top = if self.take_word("TOP") { Some(self.count()?) } else { None };
        let projection = self.projection()?;
        let from = if self.take_word("FROM") { self.sources()? } else { Vec::new() };
        let filter = if self.take_word("WHERE") { Some(self.expression()?) } else { None };
        let group = if self.take_word("GROUP") {
            self.word("BY")?;
            self.list(Self::expression)?
        } else {
            Vec::new()
        };
        let (order, is_ranked) =
            if self.take_word("ORDER") { self.order()? } else { (Vec::new(), false) };
        let (mut offset, mut limit) = (None, None);
        if self.take_word("OFFSET") {
            offset = Some(self.count()?);
            self.word("LIMIT")?;
            limit = Some(self.count()?);
        }
        let height = height(&projection, &from, filter.iter().chain(&group), &order);
        self.depth -= 1;
        Ok(Select {
            is_distinct,
            top,
            projection,
            from,
            filter,
            group,
            order,
            is_ranked,
            offset,
            limit,
            span: start.to(self.last_span()),
            height,
        })
    }

    pub(super) fn list<T>(
        &mut self,
        one: impl Fn(&mut Self) -> Result<T, QueryError>,
    ) -> Result<Vec<T>, QueryError> {
        let mut list = vec![one(self)?];
        while self.take_symbol(",") {
            list.push(one(self)?);
        }
        Ok(list)
    }

    fn count(&mut self) -> Result<Count, QueryError> {
        let span = self.span();
        match self.peek().clone() {
            Token::Number(lazuli_value::Value::Int64(number)) => {
                self.next();
                Ok(Count::Number(number.unsigned_abs()))
            }
            Token::Parameter(name) => {
                self.next();
                Ok(Count::Parameter(name, span))
            }
            _ => self.fail(),
        }
    }

    fn projection(&mut self) -> Result<Projection, QueryError> {
        let span = self.span();
        if self.take_symbol("*") {
            return Ok(Projection::Star(span));
        }
        if self.take_word("VALUE") {
            return Ok(Projection::Value(self.expression()?));
        }
        Ok(Projection::List(self.list(Self::projected)?))
    }

    fn projected(&mut self) -> Result<(Expr, Option<String>), QueryError> {
        let expression = self.expression()?;
        let alias = self.alias()?;
        Ok((expression, alias))
    }

    fn alias(&mut self) -> Result<Option<String>, QueryError> {
        if self.take_word("AS") || self.is_name() {
            return self.name().map(Some);
        }
        Ok(None)
    }

    fn sources(&mut self) -> Result<Vec<FromItem>, QueryError> {
        let mut items = vec![self.source()?];
        while self.take_word("JOIN") {
            items.push(self.source()?);
        }
        Ok(items)
    }

    fn source(&mut self) -> Result<FromItem, QueryError> {
        let start = self.span();
        let is_each =
            matches!(self.peek_behind(1), Token::Word(it) if it.eq_ignore_ascii_case("IN"));
        if is_each && self.is_name() {
            let alias = self.name()?;
            self.word("IN")?;
            let collection = self.collection()?;
            let span = start.to(self.last_span());
            return Ok(FromItem { collection, alias: Some(alias), is_each: true, span });
        }
        let collection = self.collection()?;
        let alias = self.alias()?;
        Ok(FromItem { collection, alias, is_each: false, span: start.to(self.last_span()) })
    }

    fn collection(&mut self) -> Result<Collection, QueryError> {
        if self.take_symbol("(") {
            let select = self.select()?;
            self.symbol(")")?;
            return Ok(Collection::Subquery(Box::new(select)));
        }
        let start = self.span();
        let root = self.name()?;
        let mut steps = Vec::new();
        loop {
            if self.take_symbol(".") {
                steps.push(PathStep::Name(self.name()?));
            } else if self.take_symbol("[") {
                steps.push(match self.peek().clone() {
                    Token::Text(text) => PathStep::Name(text),
                    Token::Number(lazuli_value::Value::Int64(place)) => {
                        PathStep::Place(place.unsigned_abs())
                    }
                    _ => return self.fail(),
                });
                self.next();
                self.symbol("]")?;
            } else {
                let span = start.to(self.last_span());
                return Ok(Collection::Path { root, steps, span });
            }
        }
    }

    fn order(&mut self) -> Result<(Vec<OrderItem>, bool), QueryError> {
        self.word("BY")?;
        // `rank` can also be the name of a source, then it is followed by a step and not by a function.
        let is_ranked = self.is_word("RANK") && matches!(self.peek_behind(1), Token::Word(_));
        if is_ranked {
            self.next();
        }
        let order = self.list(|parser| {
            let expression = parser.expression()?;
            let is_descending = parser.take_word("DESC");
            if !is_descending {
                parser.take_word("ASC");
            }
            Ok(OrderItem { expression, is_descending })
        })?;
        Ok((order, is_ranked))
    }
}

fn height<'e>(
    projection: &'e Projection,
    from: &[FromItem],
    others: impl Iterator<Item = &'e Expr>,
    order: &'e [OrderItem],
) -> usize {
    let mut most = others.map(|expression| expression.height).max().unwrap_or(0);
    match projection {
        Projection::Star(_) => {}
        Projection::Value(value) => most = most.max(value.height),
        Projection::List(list) => {
            most = list.iter().fold(most, |most, (expression, _)| most.max(expression.height));
        }
    }
    for item in from {
        if let Collection::Subquery(select) = &item.collection {
            most = most.max(select.height);
        }
    }
    order.iter().fold(most, |most, item| most.max(item.expression.height)) + 1
}

pub(super) fn is_reserved(word: &str) -> bool {
    RESERVED.iter().any(|reserved| reserved.eq_ignore_ascii_case(word)) || is_constant(word)
}

/// Words that are written in small letters only, so that `TRUE` is a name.
pub(super) fn is_constant(word: &str) -> bool {
    matches!(word, "true" | "false" | "null" | "undefined" | "udf")
}
