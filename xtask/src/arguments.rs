//! Command line words, taken one option at a time; a word that no command takes is an error.

use crate::{Failure, Result};

pub(crate) struct Arguments {
    words: Vec<String>,
}

impl Arguments {
    pub(crate) fn new(words: impl Iterator<Item = String>) -> Self {
        Self { words: words.collect() }
    }

    /// The value behind `--name`, if the option was given.
    pub(crate) fn value(&mut self, name: &str) -> Result<Option<String>> {
        let Some(at) = self.words.iter().position(|word| word == name) else {
            return Ok(None);
        };
        if at + 1 == self.words.len() {
            return Err(Failure::Usage(format!("{name} needs a value")));
        }
        let value = self.words.remove(at + 1);
        self.words.remove(at);
        Ok(Some(value))
    }

    /// As [`Self::value`], read as a number.
    pub(crate) fn number(&mut self, name: &str) -> Result<Option<u64>> {
        let Some(text) = self.value(name)? else { return Ok(None) };
        match text.parse() {
            Ok(number) => Ok(Some(number)),
            Err(_) => Err(Failure::Usage(format!("{name} needs a number, not '{text}'"))),
        }
    }

    pub(crate) fn flag(&mut self, name: &str) -> bool {
        let before = self.words.len();
        self.words.retain(|word| word != name);
        self.words.len() < before
    }

    /// The first word that is not an option. Call it after all options are taken.
    pub(crate) fn word(&mut self) -> Option<String> {
        let at = self.words.iter().position(|word| !word.starts_with("--"))?;
        Some(self.words.remove(at))
    }

    pub(crate) fn finish(self) -> Result {
        match self.words.first() {
            None => Ok(()),
            Some(word) => Err(Failure::Usage(format!("'{word}' is not understood here"))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn arguments(line: &str) -> Arguments {
        Arguments::new(line.split_whitespace().map(String::from))
    }

    #[test]
    fn options_and_words_are_taken_in_any_order() {
        let mut given = arguments("--sdk python tables --list --seeds 12");
        assert_eq!(given.number("--seeds").unwrap(), Some(12));
        assert_eq!(given.value("--sdk").unwrap().as_deref(), Some("python"));
        assert_eq!(given.value("--target").unwrap(), None);
        assert!(given.flag("--list"));
        assert_eq!(given.word().as_deref(), Some("tables"));
        given.finish().unwrap();
    }

    #[test]
    fn a_missing_value_a_wrong_number_and_a_leftover_word_are_wrong_usage() {
        assert!(matches!(arguments("--seeds").value("--seeds"), Err(Failure::Usage(_))));
        assert!(matches!(arguments("--seeds x").number("--seeds"), Err(Failure::Usage(_))));
        assert!(matches!(arguments("--sedes 3").finish(), Err(Failure::Usage(_))));
    }
}
