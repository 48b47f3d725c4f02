//! Entities as rows: a column for each property and one for its type, `Name` and `Name@type`, as Azure Storage Explorer
//! writes them. So a property may have another type in each row, and none at all where its type is empty.

use std::collections::{BTreeMap, BTreeSet};

use lazuli_azure::odata::{EdmType, Metadata, Value, write_property, write_string};

use super::entity::{PARTITION_KEY, Properties, ROW_KEY, TIMESTAMP};
use super::layout::{Layout, guess, property_name};
use crate::csv::{FIELDS_MAX, Field, write_field};

const TYPE_MARK: &str = "@type";
/// The most columns that an error names.
const COLUMNS_SHOWN_MAX: usize = 20;

/// A column that holds values.
#[derive(Debug)]
struct Column {
    at: usize,
    name: String,
    /// The column with the type of each value.
    type_at: Option<usize>,
    /// The type of values without one of their own: given in the header as `Name@Edm.Type`, or by the layout. None is guessed.
    kind: Option<EdmType>,
}

/// What the header of a file says.
#[derive(Debug)]
pub(super) struct Header {
    columns: Vec<Column>,
    width: usize,
}

impl Header {
    /// Reads the first row. The error is a sentence.
    pub(super) fn read(fields: &[Field], layout: &Layout) -> Result<Self, String> {
        let mut columns: Vec<Column> = Vec::new();
        // Some programs begin a file with a mark of its encoding.
        let texts = fields.iter().map(|field| field.text.trim_start_matches('\u{feff}').trim());
        for (at, text) in texts.clone().enumerate() {
            if text.ends_with(TYPE_MARK) {
                continue;
            }
            let (name, own) = match text.rsplit_once('@') {
                None => (text, None),
                Some((name, kind)) => (name, Some(kind_of(kind)?)),
            };
            for name in names_of(name, layout) {
                let kind = own.or_else(|| layout.type_of(text));
                if columns.iter().any(|column| column.name == name) {
                    return Err(format!("column {name} stands there twice"));
                }
                columns.push(Column { at, name, type_at: None, kind });
            }
        }
        for (at, text) in texts.clone().enumerate() {
            let Some(name) = text.strip_suffix(TYPE_MARK) else { continue };
            match columns.iter_mut().find(|column| column.name == name) {
                Some(column) => column.type_at = Some(at),
                None => return Err(format!("{name}{TYPE_MARK} has no column {name}")),
            }
        }
        for (key, asked) in [(PARTITION_KEY, &layout.partition_key), (ROW_KEY, &layout.row_key)] {
            if !columns.iter().any(|column| column.name == key) {
                return Err(no_key(key, asked.as_deref(), texts));
            }
        }
        layout.check_types(|name| texts.clone().any(|text| text == name))?;
        Ok(Self { columns, width: fields.len() })
    }

    /// The JSON object that a row stands for. The error is a sentence.
    pub(super) fn object(&self, fields: &[Field]) -> Result<Vec<u8>, String> {
        if fields.len() != self.width {
            let (has, width) = (fields.len(), self.width);
            return Err(format!("the row has {has} fields and the header {width}"));
        }
        let mut out = b"{".to_vec();
        for column in &self.columns {
            let field = &fields[column.at];
            let is_key = matches!(column.name.as_str(), PARTITION_KEY | ROW_KEY);
            let note = column.type_at.map_or("", |at| fields[at].text.trim());
            let kind = match note {
                _ if is_key => EdmType::String,
                "" => column.kind.unwrap_or_else(|| guess(&field.text)),
                note => kind_of(note)?,
            };
            // No text is an empty text where the type or quotation marks say so, and no property elsewhere.
            let said = is_key || field.quoted || !note.is_empty();
            let may_be_empty = matches!(kind, EdmType::String | EdmType::Binary);
            let absent = field.text.is_empty() && !(said && may_be_empty);
            if !absent && column.name != TIMESTAMP {
                write_member(&mut out, &column.name, kind, &field.text)?;
            }
        }
        if out.len() > 1 {
            out.pop();
        }
        out.push(b'}');
        Ok(out)
    }
}

/// The properties that a column fills: one, or both keys where both are taken from it.
fn names_of(column: &str, layout: &Layout) -> Vec<String> {
    let is_asked = |asked: &Option<String>| asked.as_deref() == Some(column);
    let keys = [(PARTITION_KEY, &layout.partition_key), (ROW_KEY, &layout.row_key)];
    let named: Vec<String> = keys
        .into_iter()
        .filter(|(_, asked)| is_asked(asked))
        .map(|(key, _)| key.to_owned())
        .collect();
    match (named.is_empty(), layout.is_foreign()) {
        (false, _) => named,
        (true, true) => vec![property_name(column)],
        (true, false) => vec![column.to_owned()],
    }
}

fn no_key<'a>(key: &str, asked: Option<&str>, texts: impl Iterator<Item = &'a str>) -> String {
    let listed = texts.take(COLUMNS_SHOWN_MAX).collect::<Vec<_>>().join(", ");
    match asked {
        Some(column) => format!("the header has no column {column}; it has {listed}"),
        None => {
            let flag = if key == PARTITION_KEY { "--partition-key" } else { "--row-key" };
            format!("the header has no column {key}; name another one with {flag}: it has {listed}")
        }
    }
}

pub(super) fn kind_of(text: &str) -> Result<EdmType, String> {
    let full = if text.starts_with("Edm.") { text.to_owned() } else { format!("Edm.{text}") };
    EdmType::parse(&full).ok_or_else(|| format!("{text} is no type"))
}

/// Writes a property with the note on its type, and a comma behind it.
fn write_member(out: &mut Vec<u8>, name: &str, kind: EdmType, text: &str) -> Result<(), String> {
    if kind != EdmType::String {
        write_string(out, &format!("{name}@odata.type"));
        out.push(b':');
        write_string(out, kind.name());
        out.push(b',');
    }
    write_string(out, name);
    out.push(b':');
    match kind {
        EdmType::Boolean => match text.to_ascii_lowercase().as_str() {
            it @ ("true" | "false") => out.extend_from_slice(it.as_bytes()),
            _ => return Err(format!("the value of {name} is not of its type")),
        },
        _ => write_string(out, text),
    }
    out.push(b',');
    Ok(())
}

/// The columns of a file to be written: the union of what its entities have.
#[derive(Debug, Default)]
pub(super) struct Union {
    names: BTreeSet<String>,
    timestamp: bool,
}

impl Union {
    /// Adds the properties of one entity. False if there are too many for one file.
    pub(super) fn add(&mut self, properties: &Properties<'_>) -> bool {
        for (name, _) in properties {
            match name.as_ref() {
                PARTITION_KEY | ROW_KEY => {}
                TIMESTAMP => self.timestamp = true,
                name if self.names.contains(name) => {}
                name => {
                    self.names.insert(name.to_owned());
                }
            }
        }
        self.names.len() * 2 + 3 <= FIELDS_MAX
    }

    pub(super) fn write_header(&self, out: &mut Vec<u8>) {
        write_field(out, PARTITION_KEY);
        out.push(b',');
        write_field(out, ROW_KEY);
        if self.timestamp {
            out.push(b',');
            write_field(out, TIMESTAMP);
        }
        for name in &self.names {
            out.push(b',');
            write_field(out, name);
            out.push(b',');
            write_field(out, &format!("{name}{TYPE_MARK}"));
        }
        out.push(b'\n');
    }

    pub(super) fn write_row(&self, out: &mut Vec<u8>, properties: &Properties<'_>) {
        let by_name: BTreeMap<&str, &Value<'_>> =
            properties.iter().map(|(name, value)| (name.as_ref(), value)).collect();
        let text_of = |name: &str| by_name.get(name).map(|value| text(value)).unwrap_or_default();
        write_field(out, &text_of(PARTITION_KEY));
        out.push(b',');
        write_field(out, &text_of(ROW_KEY));
        if self.timestamp {
            out.push(b',');
            out.extend_from_slice(text_of(TIMESTAMP).as_bytes());
        }
        for name in &self.names {
            out.push(b',');
            match by_name.get(name.as_str()) {
                Some(value) => {
                    write_field(out, &text(value));
                    out.push(b',');
                    out.extend_from_slice(value.kind().name().as_bytes());
                }
                None => out.push(b','),
            }
        }
        out.push(b'\n');
    }
}

/// A value as a field has it: as in JSON, without quotation marks.
fn text(value: &Value<'_>) -> String {
    if let Value::String(text) = value {
        return text.to_string();
    }
    let mut out = Vec::new();
    write_property(&mut out, "", value, Metadata::None);
    let text = String::from_utf8_lossy(&out);
    text.trim_start_matches("\"\":").trim_matches('"').to_owned()
}

#[cfg(test)]
mod tests {
    use super::super::entity::{object, properties};
    use super::super::layout::Types;
    use super::*;
    use crate::csv::read_row;

    fn fields(line: &str) -> Vec<Field> {
        read_row(&mut line.as_bytes()).unwrap().unwrap().fields.unwrap()
    }

    fn entity(header: &str, row: &str) -> Result<String, String> {
        foreign(header, row, &Layout::default())
    }

    fn foreign(header: &str, row: &str, layout: &Layout) -> Result<String, String> {
        let text = Header::read(&fields(header), layout)?.object(&fields(row))?;
        Ok(String::from_utf8(object(&properties(&text)?)).unwrap())
    }

    #[test]
    fn every_type_comes_back_as_it_was() {
        let lines = [
            r#"{"PartitionKey":"","RowKey":"a,\"b\"\n","S":"","I":-1,"B":true,"D":1.0}"#,
            r#"{"PartitionKey":"p","RowKey":"r","L@odata.type":"Edm.Int64","L":"-5","I":"text"}"#,
            r#"{"PartitionKey":"p","RowKey":"r","D@odata.type":"Edm.Double","D":"NaN"}"#,
            r#"{"PartitionKey":"p","RowKey":"r","D@odata.type":"Edm.Double","D":"-Infinity"}"#,
            r#"{"PartitionKey":"p","RowKey":"r","D":5e-324,"T@odata.type":"Edm.DateTime","T":"2024-05-06T07:08:09.1234567Z"}"#,
            r#"{"PartitionKey":"p","RowKey":"r","G@odata.type":"Edm.Guid","G":"c9da6455-213d-42c9-9a79-3e9149a57833"}"#,
            r#"{"PartitionKey":"p","RowKey":"r","X@odata.type":"Edm.Binary","X":""}"#,
            r#"{"PartitionKey":"p","RowKey":"r","X@odata.type":"Edm.Binary","X":"AAH/"}"#,
        ];
        let all: Vec<_> = lines.iter().map(|line| properties(line.as_bytes()).unwrap()).collect();
        let mut union = Union::default();
        assert!(all.iter().all(|entity| union.add(entity)));
        let mut out = Vec::new();
        union.write_header(&mut out);
        all.iter().for_each(|entity| union.write_row(&mut out, entity));
        let mut input = out.as_slice();
        let header = read_row(&mut input).unwrap().unwrap().fields.unwrap();
        let header = Header::read(&header, &Layout::default()).unwrap();
        for expected in all {
            let row = read_row(&mut input).unwrap().unwrap().fields.unwrap();
            let read = header.object(&row).unwrap();
            let mut expected = expected;
            expected[2..].sort_by(|one, other| one.0.cmp(&other.0));
            assert_eq!(
                String::from_utf8(object(&properties(&read).unwrap())).unwrap(),
                String::from_utf8(object(&expected)).unwrap()
            );
        }
    }

    #[test]
    fn files_of_other_programs_are_read() {
        let keys = r#"{"PartitionKey":"1","RowKey":"2""#;
        // Types with and without their prefix, in any place, and of the keys.
        let header = "\u{feff}A@type,A,PartitionKey,PartitionKey@type,RowKey,Timestamp";
        let read = entity(header, "Int32,7,1,Edm.Int32,2,2024-01-01T00:00:00Z");
        assert_eq!(read, Ok(r#"{"A":7,"PartitionKey":"1","RowKey":"2"}"#.to_owned()));
        // Without types all is text, and what is empty is not there.
        assert_eq!(
            entity("PartitionKey,RowKey,A,B", "1,2,x,"),
            Ok(format!("{keys},\"A\":\"x\"}}"))
        );
        assert_eq!(
            entity("PartitionKey,RowKey,A,B", "1,2,x,\"\""),
            Ok(format!("{keys},\"A\":\"x\",\"B\":\"\"}}"))
        );
        // A type for the whole column.
        assert_eq!(
            entity("PartitionKey,RowKey,A@Edm.Boolean,B@Int32", "1,2,TRUE,"),
            Ok(format!("{keys},\"A\":true}}"))
        );
    }

    #[test]
    fn any_columns_become_keys_and_properties() {
        let mut layout = Layout {
            partition_key: Some("Customer Id".to_owned()),
            row_key: Some("No".to_owned()),
            types: Types::Guessed,
            ..Layout::default()
        };
        let header = "No,Customer Id,Order Date,Total";
        let read = foreign(header, "007,c1,2026-01-02T03:04:05Z,12.5", &layout).unwrap();
        let expected = "{\"RowKey\":\"007\",\"PartitionKey\":\"c1\",\
            \"Order_Date@odata.type\":\"Edm.DateTime\",\"Order_Date\":\"2026-01-02T03:04:05Z\",\
            \"Total\":12.5}";
        assert_eq!(read, expected);
        layout.types = Types::Given(vec![("Total".to_owned(), EdmType::Int64)]);
        let read = foreign(header, "1,c1,x,5", &layout).unwrap();
        assert!(read.ends_with("\"Total@odata.type\":\"Edm.Int64\",\"Total\":\"5\"}"), "{read}");
        // One column can be both keys.
        layout.partition_key = Some("No".to_owned());
        let read = foreign("No,Total", "1,5", &layout).unwrap();
        assert!(read.starts_with("{\"PartitionKey\":\"1\",\"RowKey\":\"1\""), "{read}");
        assert_eq!(
            foreign("No,Id", "1,5", &layout).unwrap_err(),
            "the header has no column Total, whose type is given"
        );
        layout.row_key = Some("Missing".to_owned());
        assert_eq!(
            foreign("No,Total", "1,5", &layout).unwrap_err(),
            "the header has no column Missing; it has No, Total"
        );
    }

    #[test]
    fn what_is_wrong_is_said() {
        let wrong = |header: &str, row: &str| entity(header, row).unwrap_err();
        assert_eq!(
            wrong("PartitionKey,A", ""),
            "the header has no column RowKey; name another one with --row-key: it has PartitionKey, A"
        );
        assert_eq!(wrong("PartitionKey,RowKey,A,A", ""), "column A stands there twice");
        assert_eq!(wrong("PartitionKey,RowKey,A@type", ""), "A@type has no column A");
        assert_eq!(wrong("PartitionKey,RowKey,A@Money", ""), "Money is no type");
        let one = "PartitionKey,RowKey,A@Int32";
        assert_eq!(wrong(one, "1,2"), "the row has 2 fields and the header 3");
        assert_eq!(wrong(one, "1,2,x"), "the value of A is not of its type");
        assert_eq!(
            wrong("PartitionKey,RowKey,A,A@type", "1,2,x,Boolean"),
            "the value of A is not of its type"
        );
    }
}
