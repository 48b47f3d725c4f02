//! Measures a front against the emulator. Fails if a bound is missed. Run by `cargo xtask bench-compare FRONT`.

use std::process::ExitCode;
use std::time::Duration;

use lazuli_bench::compare::{
    Front, Options, Result, blobs, bus, cache, documents, queues, search, sql, tables,
};
use lazuli_bench::conclude;

const ENTITIES: u64 = 1_000_000;
const ENTITIES_FEW: u64 = 10_000;
const SECONDS: u64 = 4;

fn main() -> ExitCode {
    let measured = options().and_then(|options| match options.front {
        Front::Blobs => blobs::run(&options),
        Front::Bus => bus::run(&options),
        Front::Cache => cache::run(&options),
        Front::Hub => bus::run_hub(&options),
        Front::Documents => documents::run(&options),
        Front::Queues => queues::run(&options),
        Front::Search => search::run(&options),
        Front::Sql => sql::run(&options),
        Front::Tables => tables::run(&options),
    });
    conclude(measured.map_err(|message| format!("compare: {message}")))
}

fn options() -> Result<Options> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let value = |name: &str| {
        let at = words.iter().position(|word| word == name)?;
        words.get(at + 1).cloned()
    };
    let path = |name: &str| value(name).map(Into::into).ok_or(format!("{name} needs a value"));
    let number = |name: &str, or: u64| {
        let text = value(name).map_or(Ok(or), |text| text.parse());
        text.map_err(|_| format!("{name} needs a number"))
    };
    let front = match value("--front").as_deref() {
        Some("blobs") => Front::Blobs,
        Some("bus") => Front::Bus,
        Some("cache") => Front::Cache,
        Some("hub") => Front::Hub,
        Some("documents") => Front::Documents,
        Some("queues") => Front::Queues,
        Some("search") => Front::Search,
        Some("sql") => Front::Sql,
        Some("tables") => Front::Tables,
        _ => return Err("--front needs the name of a front".to_owned()),
    };
    Ok(Options {
        front,
        binary: path("--binary")?,
        peer: path("--peer")?,
        folder: path("--folder")?,
        time: Duration::from_secs(number("--seconds", SECONDS)?),
        entities: number("--entities", ENTITIES)?,
        entities_few: ENTITIES_FEW,
        only: value("--only"),
    })
}
