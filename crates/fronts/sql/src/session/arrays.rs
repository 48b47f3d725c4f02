//! Arrays of keys, as parameters of `= ANY ($1)`: PostgreSQL's text and binary forms, one dimension.

use bytes::Bytes;
use lazuli_pg::Reader;

/// The elements of an array in text form; none if it has another form than a plain list.
pub(crate) fn from_text(text: &str) -> Option<Vec<Option<String>>> {
    let inner = text.trim().strip_prefix('{')?.strip_suffix('}')?;
    let (mut elements, mut chars) = (Vec::new(), inner.chars().peekable());
    if inner.trim().is_empty() {
        return Some(elements);
    }
    loop {
        while chars.next_if(|char| char.is_whitespace()).is_some() {}
        let mut element = String::new();
        let is_quoted = chars.next_if_eq(&'"').is_some();
        if is_quoted {
            loop {
                match chars.next()? {
                    '"' => break,
                    '\\' => element.push(chars.next()?),
                    char => element.push(char),
                }
            }
            while chars.next_if(|char| char.is_whitespace()).is_some() {}
        } else {
            while let Some(char) = chars.next_if(|char| *char != ',') {
                match char {
                    // An inner array, or an escape.
                    '{' | '}' | '"' | '\\' => return None,
                    char => element.push(char),
                }
            }
            element.truncate(element.trim_end().len());
        }
        let is_null = !is_quoted && element.eq_ignore_ascii_case("null");
        elements.push((!is_null).then_some(element));
        match chars.next() {
            None => return Some(elements),
            Some(',') => {}
            Some(_) => return None,
        }
    }
}

/// The type and the elements of an array in binary form.
pub(crate) fn from_binary(bytes: Bytes) -> Option<(u32, Vec<Option<Bytes>>)> {
    let mut reader = Reader::new(bytes);
    let (dimensions, _, oid) = (reader.i32().ok()?, reader.i32().ok()?, reader.u32().ok()?);
    match dimensions {
        0 => return Some((oid, Vec::new())),
        1 => {}
        _ => return None,
    }
    let count = usize::try_from(reader.i32().ok()?).ok()?;
    reader.i32().ok()?;
    // Every element has a length of four bytes at least.
    if count > reader.remaining() / 4 {
        return None;
    }
    let elements = (0..count).map(|_| reader.value().ok()).collect::<Option<_>>()?;
    reader.end().ok()?;
    Some((oid, elements))
}

/// An array of texts in binary form.
pub(crate) fn of_texts<'a>(values: impl ExactSizeIterator<Item = Option<&'a [u8]>>) -> Bytes {
    use bytes::{BufMut, BytesMut};
    const TEXT: u32 = 25;
    let mut out = BytesMut::new();
    let count = u32::try_from(values.len()).unwrap_or(u32::MAX);
    out.put_u32(u32::from(count > 0));
    out.put_u32(1);
    out.put_u32(TEXT);
    if count > 0 {
        out.put_u32(count);
        out.put_u32(1);
    }
    for value in values {
        lazuli_pg::client::write_value(&mut out, value);
    }
    out.freeze()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_arrays_are_read_as_postgresql_writes_them() {
        let some = |texts: &[&str]| {
            Some(texts.iter().map(|it| Some((*it).to_owned())).collect::<Vec<_>>())
        };
        assert_eq!(from_text("{1,2, 3}"), some(&["1", "2", "3"]));
        assert_eq!(from_text(r#"{"a,b","c\"d",e f}"#), some(&["a,b", "c\"d", "e f"]));
        assert_eq!(from_text("{}"), Some(Vec::new()));
        assert_eq!(from_text("{NULL,\"NULL\"}"), Some(vec![None, Some("NULL".into())]));
        for wrong in ["", "{1", "{{1}}", "{\"a}", "{\"a\"b}"] {
            assert_eq!(from_text(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn binary_arrays_are_read_as_they_are_written() {
        let values = [Some(&b"a"[..]), None];
        let (oid, read) = from_binary(of_texts(values.into_iter())).unwrap();
        assert_eq!((oid, read), (25, vec![Some(Bytes::from_static(b"a")), None]));
        assert_eq!(from_binary(of_texts([].into_iter())), Some((25, Vec::new())));
        assert_eq!(
            from_binary(Bytes::from_static(&[0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 25, 0x7f, 0, 0, 0])),
            None
        );
    }
}
