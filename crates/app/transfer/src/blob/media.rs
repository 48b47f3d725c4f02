//! The content type of a file, by the ending of its name.

const DEFAULT: &str = "application/octet-stream";

/// Endings in lower case, with what they stand for.
const TYPES: &[(&str, &str)] = &[
    ("avif", "image/avif"),
    ("bmp", "image/bmp"),
    ("css", "text/css"),
    ("csv", "text/csv"),
    ("gif", "image/gif"),
    ("gz", "application/gzip"),
    ("htm", "text/html"),
    ("html", "text/html"),
    ("ico", "image/x-icon"),
    ("jpeg", "image/jpeg"),
    ("jpg", "image/jpeg"),
    ("js", "text/javascript"),
    ("json", "application/json"),
    ("jsonl", "application/jsonl"),
    ("md", "text/markdown"),
    ("mjs", "text/javascript"),
    ("mp3", "audio/mpeg"),
    ("mp4", "video/mp4"),
    ("ogg", "audio/ogg"),
    ("otf", "font/otf"),
    ("parquet", "application/vnd.apache.parquet"),
    ("pdf", "application/pdf"),
    ("png", "image/png"),
    ("svg", "image/svg+xml"),
    ("tar", "application/x-tar"),
    ("ttf", "font/ttf"),
    ("txt", "text/plain"),
    ("wasm", "application/wasm"),
    ("wav", "audio/wav"),
    ("webm", "video/webm"),
    ("webp", "image/webp"),
    ("woff", "font/woff"),
    ("woff2", "font/woff2"),
    ("xml", "application/xml"),
    ("yaml", "application/yaml"),
    ("yml", "application/yaml"),
    ("zip", "application/zip"),
];

pub(super) fn content_type(name: &str) -> &'static str {
    let last = super::address::last(name);
    let Some((_, ending)) = last.rsplit_once('.') else { return DEFAULT };
    let found = TYPES.iter().find(|(own, _)| own.eq_ignore_ascii_case(ending));
    found.map_or(DEFAULT, |(_, kind)| kind)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn endings_tell_the_type_in_whatever_case() {
        assert_eq!(content_type("a.b/c.HTML"), "text/html");
        assert_eq!(content_type("a.json/c"), DEFAULT);
        assert_eq!(content_type("a.tar.gz"), "application/gzip");
        assert_eq!(content_type("a.b.nothing"), DEFAULT);
        assert_eq!(content_type(""), DEFAULT);
    }
}
