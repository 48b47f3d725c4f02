//! A question before something is done that cannot be undone.

use std::io::{self, BufRead, IsTerminal, Write};

use crate::{Failure, Result};

/// Asks a person and answers whether it was affirmed. Where nobody can be asked it is: a script means what it says.
pub fn ask(question: &str) -> Result<bool> {
    if !io::stdin().is_terminal() {
        return Ok(true);
    }
    eprint!("{question} [y/N] ");
    let _ = io::stderr().flush();
    let mut line = String::new();
    let read = io::stdin().lock().read_line(&mut line);
    read.map_err(|error| Failure::failed(format!("the answer cannot be read: {error}")))?;
    Ok(is_yes(&line))
}

fn is_yes(line: &str) -> bool {
    matches!(line.trim().to_lowercase().as_str(), "y" | "yes")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_clear_yes_is_one() {
        assert!(is_yes("y\n") && is_yes(" YES \n"));
        assert!(!is_yes("\n") && !is_yes("n\n") && !is_yes("yy\n"));
    }
}
