//! The beginning of a blob, for people: as text, as hexadecimal digits, or as an image.
//!
//! The type is detected from the bytes and not taken from the blob's content type, so content that a browser would run is
//! shown as text.

use std::fmt::Write as _;

use lazuli_http::{Method, Response, StatusCode};
use serde_json::json;

use super::super::ok;
use super::super::refusal::{Refusal, Result};
use super::answer::{ask, header, unread};
use super::blobs::{blob, length, stored};
use super::request::BlobPath;
use crate::failure::Failure;
use crate::owner::Owner;

/// How much of a blob is shown unless asked otherwise, and at most.
pub(super) const PREVIEW_BYTES: usize = 64 * 1024;
pub(super) const PREVIEW_BYTES_MAX: usize = 1024 * 1024;
/// How much of it is shown in hexadecimal digits.
const HEX_BYTES_MAX: usize = 4 * 1024;
/// The largest image that is shown.
const IMAGE_BYTES_MAX: usize = 8 * 1024 * 1024;
const HEX_BYTES_PER_LINE: usize = 16;

/// The images that are shown, by how they begin: all of them pixels, none of them programs.
const IMAGES: [(&[u8], &str); 4] = [
    (b"\x89PNG\r\n\x1a\n", "image/png"),
    (b"\xff\xd8\xff", "image/jpeg"),
    (b"GIF87a", "image/gif"),
    (b"GIF89a", "image/gif"),
];

pub(super) async fn show(owner: &Owner, path: &BlobPath, most: usize) -> Result<Response> {
    let properties = ask(owner, blob(path, Method::HEAD)).await?;
    let bytes = length(&properties);
    let begin = match bytes {
        0 => bytes::Bytes::new(),
        _ => {
            let range = format!("bytes=0-{}", most.max(1) - 1);
            let part = ask(owner, blob(path, Method::GET).header("x-ms-range", range)).await?;
            part.body.collect(most).await.map_err(|_| unread())?
        }
    };
    let is_whole = begin.len() as u64 == bytes;
    let (kind, text) = match (image_type(&begin), as_text(&begin, is_whole)) {
        (Some(_), _) if bytes <= IMAGE_BYTES_MAX as u64 => ("image", None),
        (_, Some(text)) => ("text", Some(text.to_owned())),
        _ => ("hex", Some(hex(&begin[..begin.len().min(HEX_BYTES_MAX)]))),
    };
    let shown = match kind {
        "hex" => begin.len().min(HEX_BYTES_MAX),
        _ => begin.len(),
    };
    Ok(ok(&json!({
        "name": path.name,
        "kind": kind,
        "content_type": header(&properties, "content-type"),
        "bytes": bytes,
        "shown": shown,
        "text": text,
    })))
}

/// A whole image, with the content type of its bytes.
pub(super) async fn image(owner: &Owner, path: &BlobPath) -> Result<Response> {
    let properties = ask(owner, blob(path, Method::HEAD)).await?;
    if length(&properties) > IMAGE_BYTES_MAX as u64 {
        let message = format!("images of more than {IMAGE_BYTES_MAX} bytes are not shown");
        return Err(Refusal::too_large(message));
    }
    let answer = ask(owner, blob(path, Method::GET)).await?;
    let bytes = answer.body.collect(IMAGE_BYTES_MAX).await.map_err(|_| unread())?;
    match image_type(&bytes) {
        Some(content_type) => Ok(stored(bytes.into(), content_type)),
        None => Err(Refusal::new(
            StatusCode::UNSUPPORTED_MEDIA_TYPE,
            Failure::new("not-an-image", "this is no image that can be shown"),
        )),
    }
}

fn image_type(bytes: &[u8]) -> Option<&'static str> {
    let is_webp = bytes.starts_with(b"RIFF") && bytes.get(8..12) == Some(b"WEBP");
    let known = IMAGES.iter().find(|(begin, _)| bytes.starts_with(begin));
    known.map(|(_, name)| *name).or(is_webp.then_some("image/webp"))
}

/// The bytes as text, if they are UTF-8. A part may end in the middle of a character, which is left out.
fn as_text(bytes: &[u8], is_whole: bool) -> Option<&str> {
    let text = match std::str::from_utf8(bytes) {
        Ok(text) => text,
        Err(error) if !is_whole && error.error_len().is_none() => {
            std::str::from_utf8(&bytes[..error.valid_up_to()]).ok()?
        }
        Err(_) => return None,
    };
    let is_strange = |c: char| c.is_ascii_control() && !matches!(c, '\t' | '\n' | '\r' | '\u{c}');
    (!text.contains(is_strange)).then_some(text)
}

/// A hex dump: offset, digits, characters.
fn hex(bytes: &[u8]) -> String {
    let mut out = String::new();
    for (line, bytes) in bytes.chunks(HEX_BYTES_PER_LINE).enumerate() {
        // Writing into a string does not fail.
        let _ = write!(out, "{:08x} ", line * HEX_BYTES_PER_LINE);
        for byte in bytes {
            let _ = write!(out, " {byte:02x}");
        }
        let sign = |byte: &u8| match byte {
            0x20..0x7f => char::from(*byte),
            _ => '.',
        };
        let signs: String = bytes.iter().map(sign).collect();
        let room = 3 * (HEX_BYTES_PER_LINE - bytes.len());
        let _ = writeln!(out, "{:room$}  {signs}", "");
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_told_from_what_is_none_also_where_it_is_cut() {
        assert_eq!(as_text("aä\n".as_bytes(), true), Some("aä\n"));
        assert_eq!(as_text(&"aä".as_bytes()[..2], false), Some("a"));
        assert_eq!(as_text(&"aä".as_bytes()[..2], true), None);
        assert_eq!(as_text(b"a\0b", true), None);
        assert_eq!(as_text(b"a\xffb", false), None);
        assert_eq!(as_text(b"<script>alert(1)</script>", true), Some("<script>alert(1)</script>"));
    }

    #[test]
    fn images_are_known_by_their_bytes_and_drawings_that_run_are_none() {
        assert_eq!(image_type(b"\x89PNG\r\n\x1a\nrest"), Some("image/png"));
        assert_eq!(image_type(b"RIFF....WEBPVP8 "), Some("image/webp"));
        for other in [&b""[..], b"RIFF....WAVE", b"<svg onload=alert(1)>", b"<!doctype html>"] {
            assert_eq!(image_type(other), None);
        }
    }

    #[test]
    fn other_bytes_become_lines_of_digits() {
        let lines = hex(b"0123456789abcdef\0<");
        let second = format!("00000010  00 3c{}  .<\n", " ".repeat(42));
        let first = "00000000  30 31 32 33 34 35 36 37 38 39 61 62 63 64 65 66  0123456789abcdef\n";
        assert_eq!(lines, format!("{first}{second}"));
    }
}
