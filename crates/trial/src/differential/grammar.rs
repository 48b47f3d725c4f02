//! Commands from templates: literal words, `{kinds}` of arguments, `[ optional parts ]`.

use super::templates::TEMPLATES;

/// Makes commands from a seed.
pub(crate) struct Generator {
    state: u64,
    templates: Vec<&'static str>,
}

impl Generator {
    pub(crate) fn new(seed: u64) -> Self {
        let mut generator = Self { state: seed ^ 0x9e37_79b9_7f4a_7c15, templates: Vec::new() };
        // Each sequence uses some groups of commands only, so that they meet each other often.
        let groups = 1 + generator.below(3);
        for _ in 0..groups {
            let (_, group) = TEMPLATES[generator.below(TEMPLATES.len() as u64) as usize];
            generator.templates.extend(group);
        }
        let (_, general) = TEMPLATES[0];
        generator.templates.extend(general);
        generator
    }

    fn next(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.state;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    fn below(&mut self, bound: u64) -> u64 {
        self.next() % bound
    }

    fn pick<'a>(&mut self, choices: &[&'a str]) -> &'a str {
        choices[self.below(choices.len() as u64) as usize]
    }

    pub(crate) fn command(&mut self) -> Vec<Vec<u8>> {
        let at = self.below(self.templates.len() as u64) as usize;
        let template = self.templates[at];
        let words: Vec<&str> = template.split(' ').collect();
        let mut command = Vec::new();
        self.expand(&words, &mut command);
        // Now and then something is missing or too much.
        match self.below(150) {
            0 if command.len() > 1 => {
                command.pop();
            }
            1 => command.push(b"extra".to_vec()),
            2 if command.len() > 2 => {
                let at = 1 + self.below(command.len() as u64 - 1) as usize;
                command[at] = b"odd".to_vec();
            }
            _ => {}
        }
        command
    }

    fn expand(&mut self, words: &[&str], command: &mut Vec<Vec<u8>>) {
        let mut at = 0;
        while at < words.len() {
            let word = words[at];
            if word == "[" {
                let end = closing(words, at);
                if self.below(3) == 0 {
                    self.expand(&words[at + 1..end], command);
                }
                at = end;
            } else if let Some(kind) = word.strip_prefix('{').and_then(|it| it.strip_suffix('}')) {
                self.argument(kind, command);
            } else {
                command.push(word.as_bytes().to_vec());
            }
            at += 1;
        }
    }

    fn argument(&mut self, kind: &str, command: &mut Vec<Vec<u8>>) {
        if let Some(kind) = kind.strip_suffix('+') {
            for _ in 0..=self.below(4) {
                self.argument(kind, command);
            }
            return;
        }
        if kind.contains('|') {
            let choices: Vec<&str> = kind.split('|').collect();
            return command.push(self.pick(&choices).as_bytes().to_vec());
        }
        let text = match kind {
            // Keys of a type; one in ten is a key of any type.
            "t" | "l" | "s" | "h" | "z" | "y" | "x" | "p" | "g" => {
                if self.below(10) == 0 {
                    return self.argument("k", command);
                }
                format!("{kind}{}", self.below(3))
            }
            "k" => {
                let letter = self.pick(&["t", "l", "s", "h", "z", "x", "p", "g"]);
                format!("{letter}{}", self.below(3))
            }
            "keys" => return self.keys(command),
            "v" => self.value(),
            "f" => self.field(),
            "fv" => {
                command.push(self.field().into_bytes());
                self.value()
            }
            "m" => self.member(),
            "sm" => {
                command.push(self.score().into_bytes());
                self.member()
            }
            "score" => self.score(),
            "n" => (self.below(16) as i64 - 5).to_string(),
            "i" => self.integer(),
            "c" => self.below(6).to_string(),
            "big" => "1000".to_owned(),
            "bound" => self.bound(),
            "lex" => self.lex(),
            "id" => format!("{}-{}", 1 + self.below(9), self.below(4)),
            "auto" => format!("{}-*", 1 + self.below(9)),
            "edge" => self.edge(),
            "lon" => format!("{:.4}", self.below(3_600_000) as f64 / 10_000.0 - 180.0),
            "lat" => format!("{:.4}", self.below(1_700_000) as f64 / 10_000.0 - 85.0),
            "near" => format!("{:.5}", 13.0 + self.below(200_000) as f64 / 100_000.0),
            "metres" => self.below(400_000).to_string(),
            "pattern" => self.pick(&["*", "m*", "f*", "?1", "[mf]?", "*1*", "nothing"]).to_owned(),
            "when" => (4_000_000_000 + self.below(1000)).to_string(),
            _ => panic!("there is no kind of argument '{kind}'"),
        };
        command.push(text.into_bytes());
    }

    /// A number of keys, and so many keys of sets and sorted sets.
    fn keys(&mut self, command: &mut Vec<Vec<u8>>) {
        let count = 1 + self.below(3);
        command.push(count.to_string().into_bytes());
        for _ in 0..count {
            self.argument("z", command);
        }
    }

    fn value(&mut self) -> String {
        match self.below(12) {
            0 => String::new(),
            1 => "x".repeat(65),
            2 => "y".repeat(44 + self.below(2) as usize),
            3..6 => self.integer(),
            6 => self.score(),
            7 => "a b\r\nc\u{0}d".to_owned(),
            _ => format!("v{}", self.below(6)),
        }
    }

    fn field(&mut self) -> String {
        match self.below(40) {
            0 => "f".repeat(65),
            1 => String::new(),
            _ => format!("f{}", self.below(7)),
        }
    }

    fn member(&mut self) -> String {
        match self.below(30) {
            0 => "m".repeat(65),
            1 => String::new(),
            2..16 => self.below(9).to_string(),
            _ => format!("m{}", self.below(9)),
        }
    }

    fn score(&mut self) -> String {
        match self.below(14) {
            0 => self.pick(&["inf", "-inf", "+inf", "nan", "abc", "1e400"]).to_owned(),
            1..4 => format!("{}.{}", self.below(20) as i64 - 10, self.below(100)),
            4 => self.pick(&["3.0e5", "1e-7", "0.1", "1.1", "12345678901234567", "-0"]).to_owned(),
            _ => (self.below(12) as i64 - 3).to_string(),
        }
    }

    fn integer(&mut self) -> String {
        match self.below(14) {
            0 => "9223372036854775807".to_owned(),
            1 => "-9223372036854775808".to_owned(),
            2 => self.pick(&["1.5", " 1", "1 ", "+1", "01", "9223372036854775808"]).to_owned(),
            _ => (self.below(2000) as i64 - 1000).to_string(),
        }
    }

    fn bound(&mut self) -> String {
        match self.below(10) {
            0 => self.pick(&["-inf", "+inf", "(inf", "(", "x"]).to_owned(),
            1 | 2 => self.pick(&["-inf", "+inf"]).to_owned(),
            3..6 => format!("({}", self.below(10) as i64 - 3),
            _ => (self.below(12) as i64 - 3).to_string(),
        }
    }

    fn lex(&mut self) -> String {
        match self.below(8) {
            0 => self.pick(&["x", "[", "("]).to_owned(),
            1 | 2 => self.pick(&["-", "+"]).to_owned(),
            3 | 4 => format!("(m{}", self.below(9)),
            _ => format!("[m{}", self.below(9)),
        }
    }

    fn edge(&mut self) -> String {
        match self.below(8) {
            0 | 1 => self.pick(&["-", "+"]).to_owned(),
            2 => format!("({}-{}", 1 + self.below(9), self.below(4)),
            3 => (1 + self.below(9)).to_string(),
            4 => self.pick(&["x", "1-x", "(-", "18446744073709551615-18446744073709551615"]).into(),
            _ => format!("{}-{}", 1 + self.below(9), self.below(4)),
        }
    }
}

/// Where the part ends that begins at a place.
fn closing(words: &[&str], from: usize) -> usize {
    let mut depth = 0;
    for (at, word) in words.iter().enumerate().skip(from) {
        match *word {
            "[" => depth += 1,
            "]" => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            return at;
        }
    }
    panic!("a part of a template is not closed: {words:?}")
}
