//! Writes the text that Prometheus reads: families of samples with labels.

use std::fmt::Write;

/// A page of metrics in the making.
#[derive(Default)]
pub(crate) struct Page(String);

impl Page {
    /// Begins a family. All its samples follow before the next one begins.
    pub(crate) fn family(&mut self, name: &str, kind: &str, help: &str) {
        // Writing to a string cannot fail.
        let _ = writeln!(self.0, "# HELP {name} {help}\n# TYPE {name} {kind}");
    }

    pub(crate) fn sample(&mut self, name: &str, labels: &[(&str, &str)], value: f64) {
        self.0.push_str(name);
        for (at, (label, text)) in labels.iter().enumerate() {
            let _ = write!(self.0, "{}{label}=\"", if at == 0 { '{' } else { ',' });
            self.escaped(text);
            self.0.push('"');
        }
        if !labels.is_empty() {
            self.0.push('}');
        }
        let _ = writeln!(self.0, " {value}");
    }

    /// A family of one sample without labels.
    pub(crate) fn single(&mut self, name: &str, kind: &str, help: &str, value: f64) {
        self.family(name, kind, help);
        self.sample(name, &[], value);
    }

    fn escaped(&mut self, text: &str) {
        for c in text.chars() {
            match c {
                '\\' => self.0.push_str("\\\\"),
                '"' => self.0.push_str("\\\""),
                '\n' => self.0.push_str("\\n"),
                other => self.0.push(other),
            }
        }
    }

    pub(crate) fn text(self) -> String {
        self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn samples_stand_under_their_family_with_escaped_labels() {
        let mut page = Page::default();
        page.family("lazuli_things", "counter", "Things counted.");
        page.sample("lazuli_things", &[("name", "a\"b\\c\nd"), ("kind", "x")], 3.0);
        page.single("lazuli_up", "gauge", "One.", 1.5);
        assert_eq!(
            page.text(),
            "# HELP lazuli_things Things counted.\n# TYPE lazuli_things counter\n\
             lazuli_things{name=\"a\\\"b\\\\c\\nd\",kind=\"x\"} 3\n\
             # HELP lazuli_up One.\n# TYPE lazuli_up gauge\nlazuli_up 1.5\n"
        );
    }
}
