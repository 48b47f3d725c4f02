//! `cargo run --release -p lazuli-bench --bin bench NAME [FOLDER]`: one benchmark, which fails if a bound is missed.
//! FOLDER is on the disk that is measured.
//!
//! `moving` takes options: `--huge` splits a partition of 100 M items too, which takes minutes to fill; `--apart` copies
//! tables, as between two file systems; `--quick` makes one move and no splits, `--splits` makes no moves.

use std::process::ExitCode;

use lazuli_bench::{
    Report, balance, blocks, fleet, history, in_runtime, many, measure, moving, queues, store,
};

/// As the server has it.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    let mut words: Vec<String> = std::env::args().skip(1).collect();
    let name = if words.is_empty() { String::new() } else { words.remove(0) };
    let (options, folders): (Vec<String>, Vec<String>) =
        words.into_iter().partition(|word| word.starts_with("--"));
    let folder = folders.first().map_or_else(std::env::temp_dir, Into::into);
    if name != "moving" && !options.is_empty() {
        return wrong(&format!("{name} takes no options"));
    }
    match name.as_str() {
        "balance" => measure(&folder, |at| in_runtime(balance::run(at, balance::Size::FULL))),
        "blocks" => measure(&folder, |at| blocks::run(at, blocks::Size::FULL)),
        "fleet" => measure(&folder, |_| in_runtime(fleet_report())),
        "history" => measure(&folder, |at| in_runtime(history::run(at, history::Size::FULL))),
        "many" => measure(&folder, |at| in_runtime(many::run(at, many::Size::FULL))),
        "moving" => {
            let mut size = moving::Size::full();
            for option in &options {
                size = match option.as_str() {
                    "--huge" => size.huge(),
                    "--apart" => size.apart(),
                    "--quick" => size.quick(),
                    "--splits" => size.only_splits(),
                    _ => return wrong("moving takes --huge, --apart, --quick and --splits"),
                };
            }
            measure(&folder, |at| in_runtime(moving::run(at, size)))
        }
        "queues" => measure(&folder, |at| in_runtime(queues::run(at, queues::Size::FULL))),
        "store" => measure(&folder, |at| store::run(at, store::Size::FULL)),
        _ => {
            wrong("the benchmarks are balance, blocks, fleet, history, many, moving, queues, store")
        }
    }
}

fn wrong(message: &str) -> ExitCode {
    eprintln!("{message}");
    ExitCode::from(2)
}

async fn fleet_report() -> lazuli_store::Result<Report> {
    let report = Box::pin(fleet::run(fleet::Size::FULL)).await?;
    report.ok_or_else(|| lazuli_store::Error::invalid("bench", "PostgreSQL is not installed"))
}
