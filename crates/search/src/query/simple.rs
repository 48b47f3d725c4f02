//! The simple syntax: `+ | - " * ( )` and words. No text is wrong in it; what has no meaning is a word.

use super::SearchMode;
use super::expr::Occurs;
use super::syntax::Syntax;
use crate::limits;

/// Reads a text.
pub(super) fn parse(text: &str, mode: SearchMode) -> Syntax {
    let chars: Vec<char> = text.chars().collect();
    if text.trim() == "*" || text.trim().is_empty() {
        return Syntax::Everything;
    }
    let default = match mode {
        SearchMode::Any => Occurs::Should,
        SearchMode::All => Occurs::Must,
    };
    let partners = partners(&chars);
    Parser { chars: &chars, partners: &partners, at: 0, default, depth: 0 }.group(chars.len())
}

/// Finds the partners of all opening parentheses in one pass.
fn partners(chars: &[char]) -> Vec<Option<usize>> {
    let mut partners = vec![None; chars.len()];
    let mut open = Vec::new();
    let mut at = 0;
    while at < chars.len() {
        match chars[at] {
            '\\' => at += 1,
            '(' => open.push(at),
            ')' => {
                if let Some(start) = open.pop() {
                    partners[start] = Some(at);
                }
            }
            _ => {}
        }
        at += 1;
    }
    partners
}

struct Parser<'a> {
    chars: &'a [char],
    /// For every opening parenthesis, where its partner is.
    partners: &'a [Option<usize>],
    at: usize,
    default: Occurs,
    depth: usize,
}

/// What has been read of one group.
struct Group {
    top: Option<Syntax>,
    previous: Option<Occurs>,
    current: Option<Occurs>,
    negated: bool,
}

impl Parser<'_> {
    /// Reads up to a place.
    fn group(&mut self, end: usize) -> Syntax {
        let mut group = Group { top: None, previous: None, current: None, negated: false };
        while self.at < end {
            match self.chars[self.at] {
                '(' => self.parentheses(&mut group, end),
                ')' => self.at += 1,
                '"' => self.phrase(&mut group, end),
                '+' | '|' => {
                    if group.current.is_none() && group.top.is_some() {
                        let and = self.chars[self.at] == '+';
                        group.current = Some(if and { Occurs::Must } else { Occurs::Should });
                    }
                    self.at += 1;
                }
                '-' => {
                    group.negated = !group.negated;
                    self.at += 1;
                    continue;
                }
                c if is_space(c) => self.at += 1,
                _ => self.word(&mut group, end),
            }
            group.negated = false;
        }
        group.top.unwrap_or(Syntax::Nothing)
    }

    fn parentheses(&mut self, group: &mut Group, end: usize) {
        let start = self.at + 1;
        let partner = self.partners[self.at].filter(|it| *it < end);
        let Some(close) = partner.filter(|_| self.depth < limits::QUERY_DEPTH_MAX) else {
            // A parenthesis without its partner has no meaning.
            self.at = start;
            return;
        };
        self.at = start;
        self.depth += 1;
        let inner = self.group(close);
        self.depth -= 1;
        self.at = close + 1;
        self.add(group, inner);
    }

    fn phrase(&mut self, group: &mut Group, end: usize) {
        let start = self.at + 1;
        let mut text = String::new();
        let mut at = start;
        while at < end {
            match self.chars[at] {
                '\\' if at + 1 < end => {
                    at += 1;
                    text.push(self.chars[at]);
                }
                '"' => {
                    self.at = at + 1;
                    if !text.is_empty() {
                        let words = Syntax::Words { field: None, text, quoted: true, slop: 0 };
                        self.add(group, words);
                    }
                    return;
                }
                c => text.push(c),
            }
            at += 1;
        }
        // A quote without its partner has no meaning.
        self.at = start;
    }

    fn word(&mut self, group: &mut Group, end: usize) {
        let mut text = String::new();
        let mut star = false;
        while self.at < end {
            let c = self.chars[self.at];
            if c == '\\' && self.at + 1 < end {
                self.at += 1;
                text.push(self.chars[self.at]);
                star = false;
            } else if is_space(c) || "\"|+()".contains(c) {
                break;
            } else {
                text.push(c);
                star = c == '*';
            }
            self.at += 1;
        }
        if star {
            text.pop();
            let part = match text.is_empty() {
                true => Syntax::Everything,
                false => Syntax::Prefix { field: None, text },
            };
            self.add(group, part);
        } else {
            self.add(group, Syntax::Words { field: None, text, quoted: false, slop: 0 });
        }
    }

    /// Adds a part to a group. An operator that differs from the one before closes what came before into one part.
    fn add(&self, group: &mut Group, part: Syntax) {
        if part == Syntax::Nothing {
            group.current = None;
            return;
        }
        let part = if group.negated {
            Syntax::Bool(vec![(Occurs::MustNot, part), (Occurs::Should, Syntax::Everything)])
        } else {
            part
        };
        let Some(top) = group.top.take() else {
            group.top = Some(part);
            group.current = None;
            return;
        };
        let occurs = group.current.take().unwrap_or(self.default);
        let mut clauses = match top {
            Syntax::Bool(clauses) if group.previous == Some(occurs) => clauses,
            other => vec![(occurs, other)],
        };
        clauses.push((occurs, part));
        group.top = Some(Syntax::Bool(clauses));
        group.previous = Some(occurs);
    }
}

fn is_space(c: char) -> bool {
    matches!(c, ' ' | '\t' | '\n' | '\r')
}
