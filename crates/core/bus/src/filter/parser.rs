//! Tokens into trees, by the precedence of SQL: OR, AND, NOT, comparisons, sums, products, signs.

use lazuli_engine::Result;

use super::action::Statement;
use super::lexer::{Token, tokens};
use super::tree::{Arithmetic, Compare, Expression};
use super::{Value, bad};
use crate::limits::{ACTION_STATEMENTS_MAX, FILTER_DEPTH_MAX, FILTER_NODES_MAX};
use crate::{PropertyName, SystemProperty};

/// Parses the condition of a filter.
pub(super) fn condition(text: &str) -> Result<Expression> {
    let mut parser = Parser::new(text)?;
    let condition = parser.disjunction()?;
    parser.end()?;
    Ok(condition)
}

/// Parses the statements of an action.
pub(super) fn statements(text: &str) -> Result<Vec<Statement>> {
    let mut parser = Parser::new(text)?;
    let mut statements = Vec::new();
    loop {
        while parser.symbol(";") || (!statements.is_empty() && parser.symbol(",")) {}
        if *parser.peek() == Token::End {
            break;
        }
        if statements.len() == ACTION_STATEMENTS_MAX {
            return Err(bad(format!("more than {ACTION_STATEMENTS_MAX} statements")));
        }
        statements.push(parser.statement()?);
    }
    if statements.is_empty() {
        return Err(bad("an action has at least one statement"));
    }
    Ok(statements)
}

struct Parser {
    tokens: Vec<Token>,
    at: usize,
    depth: usize,
    nodes: usize,
}

const COMPARISONS: &[(&str, Compare)] = &[
    ("=", Compare::Equal),
    ("<>", Compare::NotEqual),
    ("!=", Compare::NotEqual),
    ("<=", Compare::LessOrEqual),
    (">=", Compare::GreaterOrEqual),
    ("<", Compare::Less),
    (">", Compare::Greater),
];

/// Words that are no names of properties unless they are in brackets or quotes.
const KEYWORDS: &[&str] = &[
    "and", "or", "not", "in", "like", "escape", "is", "null", "exists", "true", "false", "set",
    "remove",
];

impl Parser {
    fn new(text: &str) -> Result<Self> {
        Ok(Self { tokens: tokens(text)?, at: 0, depth: 0, nodes: 0 })
    }

    fn peek(&self) -> &Token {
        // The last token is the end, and is never passed.
        self.tokens.get(self.at).unwrap_or(&Token::End)
    }

    fn next(&mut self) -> Token {
        let token = self.peek().clone();
        if token != Token::End {
            self.at += 1;
        }
        token
    }

    fn symbol(&mut self, wanted: &str) -> bool {
        let is_it = matches!(self.peek(), Token::Symbol(symbol) if *symbol == wanted);
        self.at += usize::from(is_it);
        is_it
    }

    fn word(&mut self, wanted: &str) -> bool {
        let is_it = matches!(self.peek(), Token::Word(word) if word.eq_ignore_ascii_case(wanted));
        self.at += usize::from(is_it);
        is_it
    }

    fn expect(&mut self, symbol: &str) -> Result<()> {
        if self.symbol(symbol) { Ok(()) } else { Err(self.unexpected(symbol)) }
    }

    fn end(&self) -> Result<()> {
        if *self.peek() == Token::End { Ok(()) } else { Err(self.unexpected("the end")) }
    }

    fn unexpected(&self, wanted: &str) -> lazuli_engine::Error {
        bad(format!("{wanted} is expected instead of {:?}", self.peek()))
    }

    /// Counts a node of the tree.
    fn node(&mut self, expression: Expression) -> Result<Expression> {
        self.nodes += 1;
        if self.nodes > FILTER_NODES_MAX {
            return Err(bad(format!("more than {FILTER_NODES_MAX} operators and values")));
        }
        Ok(expression)
    }

    fn deeper<T>(&mut self, parse: impl FnOnce(&mut Self) -> Result<T>) -> Result<T> {
        self.depth += 1;
        if self.depth > FILTER_DEPTH_MAX {
            return Err(bad(format!("nested deeper than {FILTER_DEPTH_MAX} levels")));
        }
        let parsed = parse(self);
        self.depth -= 1;
        parsed
    }

    fn disjunction(&mut self) -> Result<Expression> {
        let mut left = self.conjunction()?;
        let mut chain = 0;
        while self.word("or") {
            let right = self.conjunction()?;
            left = self.node(Expression::Or(left.into(), right.into()))?;
            chain = self.chained(chain)?;
        }
        Ok(left)
    }

    fn conjunction(&mut self) -> Result<Expression> {
        let mut left = self.negation()?;
        let mut chain = 0;
        while self.word("and") {
            let right = self.negation()?;
            left = self.node(Expression::And(left.into(), right.into()))?;
            chain = self.chained(chain)?;
        }
        Ok(left)
    }

    /// A chain of operators of one precedence is a tree as deep as it is long; the length of the text bounds it.
    fn chained(&self, chain: usize) -> Result<usize> {
        match chain + 1 {
            chain if chain > FILTER_NODES_MAX => Err(bad("a chain of operators is too long")),
            chain => Ok(chain),
        }
    }

    fn negation(&mut self) -> Result<Expression> {
        if self.word("not") {
            let inner = self.deeper(Self::negation)?;
            return self.node(Expression::Not(inner.into()));
        }
        self.comparison()
    }

    fn comparison(&mut self) -> Result<Expression> {
        if self.word("exists") {
            self.expect("(")?;
            let name = self.property()?;
            self.expect(")")?;
            return self.node(Expression::Exists(name));
        }
        let left = self.sum()?;
        if self.word("is") {
            let negated = self.word("not");
            if !self.word("null") {
                return Err(self.unexpected("NULL"));
            }
            let is_null = self.node(Expression::IsNull(left.into()))?;
            return self.negated(negated, is_null);
        }
        let negated = self.word("not");
        if self.word("in") {
            return self.list(left).and_then(|list| self.negated(negated, list));
        }
        if self.word("like") {
            let (text, pattern) = (left.into(), self.sum()?.into());
            let escape = if self.word("escape") { Some(self.sum()?.into()) } else { None };
            let like = self.node(Expression::Like { text, pattern, escape })?;
            return self.negated(negated, like);
        }
        if negated {
            return Err(self.unexpected("IN or LIKE"));
        }
        match COMPARISONS.iter().find(|(symbol, _)| self.symbol(symbol)) {
            Some((_, compare)) => {
                let right = self.sum()?;
                self.node(Expression::Compare(*compare, left.into(), right.into()))
            }
            None => Ok(left),
        }
    }

    fn negated(&mut self, negated: bool, inner: Expression) -> Result<Expression> {
        if negated { self.node(Expression::Not(inner.into())) } else { Ok(inner) }
    }

    fn list(&mut self, left: Expression) -> Result<Expression> {
        self.expect("(")?;
        let mut values = vec![self.sum()?];
        while self.symbol(",") {
            values.push(self.sum()?);
        }
        self.expect(")")?;
        self.node(Expression::In(left.into(), values))
    }

    fn sum(&mut self) -> Result<Expression> {
        let mut left = self.product()?;
        loop {
            let operator = match self.peek() {
                Token::Symbol("+") => Arithmetic::Add,
                Token::Symbol("-") => Arithmetic::Subtract,
                _ => return Ok(left),
            };
            self.at += 1;
            let right = self.product()?;
            left = self.node(Expression::Arithmetic(operator, left.into(), right.into()))?;
        }
    }

    fn product(&mut self) -> Result<Expression> {
        let mut left = self.signed()?;
        loop {
            let operator = match self.peek() {
                Token::Symbol("*") => Arithmetic::Multiply,
                Token::Symbol("/") => Arithmetic::Divide,
                Token::Symbol("%") => Arithmetic::Remainder,
                _ => return Ok(left),
            };
            self.at += 1;
            let right = self.signed()?;
            left = self.node(Expression::Arithmetic(operator, left.into(), right.into()))?;
        }
    }

    fn signed(&mut self) -> Result<Expression> {
        let is_minus = self.symbol("-");
        if is_minus || self.symbol("+") {
            let inner = self.deeper(Self::signed)?.into();
            let signed = match is_minus {
                true => Expression::Minus(inner),
                false => Expression::Plus(inner),
            };
            return self.node(signed);
        }
        self.primary()
    }

    fn primary(&mut self) -> Result<Expression> {
        if self.symbol("(") {
            let inner = self.deeper(Self::disjunction)?;
            self.expect(")")?;
            return Ok(inner);
        }
        let constant = match self.peek() {
            Token::Integer(value) => Some(Value::Integer(*value)),
            Token::Double(value) => Some(Value::Double(*value)),
            Token::Text(text) => Some(Value::Text(text.clone())),
            Token::Word(word) if word.eq_ignore_ascii_case("true") => Some(Value::Boolean(true)),
            Token::Word(word) if word.eq_ignore_ascii_case("false") => Some(Value::Boolean(false)),
            _ => None,
        };
        if let Some(constant) = constant {
            self.at += 1;
            return self.node(Expression::Constant(constant));
        }
        if let (Token::Word(word), Some(Token::Symbol("("))) =
            (self.peek().clone(), self.tokens.get(self.at + 1))
        {
            return self.function(&word);
        }
        let name = self.property()?;
        self.node(Expression::Property(name))
    }

    fn function(&mut self, name: &str) -> Result<Expression> {
        self.at += 2;
        let call = match name.to_ascii_lowercase().as_str() {
            "newid" => Expression::NewId,
            "property" | "p" => Expression::PropertyNamed(self.deeper(Self::sum)?.into()),
            _ => return Err(bad(format!("there is no function {name}"))),
        };
        self.expect(")")?;
        self.node(call)
    }

    /// A property with its scope, which is the application's if none is named.
    fn property(&mut self) -> Result<PropertyName> {
        let scope = match (self.peek(), self.tokens.get(self.at + 1)) {
            (Token::Word(scope), Some(Token::Symbol("."))) => Some(scope.to_ascii_lowercase()),
            _ => None,
        };
        if scope.is_some() {
            self.at += 2;
        }
        let name = match self.next() {
            Token::Name(name) if !name.is_empty() => name,
            Token::Word(word)
                if scope.is_some() || !KEYWORDS.iter().any(|it| word.eq_ignore_ascii_case(it)) =>
            {
                word
            }
            _ => {
                self.at = self.at.saturating_sub(1);
                return Err(self.unexpected("a property"));
            }
        };
        match scope.as_deref() {
            None | Some("user") => Ok(PropertyName::User(name)),
            Some("sys") => match SystemProperty::parse(&name) {
                Some(property) => Ok(PropertyName::System(property)),
                None => Err(bad(format!("there is no system property {name}"))),
            },
            Some(other) => Err(bad(format!("there is no scope {other}; there are sys and user"))),
        }
    }

    fn statement(&mut self) -> Result<Statement> {
        if self.word("remove") {
            return self.property().map(Statement::Remove);
        }
        if !self.word("set") {
            return Err(self.unexpected("SET or REMOVE"));
        }
        let name = self.property()?;
        self.expect("=")?;
        Ok(Statement::Set(name, self.disjunction()?))
    }
}
