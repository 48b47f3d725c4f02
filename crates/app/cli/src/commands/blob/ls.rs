//! `lazuli blob ls`: containers, or blobs with their size and time.

use lazuli_http::date::{Fraction, TICKS_PER_SECOND, format_iso8601};
use serde_json::{Value, json};

use super::address::{Address, shown};
use super::find;
use super::listing::{self, Entry};
use crate::args::blob::Ls;
use crate::commands::remote::session::Session;
use crate::failure::Result;
use crate::output;

pub(super) fn run(ls: &Ls) -> Result<()> {
    let json = ls.service.target.json;
    let address = ls.place.as_deref().map(Address::read).transpose()?;
    let mut session = Session::new(find(&ls.service)?)?;
    let Some(address) = address else {
        let names = listing::containers(&mut session)?;
        match json {
            true => output::json(&json!({ "containers": names })),
            false => names.iter().for_each(|name| output::line(name)),
        }
        return Ok(());
    };
    let (mut blobs, mut prefixes): (Vec<Value>, Vec<String>) = (Vec::new(), Vec::new());
    listing::pages(&mut session, &address, ls.recursive, |page| {
        if json {
            blobs.extend(page.blobs.iter().map(to_json));
            prefixes.extend(page.prefixes);
            return listing::check_count(blobs.len() + prefixes.len());
        }
        for prefix in page.prefixes {
            output::line(&row("-", "-", &prefix));
        }
        for entry in &page.blobs {
            output::line(&row(&entry.size.to_string(), &time(entry.modified), &entry.name));
        }
        Ok(())
    })?;
    if json {
        output::json(&json!({ "blobs": blobs, "prefixes": prefixes }));
    }
    Ok(())
}

fn row(size: &str, time: &str, name: &str) -> String {
    format!("{size:>15}  {time:<20}  {}", shown(name))
}

fn time(seconds: i64) -> String {
    format_iso8601(seconds.saturating_mul(TICKS_PER_SECOND), Fraction::Shortest)
}

fn to_json(entry: &Entry) -> Value {
    json!({
        "name": entry.name, "size": entry.size, "modified": time(entry.modified),
        "md5": entry.md5, "etag": entry.etag, "type": entry.kind,
    })
}
