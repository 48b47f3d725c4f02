//! Splits the text of a Query message into its statements, and finds the first words of one.
//!
//! Only quotes, comments and semicolons matter here, by PostgreSQL's rules: `'…'` with doubled quotes, `E'…'` with
//! backslashes, `"…"`, `$tag$…$tag$`, `--` to the end of the line, and nested `/* */`.

/// The end of what begins at `at`, if it is a quoted thing or a comment.
fn skip(text: &str, at: usize) -> Option<usize> {
    let bytes = text.as_bytes();
    let find = |from: usize, what: &str| {
        text.get(from..)
            .and_then(|rest| rest.find(what))
            .map_or(text.len(), |it| from + it + what.len())
    };
    match bytes[at] {
        b'\'' => {
            let before = at.checked_sub(1).map(|it| bytes[it]);
            let is_name = at.checked_sub(2).is_some_and(|it| is_name(bytes[it]));
            let has_escapes = matches!(before, Some(b'e' | b'E')) && !is_name;
            Some(quoted(bytes, at, b'\'', has_escapes))
        }
        b'"' => Some(quoted(bytes, at, b'"', false)),
        b'-' if bytes.get(at + 1) == Some(&b'-') => Some(find(at, "\n")),
        b'/' if bytes.get(at + 1) == Some(&b'*') => Some(comment(bytes, at)),
        b'$' if at == 0 || !is_name(bytes[at - 1]) => {
            let tag_end = at + 1 + bytes[at + 1..].iter().position(|byte| !is_tag(*byte))?;
            let is_digit_first = bytes[at + 1].is_ascii_digit();
            if bytes[tag_end] != b'$' || is_digit_first {
                return None;
            }
            Some(find(tag_end + 1, &text[at..=tag_end]))
        }
        _ => None,
    }
}

fn is_tag(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_' || byte >= 0x80
}

fn is_name(byte: u8) -> bool {
    is_tag(byte) || byte == b'$'
}

fn quoted(bytes: &[u8], at: usize, quote: u8, has_escapes: bool) -> usize {
    let mut end = at + 1;
    while end < bytes.len() {
        if has_escapes && bytes[end] == b'\\' {
            end += 2;
        } else if bytes[end] != quote {
            end += 1;
        } else if bytes.get(end + 1) == Some(&quote) {
            end += 2;
        } else {
            return end + 1;
        }
    }
    bytes.len()
}

fn comment(bytes: &[u8], at: usize) -> usize {
    let (mut depth, mut end) = (0_usize, at);
    while end < bytes.len() {
        match (bytes[end], bytes.get(end + 1)) {
            (b'/', Some(b'*')) => {
                depth += 1;
                end += 2;
            }
            (b'*', Some(b'/')) => {
                depth -= 1;
                end += 2;
                if depth == 0 {
                    return end;
                }
            }
            _ => end += 1,
        }
    }
    bytes.len()
}

/// The statements of a text, without those that are empty.
pub(crate) fn split(text: &str) -> Vec<&str> {
    let (mut statements, mut begin, mut at) = (Vec::new(), 0, 0);
    while at < text.len() {
        if let Some(end) = skip(text, at) {
            at = end.max(at + 1);
        } else if text.as_bytes()[at] == b';' {
            statements.push(&text[begin..at]);
            at += 1;
            begin = at;
        } else {
            at += 1;
        }
    }
    statements.push(text.get(begin..).unwrap_or_default());
    statements.retain(|statement| !words(statement, 1).is_empty());
    statements
}

/// The first words and other tokens of a statement as they are written, without comments.
pub(crate) fn tokens(text: &str, count: usize) -> Vec<&str> {
    let bytes = text.as_bytes();
    let (mut tokens, mut at) = (Vec::new(), 0);
    while at < bytes.len() && tokens.len() < count {
        let byte = bytes[at];
        let is_comment =
            matches!((byte, bytes.get(at + 1)), (b'-', Some(b'-')) | (b'/', Some(b'*')));
        let end = if byte.is_ascii_whitespace() {
            at += 1;
            continue;
        } else if let Some(end) = skip(text, at) {
            end.max(at + 1)
        } else if is_name(byte) {
            bytes[at..].iter().position(|byte| !is_name(*byte)).map_or(bytes.len(), |it| at + it)
        } else {
            at + 1
        };
        if let Some(token) = text.get(at..end).filter(|_| !is_comment) {
            tokens.push(token);
        }
        at = end;
    }
    tokens
}

/// The same in upper case; quoted things as they are written.
pub(crate) fn words(text: &str, count: usize) -> Vec<String> {
    let is_quoted = |token: &str| token.starts_with(['\'', '"', '$']);
    let word = |token: &str| if is_quoted(token) { token.to_owned() } else { token.to_uppercase() };
    tokens(text, count).into_iter().map(word).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statements_end_at_semicolons_that_are_not_quoted() {
        let check = |text: &str, expected: &[&str]| assert_eq!(split(text), expected, "{text}");
        check("select 1; select 2;", &["select 1", " select 2"]);
        check(" ; -- nothing\n ;/* ; */", &[]);
        check("select ';', \";\", $$;$$, $a$;$$;$a$", &["select ';', \";\", $$;$$, $a$;$$;$a$"]);
        check(r"select E'\';', 'a\'; select 2", &[r"select E'\';', 'a\'", " select 2"]);
        check("select /* /* ; */ ; */ 1; x", &["select /* /* ; */ ; */ 1", " x"]);
        check("select $1; y", &["select $1", " y"]);
        check("select 'open; z", &["select 'open; z"]);
    }

    #[test]
    fn first_words_are_found_behind_comments() {
        assert_eq!(
            words("/* a */ set  Local \"x\" = 'y'", 5),
            ["SET", "LOCAL", "\"x\"", "=", "'y'"]
        );
        assert_eq!(words("-- only this", 3), Vec::<String>::new());
    }
}
