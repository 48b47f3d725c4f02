//! `trial NAME [--option value]…`: one trial of the server. Each starts the binary `lazuli`, treats it as the world does
//! (kills it under load, sends it garbage), and checks what is left. Run by `cargo xtask crash` and `cargo xtask fuzz`.

mod crash;
mod differential;
mod freshness;
mod fuzz;
mod moving;

use std::path::PathBuf;
use std::process::ExitCode;
use std::str::FromStr;

use lazuli_trial::{Result, blobs};

/// The command line: the trial's name and `--name value`, every one of them needed.
#[derive(Default)]
struct Options {
    words: Vec<String>,
    /// The program under test.
    binary: PathBuf,
    /// Where it keeps its data and its log.
    folder: PathBuf,
}

impl Options {
    fn read(words: Vec<String>) -> Result<Self> {
        let mut options = Self { words, binary: PathBuf::new(), folder: PathBuf::new() };
        options.binary = options.value("--binary")?;
        options.folder = options.value("--folder")?;
        Ok(options)
    }

    fn value<T: FromStr>(&self, name: &str) -> Result<T> {
        let at = self.words.iter().position(|word| word == name);
        let value = at.and_then(|at| self.words.get(at + 1));
        let value = value.and_then(|value| value.parse().ok());
        value.ok_or(format!("{name} needs a value"))
    }
}

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let name = words.first().cloned().unwrap_or_default();
    match run(&name, words) {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            eprintln!("{name}: {message}");
            ExitCode::FAILURE
        }
    }
}

fn run(name: &str, words: Vec<String>) -> Result {
    match name {
        "crash-tables" => crash::run(&Options::read(words)?, crash::tables::Tables::default()),
        "crash-blobs" => crash::run(&Options::read(words)?, crash::blobs::Blobs::default()),
        "crash-bus" => crash::run(&Options::read(words)?, crash::bus::Bus::default()),
        "crash-hub" => crash::run(&Options::read(words)?, crash::hub::Hub::default()),
        "crash-documents" => {
            crash::run(&Options::read(words)?, crash::documents::Documents::default())
        }
        "crash-cache" => crash::run(&Options::read(words)?, crash::cache::Cache::<true>::default()),
        "crash-cache-everysec" => {
            crash::run(&Options::read(words)?, crash::cache::Cache::<false>::default())
        }
        "crash-queues" => crash::run(&Options::read(words)?, crash::queues::Queues::default()),
        "cache-moving" => moving::run(&Options::read(words)?),
        "differential-cache" => differential::run(&Options { words, ..Options::default() }),
        "crash-search" => crash::run(&Options::read(words)?, crash::search::Search::default()),
        "search-freshness" => freshness::run(&Options::read(words)?),
        "fuzz-requests" => fuzz::run(&Options::read(words)?),
        // For programs that take a signature but no endpoint of an emulator.
        "sas" => {
            println!("{}", blobs::account_sas());
            Ok(())
        }
        _ => {
            Err("the trials are cache-moving, crash-tables, crash-blobs, crash-bus, crash-cache, \
                  crash-cache-everysec, crash-documents, crash-hub, crash-queues, crash-search, \
                  differential-cache, fuzz-requests, search-freshness, sas"
                .into())
        }
    }
}
