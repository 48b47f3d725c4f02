//! The grammar: `or` over `and` over `not` over comparisons, parentheses anywhere.

use lazuli_azure::odata::Value;

use super::lexer::{Token, tokens};
use super::matches::compare;
use super::{BadFilter, Comparison, Filter};
use crate::limits::{FILTER_BYTES_MAX, FILTER_DEPTH_MAX};

impl Filter {
    pub(crate) fn parse(text: &str) -> Result<Self, BadFilter> {
        if text.len() > FILTER_BYTES_MAX {
            return Err(BadFilter("the filter is too long"));
        }
        let mut parser = Parser { tokens: tokens(text)?, next: 0, depth: 0 };
        let filter = parser.any()?;
        if parser.next != parser.tokens.len() {
            return Err(BadFilter("there is more after the end of the filter"));
        }
        Ok(filter)
    }
}

struct Parser {
    tokens: Vec<Token>,
    next: usize,
    depth: usize,
}

/// One side of a comparison.
enum Operand {
    Name(String),
    Literal(Value<'static>),
}

impl Parser {
    fn any(&mut self) -> Result<Filter, BadFilter> {
        let mut terms = vec![self.all()?];
        while self.eat(&Token::Or) {
            terms.push(self.all()?);
        }
        Ok(one_or(terms, Filter::Any))
    }

    fn all(&mut self) -> Result<Filter, BadFilter> {
        let mut terms = vec![self.term()?];
        while self.eat(&Token::And) {
            terms.push(self.term()?);
        }
        Ok(one_or(terms, Filter::All))
    }

    /// Every way to nest goes through here, so here is where depth is bounded.
    fn term(&mut self) -> Result<Filter, BadFilter> {
        if self.depth == FILTER_DEPTH_MAX {
            return Err(BadFilter("the filter is nested too deeply"));
        }
        self.depth += 1;
        let term = if self.eat(&Token::Not) {
            Filter::Not(Box::new(self.term()?))
        } else if self.eat(&Token::Open) {
            let inner = self.any()?;
            if !self.eat(&Token::Close) {
                return Err(BadFilter("a parenthesis is not closed"));
            }
            inner
        } else {
            self.comparison()?
        };
        self.depth -= 1;
        Ok(term)
    }

    fn comparison(&mut self) -> Result<Filter, BadFilter> {
        let left = self.operand()?;
        let Some(Token::Compare(comparison)) = self.tokens.get(self.next) else {
            // A condition may be a boolean by itself.
            return match left {
                Operand::Name(name) => {
                    Ok(Filter::Compare(name, Comparison::Equal, Value::Boolean(true)))
                }
                Operand::Literal(Value::Boolean(value)) => Ok(Filter::Constant(value)),
                Operand::Literal(_) => Err(BadFilter("a literal is compared with nothing")),
            };
        };
        let comparison = *comparison;
        self.next += 1;
        match (left, self.operand()?) {
            (Operand::Name(name), Operand::Literal(value)) => {
                Ok(Filter::Compare(name, comparison, value))
            }
            (Operand::Literal(value), Operand::Name(name)) => {
                Ok(Filter::Compare(name, comparison.turned(), value))
            }
            (Operand::Literal(left), Operand::Literal(right)) => {
                Ok(Filter::Constant(compare(&left, comparison, &right)))
            }
            (Operand::Name(_), Operand::Name(_)) => {
                Err(BadFilter("two properties can't be compared with each other"))
            }
        }
    }

    fn operand(&mut self) -> Result<Operand, BadFilter> {
        // A single operand may stand in parentheses of its own, which `term` has taken off by then.
        let operand = match self.tokens.get(self.next) {
            Some(Token::Name(name)) => Operand::Name(name.clone()),
            Some(Token::Literal(value)) => Operand::Literal(value.clone()),
            _ => return Err(BadFilter("a property or a literal is missing")),
        };
        self.next += 1;
        Ok(operand)
    }

    fn eat(&mut self, token: &Token) -> bool {
        let found = self.tokens.get(self.next) == Some(token);
        self.next += usize::from(found);
        found
    }
}

fn one_or(mut terms: Vec<Filter>, several: fn(Vec<Filter>) -> Filter) -> Filter {
    match terms.len() {
        1 => terms.remove(0),
        _ => several(terms),
    }
}

impl Comparison {
    /// The same comparison with its sides changed.
    fn turned(self) -> Self {
        match self {
            Self::Equal => Self::Equal,
            Self::NotEqual => Self::NotEqual,
            Self::Greater => Self::Less,
            Self::GreaterOrEqual => Self::LessOrEqual,
            Self::Less => Self::Greater,
            Self::LessOrEqual => Self::GreaterOrEqual,
        }
    }
}
