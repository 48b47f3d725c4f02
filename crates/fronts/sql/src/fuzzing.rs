//! What must hold for any text of a client. Fuzz targets and tests call these.

use std::collections::BTreeMap;

use lazuli_sharded_sql::Snapshot;

use crate::plan::{Context, CopyFormat, CopyShape, Facts, plan, split};

/// Texts are split without a panic, and nothing but semicolons is lost.
pub fn statements(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    let pieces = split::split(text);
    assert!(
        pieces.iter().map(|piece| piece.len()).sum::<usize>() <= text.len(),
        "pieces are longer"
    );
    let snapshot = Snapshot {
        name: "fuzz".into(),
        version: 1,
        tables: BTreeMap::new(),
        maps: Vec::new(),
        shards: Vec::new(),
        catalog_shard: 0,
        logins: BTreeMap::new(),
    };
    let (facts, path) = (Facts::default(), vec!["public".to_owned()]);
    let context = Context { snapshot: &snapshot, facts: &facts, search_path: &path };
    for piece in pieces {
        let _ = plan(piece, &context);
    }
}

/// Data of COPY is cut into rows that make up the data again.
pub fn copy_rows(data: &[u8]) {
    for format in [CopyFormat::Text, CopyFormat::Csv] {
        let (delimiter, null) = (b'\t', "\\N".to_owned());
        let shape =
            CopyShape { format, delimiter, null, quote: b'"', escape: b'"', has_header: false };
        crate::session::try_copy_rows(&shape, data);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changed_texts_break_nothing() {
        let seeds: &[&[u8]] = &[
            include_bytes!("../../../../fuzz/seeds/sql_statements/mixed"),
            b"1\ta\\\nb\n2\t\"c\nd\"\n\\.\n",
        ];
        for seed in seeds {
            for at in 0..seed.len() {
                statements(&seed[..at]);
                copy_rows(&seed[..at]);
                for byte in [b'\'', b'$', b'"', b'\\', b';', 0xc3] {
                    let mut changed = seed.to_vec();
                    changed[at] = byte;
                    copy_rows(&changed);
                    if at % 3 == 0 {
                        statements(&changed);
                    }
                }
            }
        }
    }
}
