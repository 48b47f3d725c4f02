//! Forms with a file, read while they come in: `multipart/form-data`, as browsers send it.
//!
//! The fields come first and are small. The file comes last, and is never held as a whole: how long it is follows from the
//! length of the request and of what stands around it, and its end is checked before its last piece is handed on.

use bytes::{Buf, Bytes, BytesMut};
use lazuli_http::{Body, BodyError};

use crate::form::{FORM_BYTES_MAX, File, Form};

/// The longest boundary that browsers may choose, in bytes.
const BOUNDARY_BYTES_MAX: usize = 70;
/// The most fields before the file.
const FIELDS_MAX: usize = 64;

/// The text that separates the parts, if the form is of this kind.
pub(crate) fn boundary(content_type: &str) -> Option<String> {
    let rest = content_type.strip_prefix("multipart/form-data")?;
    let (_, rest) = rest.split_once("boundary=")?;
    let text = rest.split(';').next().unwrap_or_default().trim().trim_matches('"');
    (!text.is_empty() && text.len() <= BOUNDARY_BYTES_MAX).then(|| text.to_owned())
}

pub(crate) async fn read(body: Body, boundary: &str) -> Result<Form, BodyError> {
    let total = body.length().ok_or(BodyError::Broken)?;
    let mut reader = Reader { body, buffer: BytesMut::new(), taken: 0 };
    let mut fields = Vec::new();
    reader.expect(format!("--{boundary}").as_bytes()).await?;
    while fields.len() < FIELDS_MAX {
        match reader.take(2).await?.as_ref() {
            b"\r\n" => {}
            b"--" => return Ok(Form::new(fields, None)),
            _ => return Err(BodyError::Broken),
        }
        let head = reader.until(b"\r\n\r\n").await?;
        let head = String::from_utf8(head.to_vec()).map_err(|_| BodyError::Broken)?;
        let name = parameter(&head, "name").ok_or(BodyError::Broken)?;
        let Some(file) = parameter(&head, "filename") else {
            let value = reader.until(format!("\r\n--{boundary}").as_bytes()).await?;
            let value = String::from_utf8(value.to_vec()).map_err(|_| BodyError::Broken)?;
            fields.push((name, value));
            continue;
        };
        let end = Bytes::from(format!("\r\n--{boundary}--\r\n"));
        let length = total.checked_sub(reader.taken + end.len() as u64);
        let length = length.ok_or(BodyError::Broken)?;
        let content_type = content_type(&head).to_owned();
        let file = File { name: file, content_type, body: rest(reader, length, end) };
        return Ok(Form::new(fields, Some(file)));
    }
    Err(BodyError::TooLarge)
}

/// The bytes of the file, and the check of what follows it.
fn rest(reader: Reader, length: u64, end: Bytes) -> Body {
    if length == 0 {
        return Body::empty();
    }
    Body::made(length, (reader, length, end), |(mut reader, left, end)| async move {
        if reader.buffer.is_empty() {
            reader.more().await?;
        }
        let most = usize::try_from(left).unwrap_or(usize::MAX).min(reader.buffer.len());
        let piece = reader.buffer.split_to(most).freeze();
        let left = left - piece.len() as u64;
        if left == 0 {
            reader.expect(&end).await?;
        }
        Ok(Some((piece, (reader, left, end))))
    })
}

/// A parameter of `Content-Disposition`. Browsers write quotation marks and line breaks in it with percent signs.
fn parameter(head: &str, name: &str) -> Option<String> {
    let is_it = |line: &&str| line.to_ascii_lowercase().starts_with("content-disposition:");
    let line = head.split("\r\n").find(is_it)?;
    let (_, rest) = line.split_once(&format!("; {name}=\""))?;
    let (value, _) = rest.split_once('"')?;
    Some(value.replace("%22", "\"").replace("%0D", "\r").replace("%0A", "\n"))
}

fn content_type(head: &str) -> &str {
    let mut lines = head.split("\r\n").filter_map(|line| line.split_once(':'));
    let found = lines.find(|(name, _)| name.eq_ignore_ascii_case("content-type"));
    found.map_or("", |(_, value)| value.trim())
}

struct Reader {
    body: Body,
    buffer: BytesMut,
    /// How many bytes have been handed on, but for those of the file.
    taken: u64,
}

impl Reader {
    /// Waits for more bytes. That there are none is a fault: the form has an end of its own.
    async fn more(&mut self) -> Result<(), BodyError> {
        let piece = self.body.chunk().await?.ok_or(BodyError::Broken)?;
        self.buffer.extend_from_slice(&piece);
        Ok(())
    }

    async fn take(&mut self, bytes: usize) -> Result<Bytes, BodyError> {
        while self.buffer.len() < bytes {
            self.more().await?;
        }
        self.taken += bytes as u64;
        Ok(self.buffer.split_to(bytes).freeze())
    }

    async fn expect(&mut self, bytes: &[u8]) -> Result<(), BodyError> {
        if self.take(bytes.len()).await? == bytes { Ok(()) } else { Err(BodyError::Broken) }
    }

    /// Everything before the mark, which is thrown away.
    async fn until(&mut self, mark: &[u8]) -> Result<Bytes, BodyError> {
        let mut searched = 0;
        loop {
            let found = self.buffer[searched..].windows(mark.len()).position(|it| it == mark);
            if let Some(at) = found.map(|at| at + searched) {
                let before = self.take(at).await?;
                self.buffer.advance(mark.len());
                self.taken += mark.len() as u64;
                return Ok(before);
            }
            if self.buffer.len() > FORM_BYTES_MAX {
                return Err(BodyError::TooLarge);
            }
            searched = self.buffer.len().saturating_sub(mark.len() - 1);
            self.more().await?;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TYPE: &str = "multipart/form-data; boundary=----B";

    /// The form in pieces of this size.
    async fn read_in(text: &[u8], size: usize) -> Result<Form, BodyError> {
        let pieces: Vec<Bytes> = text.chunks(size).map(Bytes::copy_from_slice).collect();
        let body = Body::made(text.len() as u64, (0, pieces), |(at, pieces)| async move {
            Ok(pieces.get(at).cloned().map(|piece| (piece, (at + 1, pieces))))
        });
        read(body, &boundary(TYPE).unwrap()).await
    }

    fn form(file: &str) -> Vec<u8> {
        let field = "------B\r\nContent-Disposition: form-data; name=\"csrf\"\r\n\r\nhu\r\nsh\r\n";
        let head = "------B\r\nContent-Disposition: form-data; name=\"file\"; filename=\"a%22b.txt\"\
                    \r\nContent-Type: text/plain\r\n\r\n";
        format!("{field}{head}{file}\r\n------B--\r\n").into_bytes()
    }

    #[tokio::test]
    async fn fields_and_the_file_are_read_whatever_pieces_they_come_in() {
        for content in ["", "hello", "\r\n------B", "\r\n------B--\r\n twice", &"x".repeat(10_000)]
        {
            for size in [1, 2, 3, 7, 64, 100_000] {
                let form = read_in(&form(content), size).await.unwrap();
                assert_eq!(form.get("csrf"), "hu\r\nsh");
                let file = form.take_file().unwrap();
                assert_eq!(
                    (file.name.as_str(), file.content_type.as_str()),
                    ("a\"b.txt", "text/plain")
                );
                assert_eq!(file.body.length(), Some(content.len() as u64));
                let bytes = file.body.collect(100_000).await.unwrap();
                assert!(bytes == content.as_bytes(), "{content} in pieces of {size}");
                assert!(form.take_file().is_none());
            }
        }
    }

    #[tokio::test]
    async fn what_breaks_off_or_goes_on_is_refused() {
        let whole = form("hello");
        for cut in [0, 5, 30, 80, 150] {
            assert!(read_in(&whole[..cut], 16).await.is_err(), "{cut}");
        }
        let mut longer = whole.clone();
        longer.extend_from_slice(b"more");
        let file = read_in(&longer, 16).await.unwrap().take_file().unwrap();
        assert!(file.body.collect(1_000).await.is_err());
        let endless = format!("------B\r\n{}", "x".repeat(2 * FORM_BYTES_MAX));
        let refused = read_in(endless.as_bytes(), 4_096).await.unwrap_err();
        assert_eq!(refused, BodyError::TooLarge);
    }

    #[test]
    fn only_forms_of_this_kind_have_a_boundary() {
        assert_eq!(boundary(TYPE).as_deref(), Some("----B"));
        assert_eq!(boundary("multipart/form-data; boundary=\"a b\"").as_deref(), Some("a b"));
        for other in ["", "application/x-www-form-urlencoded", "multipart/form-data"] {
            assert_eq!(boundary(other), None);
        }
        assert_eq!(boundary(&format!("{TYPE}{}", "B".repeat(100))), None);
    }
}
