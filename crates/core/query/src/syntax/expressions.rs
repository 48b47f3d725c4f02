//! Tokens into the tree: expressions, from the loosest binding down to the tightest.

use lazuli_value::Value;

use super::lexer::Token;
use super::parser::{Parser, is_reserved};
use super::tree::{BinaryOp, Expr, ExprKind, SubqueryKind, UnaryOp};
use crate::error::{QueryError, Span};
use crate::limits::DEPTH_MAX;

impl Parser {
    pub(super) fn expression(&mut self) -> Result<Expr, QueryError> {
        self.descend()?;
        let expression = self.conditional()?;
        self.depth -= 1;
        Ok(expression)
    }

    /// Makes a node that ends with the token before the next one.
    fn node(&self, kind: ExprKind, start: Span) -> Result<Expr, QueryError> {
        let height = kind.height();
        if height > DEPTH_MAX {
            return Err(self.too_deep());
        }
        Ok(Expr { kind, span: start.to(self.last_span()), height })
    }

    fn conditional(&mut self) -> Result<Expr, QueryError> {
        let condition = self.coalesce()?;
        if !self.take_symbol("?") {
            return Ok(condition);
        }
        let start = condition.span;
        let yes = self.expression()?;
        self.symbol(":")?;
        let no = self.expression()?;
        self.node(ExprKind::Conditional(Box::new(condition), Box::new(yes), Box::new(no)), start)
    }

    fn coalesce(&mut self) -> Result<Expr, QueryError> {
        let mut first = self.or()?;
        let start = first.span;
        while self.take_symbol("??") {
            let second = self.or()?;
            first = self.node(ExprKind::Coalesce(Box::new(first), Box::new(second)), start)?;
        }
        Ok(first)
    }

    fn or(&mut self) -> Result<Expr, QueryError> {
        let first = self.and()?;
        let start = first.span;
        let mut parts = vec![first];
        while self.take_word("OR") {
            parts.push(self.and()?);
        }
        if parts.len() == 1 { Ok(parts.remove(0)) } else { self.node(ExprKind::Or(parts), start) }
    }

    fn and(&mut self) -> Result<Expr, QueryError> {
        let first = self.test()?;
        let start = first.span;
        let mut parts = vec![first];
        while self.take_word("AND") {
            parts.push(self.test()?);
        }
        if parts.len() == 1 { Ok(parts.remove(0)) } else { self.node(ExprKind::And(parts), start) }
    }

    /// BETWEEN, IN and LIKE.
    fn test(&mut self) -> Result<Expr, QueryError> {
        let mut value = self.binary(0)?;
        let start = value.span;
        loop {
            let next_is_test = |token: &Token| {
                let words = ["BETWEEN", "IN", "LIKE"];
                matches!(token, Token::Word(it) if words.iter().any(|w| w.eq_ignore_ascii_case(it)))
            };
            let is_not = self.is_word("NOT") && next_is_test(self.peek_behind(1));
            if is_not {
                self.next();
            }
            let inside = Box::new(value);
            let kind = if self.take_word("BETWEEN") {
                let low = Box::new(self.binary(0)?);
                self.word("AND")?;
                let high = Box::new(self.binary(0)?);
                ExprKind::Between { value: inside, low, high, is_not }
            } else if self.take_word("IN") {
                self.symbol("(")?;
                let list = self.list(Self::expression)?;
                self.symbol(")")?;
                ExprKind::In { value: inside, list, is_not }
            } else if self.take_word("LIKE") {
                let pattern = Box::new(self.binary(0)?);
                let escape = if self.take_word("ESCAPE") { Some(self.text()?) } else { None };
                ExprKind::Like { value: inside, pattern, escape, is_not }
            } else {
                return Ok(*inside);
            };
            value = self.node(kind, start)?;
        }
    }

    fn text(&mut self) -> Result<String, QueryError> {
        match self.peek().clone() {
            Token::Text(text) => {
                self.next();
                Ok(text)
            }
            _ => self.fail(),
        }
    }

    /// Operators that bind more tightly than a bound, the tightest first.
    fn binary(&mut self, bound: u8) -> Result<Expr, QueryError> {
        let mut left = self.unary()?;
        loop {
            let Token::Symbol(symbol) = self.peek() else { return Ok(left) };
            let Some(operator) = BinaryOp::of_symbol(symbol) else { return Ok(left) };
            let (_, strength) = operator.symbol();
            if strength <= bound {
                return Ok(left);
            }
            self.next();
            let right = self.binary(strength)?;
            let start = left.span;
            let kind = ExprKind::Binary(operator, Box::new(left), Box::new(right));
            left = self.node(kind, start)?;
        }
    }

    fn unary(&mut self) -> Result<Expr, QueryError> {
        let operator = match self.peek() {
            Token::Symbol("-") => UnaryOp::Minus,
            Token::Symbol("+") => UnaryOp::Plus,
            Token::Symbol("~") => UnaryOp::BitNot,
            Token::Word(word) if word.eq_ignore_ascii_case("NOT") => UnaryOp::Not,
            _ => return self.postfix(),
        };
        let start = self.span();
        self.next();
        self.descend()?;
        let inside = self.unary()?;
        self.depth -= 1;
        if let (UnaryOp::Minus, ExprKind::Literal(Some(number))) = (operator, &inside.kind)
            && let Some(negated) = negated(number)
        {
            return self.node(ExprKind::Literal(Some(negated)), start);
        }
        self.node(ExprKind::Unary(operator, Box::new(inside)), start)
    }

    fn postfix(&mut self) -> Result<Expr, QueryError> {
        let mut value = self.primary()?;
        let start = value.span;
        loop {
            if self.take_symbol(".") {
                let name = self.name()?;
                value = self.node(ExprKind::Property(Box::new(value), name), start)?;
            } else if self.take_symbol("[") {
                let index = self.expression()?;
                self.symbol("]")?;
                let kind = match index.kind {
                    ExprKind::Literal(Some(Value::String(name))) => {
                        ExprKind::Property(Box::new(value), name)
                    }
                    _ => ExprKind::Index(Box::new(value), Box::new(index)),
                };
                value = self.node(kind, start)?;
            } else {
                return Ok(value);
            }
        }
    }

    fn primary(&mut self) -> Result<Expr, QueryError> {
        let start = self.span();
        let kind = match self.peek().clone() {
            Token::Number(number) => {
                self.next();
                ExprKind::Literal(Some(number))
            }
            Token::Text(text) => {
                self.next();
                ExprKind::Literal(Some(Value::String(text)))
            }
            Token::Parameter(name) => {
                self.next();
                ExprKind::Parameter(name)
            }
            Token::Symbol("(") => return self.parenthesis(),
            Token::Symbol("[") => {
                self.next();
                let elements = self.until("]", Self::expression)?;
                ExprKind::Array(elements)
            }
            Token::Symbol("{") => {
                self.next();
                let properties = self.until("}", Self::property)?;
                ExprKind::Object(properties)
            }
            Token::Word(word) => self.word_expression(&word)?,
            Token::Symbol(_) | Token::End => return self.fail(),
        };
        self.node(kind, start)
    }

    /// An expression or a subquery in parentheses.
    fn parenthesis(&mut self) -> Result<Expr, QueryError> {
        let start = self.span();
        self.next();
        if self.is_word("SELECT") {
            let select = self.select()?;
            self.symbol(")")?;
            return self.node(ExprKind::Subquery(SubqueryKind::Scalar, Box::new(select)), start);
        }
        let inside = self.expression()?;
        self.symbol(")")?;
        Ok(Expr { span: start.to(self.last_span()), ..inside })
    }

    fn until<T>(
        &mut self,
        end: &str,
        one: impl Fn(&mut Self) -> Result<T, QueryError>,
    ) -> Result<Vec<T>, QueryError> {
        if self.take_symbol(end) {
            return Ok(Vec::new());
        }
        let list = self.list(one)?;
        self.symbol(end)?;
        Ok(list)
    }

    fn property(&mut self) -> Result<(String, Expr), QueryError> {
        let name = match self.peek().clone() {
            Token::Word(name) | Token::Text(name) => name,
            _ => return self.fail(),
        };
        self.next();
        self.symbol(":")?;
        Ok((name, self.expression()?))
    }

    fn word_expression(&mut self, word: &str) -> Result<ExprKind, QueryError> {
        let literal = match word {
            "undefined" => Some(None),
            "null" => Some(Some(Value::Null)),
            "true" => Some(Some(Value::Bool(true))),
            "false" => Some(Some(Value::Bool(false))),
            _ => None,
        };
        if let Some(literal) = literal {
            self.next();
            return Ok(ExprKind::Literal(literal));
        }
        if word == "udf" {
            self.next();
            self.symbol(".")?;
            let name = self.name()?;
            self.symbol("(")?;
            let arguments = self.until(")", Self::expression)?;
            return Ok(ExprKind::UserCall { name, arguments });
        }
        if let Some(kind) = self.subquery_kind(word) {
            self.next();
            self.next();
            let select = self.select()?;
            self.symbol(")")?;
            return Ok(ExprKind::Subquery(kind, Box::new(select)));
        }
        if is_reserved(word) {
            return self.fail();
        }
        self.next();
        if self.take_symbol("(") {
            let arguments = self.until(")", Self::expression)?;
            return Ok(ExprKind::Call { name: word.to_owned(), arguments });
        }
        Ok(ExprKind::Name(word.to_owned()))
    }

    /// The kind of subquery that begins here, if `word(SELECT` stands here.
    fn subquery_kind(&self, word: &str) -> Option<SubqueryKind> {
        let is_select =
            matches!(self.peek_behind(2), Token::Word(it) if it.eq_ignore_ascii_case("SELECT"));
        if !matches!(self.peek_behind(1), Token::Symbol("(")) || !is_select {
            return None;
        }
        match word.to_ascii_uppercase().as_str() {
            "EXISTS" => Some(SubqueryKind::Exists),
            "ARRAY" => Some(SubqueryKind::Array),
            "ALL" => Some(SubqueryKind::All),
            "FIRST" => Some(SubqueryKind::First),
            "LAST" => Some(SubqueryKind::Last),
            _ => None,
        }
    }
}

/// The constant of a number with a minus in front.
fn negated(number: &Value) -> Option<Value> {
    match number {
        Value::Int64(0) => Some(Value::Double(-0.0)),
        Value::Int64(number) => number.checked_neg().map(Value::Int64),
        Value::Double(number) if *number == 9_223_372_036_854_775_808.0 => {
            Some(Value::Int64(i64::MIN))
        }
        Value::Double(number) => Some(Value::Double(-number)),
        _ => None,
    }
}
