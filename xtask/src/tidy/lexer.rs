//! Just enough of Rust's grammar to tell code from comments and strings, and test code from the rest.

/// A function with a body.
#[derive(Debug, PartialEq)]
pub(crate) struct Function {
    pub(crate) name: String,
    pub(crate) line: usize,
    pub(crate) lines: usize,
}

pub(crate) struct Lexed {
    /// The text with comments and the insides of strings and characters blanked: as many characters on as many lines.
    pub(crate) code: Vec<char>,
}

impl Lexed {
    pub(crate) fn new(text: &str) -> Self {
        let mut lexer = Lexer { text: text.chars().collect(), at: 0, code: Vec::new() };
        while lexer.at < lexer.text.len() {
            lexer.step();
        }
        Self { code: lexer.code }
    }

    pub(crate) fn functions(&self) -> Vec<Function> {
        let mut found = Vec::new();
        for at in self.words("fn") {
            let rest = &self.code[at + 2..];
            let name: String = rest.iter().skip(1).take_while(|c| is_word(**c)).collect();
            // A function pointer type has no name, a declaration no body.
            if rest.first() != Some(&' ') || name.is_empty() {
                continue;
            }
            let Some(end) = self.block_end(at) else { continue };
            let line = self.line_of(at);
            found.push(Function { name, line, lines: self.line_of(end) - line + 1 });
        }
        found
    }

    /// The lines of items behind `#[cfg(test)]`, first and last, from 1.
    pub(crate) fn test_lines(&self) -> Vec<(usize, usize)> {
        let mark: Vec<char> = "#[cfg(test)]".chars().collect();
        let mut found = Vec::new();
        let mut at = 0;
        while at + mark.len() <= self.code.len() {
            if self.code[at..at + mark.len()] != mark[..] {
                at += 1;
                continue;
            }
            // An item without a body (`mod tests;`) ends with its line.
            let end = self.block_end(at + mark.len()).unwrap_or(at + mark.len());
            found.push((self.line_of(at), self.line_of(end)));
            at = end;
        }
        found
    }

    /// Whether there is a function of this name: in an `impl` or a `trait` of the owner, or anywhere if none is given.
    pub(crate) fn has_function(&self, owner: Option<&str>, name: &str) -> bool {
        let defined = |code: &[char]| {
            let code: String = code.iter().collect();
            code.match_indices(&format!("fn {name}"))
                .any(|(at, it)| !code[at + it.len()..].starts_with(is_word))
        };
        let Some(owner) = owner else { return defined(&self.code) };
        let blocks = ["impl", "trait"].into_iter().flat_map(|word| self.words(word));
        blocks.filter_map(|at| Some(&self.code[at..self.block_end(at)?])).any(|block| {
            let header: String = block.iter().take_while(|c| **c != '{').collect();
            header.split(|c| !is_word(c)).any(|word| word == owner) && defined(block)
        })
    }

    /// Where a word stands in the code.
    fn words(&self, word: &str) -> Vec<usize> {
        let word: Vec<char> = word.chars().collect();
        let mut found = Vec::new();
        for at in 0..self.code.len().saturating_sub(word.len()) {
            let before = at.checked_sub(1).map(|at| self.code[at]);
            let after = self.code[at + word.len()];
            let alone = !before.is_some_and(is_word) && !is_word(after);
            if alone && self.code[at..at + word.len()] == word[..] {
                found.push(at);
            }
        }
        found
    }

    /// The closing brace of the first block after `from`, unless a `;` outside of brackets comes first.
    fn block_end(&self, from: usize) -> Option<usize> {
        let mut brackets = 0_usize;
        let mut braces = 0_usize;
        for at in from..self.code.len() {
            match self.code[at] {
                '(' | '[' => brackets += 1,
                ')' | ']' => brackets = brackets.saturating_sub(1),
                ';' if brackets == 0 && braces == 0 => return None,
                '{' => braces += 1,
                '}' if braces == 1 => return Some(at),
                '}' => braces = braces.checked_sub(1)?,
                _ => {}
            }
        }
        None
    }

    fn line_of(&self, at: usize) -> usize {
        1 + self.code[..at].iter().filter(|c| **c == '\n').count()
    }
}

pub(crate) fn is_word(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

struct Lexer {
    text: Vec<char>,
    at: usize,
    code: Vec<char>,
}

impl Lexer {
    fn step(&mut self) {
        let after_word = self.at > 0 && is_word(self.text[self.at - 1]);
        match self.text[self.at] {
            '/' if self.sees("//") => self.comment(Self::line_end),
            '/' if self.sees("/*") => self.comment(Self::block_comment_end),
            '"' => self.string(),
            '\'' => self.quote(),
            'r' if !after_word && self.raw_hashes(1).is_some() => self.raw_string(1),
            'b' | 'c' if !after_word && self.sees_at(1, "r") && self.raw_hashes(2).is_some() => {
                self.raw_string(2);
            }
            _ => self.keep(1),
        }
    }

    fn sees(&self, word: &str) -> bool {
        self.sees_at(0, word)
    }

    fn sees_at(&self, offset: usize, word: &str) -> bool {
        word.chars().enumerate().all(|(i, c)| self.text.get(self.at + offset + i) == Some(&c))
    }

    fn keep(&mut self, count: usize) {
        let end = (self.at + count).min(self.text.len());
        self.code.extend_from_slice(&self.text[self.at..end]);
        self.at = end;
    }

    fn blank_to(&mut self, end: usize) {
        let end = end.min(self.text.len());
        let blanks = self.text[self.at..end].iter().map(|c| if *c == '\n' { '\n' } else { ' ' });
        self.code.extend(blanks);
        self.at = end;
    }

    fn comment(&mut self, end: fn(&Self) -> usize) {
        self.blank_to(end(self));
    }

    fn line_end(&self) -> usize {
        let rest = &self.text[self.at..];
        self.at + rest.iter().position(|c| *c == '\n').unwrap_or(rest.len())
    }

    /// Block comments nest.
    fn block_comment_end(&self) -> usize {
        let mut depth = 0_usize;
        let mut at = self.at;
        while at < self.text.len() {
            match (self.text[at], self.text.get(at + 1)) {
                ('/', Some('*')) => depth += 1,
                ('*', Some('/')) => depth -= 1,
                _ => {
                    at += 1;
                    continue;
                }
            }
            at += 2;
            if depth == 0 {
                return at;
            }
        }
        self.text.len()
    }

    fn string(&mut self) {
        self.keep(1);
        let mut end = self.at;
        while end < self.text.len() && self.text[end] != '"' {
            end += if self.text[end] == '\\' { 2 } else { 1 };
        }
        self.blank_to(end);
        self.keep(1);
    }

    /// A character literal, or a lifetime, which is code like any other.
    fn quote(&mut self) {
        let escaped = self.sees_at(1, "\\");
        if !escaped && !self.sees_at(2, "'") {
            return self.keep(1);
        }
        let mut end = self.at + if escaped { 3 } else { 2 };
        while end < self.text.len() && self.text[end] != '\'' {
            end += 1;
        }
        self.keep(1);
        self.blank_to(end);
        self.keep(1);
    }

    /// How many `#` open the raw string whose prefix is this long, if it is one.
    fn raw_hashes(&self, prefix: usize) -> Option<usize> {
        let rest = &self.text[(self.at + prefix).min(self.text.len())..];
        let hashes = rest.iter().take_while(|c| **c == '#').count();
        (rest.get(hashes) == Some(&'"')).then_some(hashes)
    }

    fn raw_string(&mut self, prefix: usize) {
        let hashes = self.raw_hashes(prefix).unwrap_or_default();
        self.keep(prefix + hashes + 1);
        let close: String = std::iter::once('"').chain(std::iter::repeat_n('#', hashes)).collect();
        let mut end = self.at;
        while end < self.text.len() && !self.sees_at(end - self.at, &close) {
            end += 1;
        }
        self.blank_to(end);
        self.keep(close.len());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn code(text: &str) -> String {
        Lexed::new(text).code.into_iter().collect()
    }

    #[test]
    fn comments_strings_and_characters_are_blanked_and_lifetimes_stay() {
        assert_eq!(code("a // {\nb"), "a     \nb");
        assert_eq!(code("a /* { /* } */ { */ b"), "a                   b");
        assert_eq!(code(r#"f("{\"{", '{', '\'', b"}")"#), r#"f("    ", ' ', '  ', b" ")"#);
        assert_eq!(code(r###"f(r#"{"}"#, br"}")"###), r###"f(r#"   "#, br" ")"###);
        assert_eq!(code("fn f<'a>(x: &'a str) {}"), "fn f<'a>(x: &'a str) {}");
        assert_eq!(code("\"/* \" x"), "\"   \" x");
    }

    #[test]
    fn functions_are_measured_from_their_name_to_their_last_brace() {
        let text = "trait T { fn no(x: [u8; 4]); }\ntype F = fn(u8);\n\
                    fn yes(x: [u8; 4]) {\n    if x { y }\n}\n";
        let expected = Function { name: "yes".into(), line: 3, lines: 3 };
        assert_eq!(Lexed::new(text).functions(), [expected]);
    }

    #[test]
    fn test_modules_are_told_from_the_rest() {
        let text = "fn a() {}\n#[cfg(test)]\nmod tests {\n    fn b() {}\n}\nfn c() {}\n";
        assert_eq!(Lexed::new(text).test_lines(), [(2, 5)]);
        assert_eq!(Lexed::new("#[cfg(test)]\nmod tests;\nfn a() {}\n").test_lines(), [(1, 1)]);
    }
}
