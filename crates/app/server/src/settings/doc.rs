//! `docs/settings.md`, made from the table of settings.

use std::fmt::Write;

use super::sources::FILE_DEFAULT;
use super::table::TABLE;

/// The whole page. A test compares it with the file.
pub fn page() -> String {
    let mut page = format!(
        "# Settings\n\n\
         Each setting has one name. `table-port` is the flag `--table-port`, the environment variable\n\
         `LAZULI_TABLE_PORT` and the key `table-port` of the settings file (TOML). A flag wins over the environment,\n\
         the environment over the file, the file over the default. The file is the one named by `--config` or\n\
         `LAZULI_CONFIG`, else `{FILE_DEFAULT}` in the working folder if there is one. A name that is not in the table is an\n\
         error. `lazuli config` prints the settings in force and where each comes from.\n\n\
         A setting marked *also per front* can be set for one front, in place of the value for all: `tls` is for all\n\
         fronts, `blob-tls`, `queue-tls` and `table-tls` are for one. Ports: a number must be free, or the server does not\n\
         start; a default port that is taken leaves the one front out, with a warning.\n\n\
         Bytes are written as `65536`, `64KiB`, `8MiB` or `1GiB`; times as `500ms`, `15s` or `2m`.\n\n\
         | setting | takes | default | what it does |\n\
         |---|---|---|---|\n"
    );
    for row in TABLE.iter().filter(|row| !row.is_override) {
        let takes = row.takes.replace('|', ", ");
        let default = row.default.map_or_else(|| "none".to_owned(), |text| format!("`{text}`"));
        let secret = if row.secret { " (secret: no flag, masked when printed)" } else { "" };
        let per_front = if row.per_front { " (also per front)" } else { "" };
        // Writing to a string cannot fail.
        let _ = writeln!(
            page,
            "| `{}` | {takes} | {default} | {}{secret}{per_front} |",
            row.name, row.help
        );
    }
    page.push_str(
        "\nThis page is made from the table in `crates/app/server/src/settings/table.rs`; after a change there,\n\
         `LAZULI_UPDATE_DOCS=1 cargo test -p lazuli-server settings_page` writes it anew.\n",
    );
    page
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_settings_page_says_what_the_table_says() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../docs/settings.md");
        if std::env::var_os("LAZULI_UPDATE_DOCS").is_some() {
            std::fs::write(path, super::page()).unwrap();
        }
        let text = std::fs::read_to_string(path).unwrap();
        assert!(text == super::page(), "docs/settings.md is not what the table makes; see its end");
    }
}
