//! XML as the storage services use it for settings: elements and text, nothing else.
//!
//! Attributes (but for two), comments and namespaces are skipped, document types are refused. What is read becomes a
//! small tree, whose size and depth are bounded, so that the readers of policies and properties can look things up by name.

/// How deep elements may nest. The deepest document of the services has five levels.
pub const DEPTH_MAX: usize = 16;
/// The most elements of a document.
pub const ELEMENTS_MAX: usize = 2_000;

/// The text is no XML of this kind, or over a limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct XmlError;

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Element {
    /// Without the prefix of a namespace.
    pub name: String,
    /// All text directly in it, white space and all.
    pub text: String,
    /// Marked with `Encoded="true"`: the services so carry names that XML cannot hold, with percent signs.
    pub encoded: bool,
    /// The value of its attribute `type`, whatever the prefix: which of several kinds of element it is.
    pub kind: Option<String>,
    pub children: Vec<Element>,
}

impl Element {
    pub fn child(&self, name: &str) -> Option<&Element> {
        self.children.iter().find(|child| child.name == name)
    }

    /// The text of a child without the space around it, if it is there and not empty.
    pub fn child_text(&self, name: &str) -> Option<&str> {
        self.child(name).map(|child| child.text.trim()).filter(|text| !text.is_empty())
    }
}

/// Reads a document: its only root element.
pub fn parse(text: &[u8]) -> Result<Element, XmlError> {
    parse_up_to(text, ELEMENTS_MAX)
}

/// The same, with another limit of elements.
pub fn parse_up_to(text: &[u8], elements_max: usize) -> Result<Element, XmlError> {
    let text = std::str::from_utf8(text).map_err(|_| XmlError)?;
    let rest = text.trim_start_matches('\u{feff}');
    let mut reader = Reader { rest, elements_left: elements_max };
    reader.skip_misc()?;
    let root = reader.element(0)?;
    reader.skip_misc()?;
    if reader.rest.is_empty() { Ok(root) } else { Err(XmlError) }
}

/// Writes text so that it can stand in an element or an attribute. A carriage return would be read as a line feed, unless
/// it is escaped too.
pub fn write_text(out: &mut String, text: &str) {
    let mut rest = text;
    while let Some(at) = rest.find(['&', '<', '>', '"', '\r']) {
        let (before, sign) = rest.split_at(at);
        out.push_str(before);
        out.push_str(match sign.as_bytes()[0] {
            b'&' => "&amp;",
            b'<' => "&lt;",
            b'>' => "&gt;",
            b'"' => "&quot;",
            _ => "&#xD;",
        });
        rest = &sign[1..];
    }
    out.push_str(rest);
}

/// Writes `<name>text</name>`.
pub fn write(out: &mut String, name: &str, text: &str) {
    open(out, name);
    write_text(out, text);
    close(out, name);
}

/// Writes `<name>`.
pub fn open(out: &mut String, name: &str) {
    out.push('<');
    out.push_str(name);
    out.push('>');
}

/// Writes `</name>`.
pub fn close(out: &mut String, name: &str) {
    out.push_str("</");
    out.push_str(name);
    out.push('>');
}

/// Whether XML can carry the text at all: most control characters can't stand in it, not even escaped.
pub fn can_carry(text: &str) -> bool {
    let is_forbidden = |c: char| match c {
        '\t' | '\n' | '\r' => false,
        _ => c < ' ' || matches!(c, '\u{fffe}' | '\u{ffff}'),
    };
    !text.contains(is_forbidden)
}

struct Reader<'a> {
    rest: &'a str,
    elements_left: usize,
}

impl<'a> Reader<'a> {
    fn take(&mut self, token: &str) -> bool {
        match self.rest.strip_prefix(token) {
            Some(rest) => {
                self.rest = rest;
                true
            }
            None => false,
        }
    }

    /// Everything up to the token, which is taken too.
    fn until(&mut self, token: &str) -> Result<&'a str, XmlError> {
        let (text, rest) = self.rest.split_once(token).ok_or(XmlError)?;
        self.rest = rest;
        Ok(text)
    }

    /// White space, declarations and comments.
    fn skip_misc(&mut self) -> Result<(), XmlError> {
        loop {
            self.rest = self.rest.trim_start();
            if self.take("<?") {
                self.until("?>")?;
            } else if self.take("<!--") {
                self.until("-->")?;
            } else {
                return Ok(());
            }
        }
    }

    fn element(&mut self, depth: usize) -> Result<Element, XmlError> {
        self.elements_left = self.elements_left.checked_sub(1).ok_or(XmlError)?;
        if depth == DEPTH_MAX || !self.take("<") {
            return Err(XmlError);
        }
        let tag = self.tag()?;
        let (tag, is_empty) = match tag.strip_suffix('/') {
            Some(tag) => (tag, true),
            None => (tag, false),
        };
        let qualified = tag.split_ascii_whitespace().next().unwrap_or_default();
        let name = qualified.rsplit(':').next().unwrap_or_default();
        let plain = |c: char| c.is_alphanumeric() || matches!(c, '_' | '-' | '.');
        if name.is_empty() || tag.starts_with(char::is_whitespace) || !name.chars().all(plain) {
            return Err(XmlError);
        }
        let mut attributes = tag.split_ascii_whitespace().skip(1);
        let encoded = attributes.clone().any(|attribute| attribute == "Encoded=\"true\"");
        let kind = attributes.find_map(type_of);
        let mut element = Element { name: name.to_owned(), encoded, kind, ..Element::default() };
        if !is_empty {
            self.content(&mut element, depth)?;
            if self.until(">")?.trim_end() != qualified {
                return Err(XmlError);
            }
        }
        Ok(element)
    }

    /// What stands between the brackets of a tag. A bracket in the value of an attribute does not end it.
    fn tag(&mut self) -> Result<&'a str, XmlError> {
        let mut quote = None;
        for (at, c) in self.rest.char_indices() {
            match (quote, c) {
                (None, '>') => {
                    let tag = &self.rest[..at];
                    self.rest = &self.rest[at + 1..];
                    return Ok(tag);
                }
                (None, '<') => return Err(XmlError),
                (None, '"' | '\'') => quote = Some(c),
                (Some(open), c) if c == open => quote = None,
                _ => {}
            }
        }
        Err(XmlError)
    }

    /// Text and elements, up to and including the `</` of the end tag.
    fn content(&mut self, element: &mut Element, depth: usize) -> Result<(), XmlError> {
        loop {
            let at = self.rest.find('<').ok_or(XmlError)?;
            unescape(&self.rest[..at], &mut element.text)?;
            self.rest = &self.rest[at..];
            if self.take("</") {
                return Ok(());
            }
            if self.take("<!--") {
                self.until("-->")?;
            } else if self.take("<![CDATA[") {
                element.text.push_str(self.until("]]>")?);
            } else if self.take("<?") {
                self.until("?>")?;
            } else {
                element.children.push(self.element(depth + 1)?);
            }
        }
    }
}

/// The value of an attribute `type`, without the prefix of a namespace on either side.
fn type_of(attribute: &str) -> Option<String> {
    let (name, value) = attribute.split_once('=')?;
    if name.rsplit(':').next() != Some("type") {
        return None;
    }
    let value = value.trim_matches(['"', '\'']);
    Some(value.rsplit(':').next().unwrap_or(value).to_owned())
}

fn unescape(text: &str, out: &mut String) -> Result<(), XmlError> {
    let mut rest = text;
    while let Some((before, tail)) = rest.split_once('&') {
        let (name, tail) = tail.split_once(';').ok_or(XmlError)?;
        out.push_str(before);
        out.push(match name {
            "lt" => '<',
            "gt" => '>',
            "amp" => '&',
            "quot" => '"',
            "apos" => '\'',
            _ => {
                let code = name.strip_prefix('#').ok_or(XmlError)?;
                let number = match code.strip_prefix(['x', 'X']) {
                    Some(digits) => u32::from_str_radix(digits, 16),
                    None => code.parse(),
                };
                number.ok().and_then(char::from_u32).ok_or(XmlError)?
            }
        });
        rest = tail;
    }
    out.push_str(rest);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    const SEED: &str = "\u{feff}<?xml version=\"1.0\"?>\n<!-- c --><m:A x=\"1>2\"><B>a &lt;&#x41; b</B>\
                        <C/> <D><![CDATA[<&>]]></D><!-- d --></m:A>\n";

    #[test]
    fn elements_and_text_are_read() {
        let root = parse(SEED.as_bytes()).unwrap();
        assert_eq!(root.name, "A");
        assert_eq!(root.child_text("B"), Some("a <A b"));
        assert_eq!((root.child_text("C"), root.child("C").is_some()), (None, true));
        assert_eq!(root.child_text("D"), Some("<&>"));
        assert_eq!(root.child("E"), None);
        let mut out = String::new();
        write(&mut out, "B", " a <&>\r\n \"b\" ");
        assert_eq!(out, "<B> a &lt;&amp;&gt;&#xD;\n &quot;b&quot; </B>");
        assert_eq!(parse(out.as_bytes()).unwrap().text, " a <&>\r\n \"b\" ");
        assert!(
            can_carry("a\t\r\n\u{e9}\u{1f600}") && !can_carry("\u{1}") && !can_carry("\u{ffff}")
        );
    }

    #[test]
    fn encoded_text_is_marked_and_stays_as_it_is() {
        let encoded = |text: &str| parse(text.as_bytes()).unwrap().encoded;
        assert!(encoded("<N Encoded=\"true\">%01</N>"));
        assert!(!encoded("<N>%01</N>") && !encoded("<N Encoded=\"false\">%01</N>"));
    }

    #[test]
    fn the_type_of_an_element_is_read_without_prefixes() {
        let kind = |text: &str| parse(text.as_bytes()).unwrap().kind;
        assert_eq!(kind("<F xmlns:i='x' i:type=\"SqlFilter\"/>").as_deref(), Some("SqlFilter"));
        assert_eq!(kind("<V xsi:type='d6p1:int'>5</V>").as_deref(), Some("int"));
        assert_eq!(kind("<V kind='d6p1:int'>5</V>"), None);
    }

    #[test]
    fn what_is_no_document_is_refused() {
        for bad in [
            "",
            "a",
            "<A>",
            "<A></B>",
            "<A/><B/>",
            "<A>&x;</A>",
            "<A>&lt</A>",
            "<!DOCTYPE a><A/>",
            "< A/>",
            "<A <B/>",
            "<A>&#xD800;</A>",
            "<a/b/>",
        ] {
            assert_eq!(parse(bad.as_bytes()), Err(XmlError), "{bad}");
        }
        let nested = |depth: usize| format!("{}{}", "<A>".repeat(depth), "</A>".repeat(depth));
        assert!(parse(nested(DEPTH_MAX).as_bytes()).is_ok());
        assert!(parse(nested(DEPTH_MAX + 1).as_bytes()).is_err());
        assert!(parse(format!("<A>{}</A>", "<B/>".repeat(ELEMENTS_MAX)).as_bytes()).is_err());
    }
}
