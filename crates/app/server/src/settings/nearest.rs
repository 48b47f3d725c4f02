//! Suggests the known name that is nearest to a mistyped one.

/// The nearest of `known`, if it is near enough to be a slip of the fingers.
pub(super) fn nearest<'a>(
    typed: &str,
    known: impl IntoIterator<Item = &'a str>,
) -> Option<&'a str> {
    let far = typed.chars().count() / 2 + 1;
    known
        .into_iter()
        .map(|name| (distance(typed, name), name))
        .filter(|(steps, _)| *steps <= far)
        .min_by_key(|(steps, _)| *steps)
        .map(|(_, name)| name)
}

/// How many characters must be put in, taken out or replaced to make one text of the other.
fn distance(from: &str, to: &str) -> usize {
    let to: Vec<char> = to.chars().collect();
    let mut row: Vec<usize> = (0..=to.len()).collect();
    for (removed, have) in from.chars().enumerate() {
        let mut diagonal = row[0];
        row[0] = removed + 1;
        for (at, want) in to.iter().enumerate() {
            let replaced = diagonal + usize::from(have != *want);
            diagonal = row[at + 1];
            row[at + 1] = replaced.min(row[at] + 1).min(diagonal + 1);
        }
    }
    row[to.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn distances_are_the_fewest_edits() {
        for (from, to, steps) in
            [("", "", 0), ("", "abc", 3), ("port", "prot", 2), ("kitten", "sitting", 3)]
        {
            assert_eq!(distance(from, to), steps, "{from} {to}");
            assert_eq!(distance(to, from), steps, "{to} {from}");
        }
    }

    #[test]
    fn a_slip_finds_its_name_and_nonsense_finds_none() {
        let known = ["table-port", "admin-port", "host"];
        assert_eq!(nearest("table_port", known), Some("table-port"));
        assert_eq!(nearest("hots", known), Some("host"));
        assert_eq!(nearest("xyzzy", known), None);
    }
}
