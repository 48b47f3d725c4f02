//! `lazuli-sim`: runs scenarios over many seeds, or one seed again.

use std::process::ExitCode;
use std::time::Instant;

use lazuli_sim::runner::{Report, run_many, run_one};
use lazuli_sim::scenario::{SCENARIOS, Scenario, find};

const USAGE: &str = "\
usage: lazuli-sim [--scenario NAME] [--seeds N] [--start S]   run N seeds (default 100) from S on
       lazuli-sim --scenario NAME --seed S                    run one seed again, with its log
       lazuli-sim --list                                      name the scenarios";
const SEEDS_DEFAULT: u64 = 100;
/// How much of a failing seed's log is printed; the failure is near its end.
const LOG_LINES_MAX: usize = 2_000;

#[derive(Default)]
struct Arguments {
    scenario: Option<&'static Scenario>,
    seeds: Option<u64>,
    start: u64,
    seed: Option<u64>,
    list: bool,
}

fn main() -> ExitCode {
    match parse(std::env::args().skip(1)) {
        Ok(arguments) if arguments.list => {
            for scenario in SCENARIOS {
                println!("{:<24} {}", scenario.name, scenario.about);
            }
            ExitCode::SUCCESS
        }
        Ok(arguments) => run(&arguments),
        Err(wrong) => {
            eprintln!("{wrong}\n{USAGE}");
            ExitCode::from(2)
        }
    }
}

fn parse(mut words: impl Iterator<Item = String>) -> Result<Arguments, String> {
    let mut arguments = Arguments::default();
    while let Some(word) = words.next() {
        let mut value = || words.next().ok_or(format!("{word} needs a value"));
        match word.as_str() {
            "--list" => arguments.list = true,
            "--seeds" => arguments.seeds = Some(number(&value()?)?),
            "--start" => arguments.start = number(&value()?)?,
            "--seed" => arguments.seed = Some(number(&value()?)?),
            "--scenario" => {
                let name = value()?;
                arguments.scenario = Some(find(&name).ok_or(format!("no scenario {name}"))?);
            }
            _ => return Err(format!("unknown argument {word}")),
        }
    }
    Ok(arguments)
}

fn number(word: &str) -> Result<u64, String> {
    word.parse().map_err(|_| format!("{word} is not a number"))
}

fn run(arguments: &Arguments) -> ExitCode {
    let scenarios: Vec<&'static Scenario> = match arguments.scenario {
        Some(scenario) => vec![scenario],
        None => SCENARIOS.iter().collect(),
    };
    let begin = Instant::now();
    let (failures, runs) = match arguments.seed {
        Some(seed) => (replay(&scenarios, seed), scenarios.len() as u64),
        None => {
            let seeds = arguments.seeds.unwrap_or(SEEDS_DEFAULT);
            let failures = run_many(&scenarios, arguments.start, seeds);
            (failures, seeds * scenarios.len() as u64)
        }
    };
    for report in &failures {
        let found = report.failure.as_deref().unwrap_or_default();
        println!("FAILED {} seed {}: {found}", report.scenario, report.seed);
        println!("  replay: {}", report.replay());
    }
    let failed = failures.len() as u64;
    println!(
        "{} scenarios, {runs} runs in {:.1} s: {} passed, {failed} failed",
        scenarios.len(),
        begin.elapsed().as_secs_f64(),
        runs - failed,
    );
    if failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// Runs one seed with its log, and prints it.
fn replay(scenarios: &[&'static Scenario], seed: u64) -> Vec<Report> {
    let mut failures = Vec::new();
    for scenario in scenarios {
        let report = run_one(scenario, seed, true);
        let skipped = report.log.len().saturating_sub(LOG_LINES_MAX);
        for line in &report.log[skipped..] {
            println!("{line}");
        }
        println!("{} seed {seed}: trace {:016x}", scenario.name, report.trace);
        if report.failure.is_some() {
            failures.push(report);
        }
    }
    failures
}
