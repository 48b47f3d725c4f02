//! Structured logs on standard error, as text or as one JSON object per line.

use tracing_subscriber::filter::LevelFilter;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;
use tracing_subscriber::{fmt, registry};

use crate::settings::{Log, LogFormat, LogLevel};

/// Starts logging. A second call in one process changes nothing, as with tests that start several servers.
pub fn start(log: Log) {
    let level = match log.level {
        LogLevel::Error => LevelFilter::ERROR,
        LogLevel::Warn => LevelFilter::WARN,
        LogLevel::Info => LevelFilter::INFO,
        LogLevel::Debug => LevelFilter::DEBUG,
        LogLevel::Trace => LevelFilter::TRACE,
    };
    let writer = fmt::layer().with_writer(std::io::stderr).with_ansi(false);
    let started = match log.format {
        LogFormat::Text => registry().with(level).with(writer).try_init(),
        LogFormat::Json => {
            registry().with(level).with(writer.json().flatten_event(true)).try_init()
        }
    };
    // The only reason to fail is that logging has started already.
    drop(started);
}
