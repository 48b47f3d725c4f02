//! Shows how far a transfer is: a line that changes on a terminal, a line now and then elsewhere.

use std::io::{IsTerminal, Write};
use std::time::{Duration, Instant};

const DRAW_EVERY: Duration = Duration::from_millis(200);
const SAY_EVERY: Duration = Duration::from_secs(5);
const BAR_CELLS: usize = 20;

pub(in crate::commands) struct Meter {
    quiet: bool,
    terminal: bool,
    began: Instant,
    shown: Instant,
    verb: &'static str,
    /// What is counted, such as `entities`.
    noun: &'static str,
    /// How far the work was when it began.
    first: Figures,
    now: Figures,
    /// Bytes of the whole, if they are known.
    total: Option<u64>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(in crate::commands) struct Figures {
    pub(in crate::commands) items: u64,
    pub(in crate::commands) bytes: u64,
}

impl Meter {
    pub(in crate::commands) fn new(
        verb: &'static str,
        noun: &'static str,
        quiet: bool,
        first: Figures,
        total: Option<u64>,
    ) -> Self {
        let terminal = std::io::stderr().is_terminal();
        let (began, shown) = (Instant::now(), Instant::now());
        Self { quiet, terminal, began, shown, verb, noun, first, now: first, total }
    }

    /// Takes the figures of now, and shows them if it is time to.
    pub(in crate::commands) fn show(&mut self, now: Figures) {
        self.now = now;
        let every = if self.terminal { DRAW_EVERY } else { SAY_EVERY };
        if self.quiet || self.shown.elapsed() < every {
            return;
        }
        self.shown = Instant::now();
        let (what, elapsed) = ((self.verb, self.noun), self.began.elapsed());
        let text = text(what, self.first, now, self.total, elapsed);
        let mut out = std::io::stderr();
        let _ = if self.terminal { write!(out, "\r{text}\x1b[K") } else { writeln!(out, "{text}") };
        let _ = out.flush();
    }

    /// Takes the line off the terminal, so that something else can be said there.
    pub(in crate::commands) fn clear(&self) {
        if self.terminal && !self.quiet {
            eprint!("\r\x1b[K");
        }
    }

    pub(in crate::commands) fn elapsed(&self) -> Duration {
        self.began.elapsed()
    }
}

fn text(
    (verb, noun): (&str, &str),
    first: Figures,
    now: Figures,
    total: Option<u64>,
    elapsed: Duration,
) -> String {
    let seconds = elapsed.as_secs_f64().max(0.001);
    let rate = now.items.saturating_sub(first.items) as f64 / seconds;
    // Few and large things have no speed that a whole number could tell.
    let speed = if rate < 1.0 { String::new() } else { format!(", {rate:.0}/s") };
    let figures = format!("{verb} {} {noun}{speed}, {}", now.items, size_text(now.bytes));
    let Some(total) = total.filter(|total| *total > 0) else { return figures };
    let part = (now.bytes as f64 / total as f64).min(1.0);
    let full = (part * BAR_CELLS as f64) as usize;
    let bar = format!("[{}{}]", "#".repeat(full), "-".repeat(BAR_CELLS - full));
    let bytes_rate = now.bytes.saturating_sub(first.bytes) as f64 / seconds;
    let left = match total.saturating_sub(now.bytes) as f64 / bytes_rate {
        left if left.is_finite() => {
            format!(" at {}/s, {} left", size_text(bytes_rate as u64), time_text(left as u64))
        }
        _ => String::new(),
    };
    format!("{bar} {:.0} % {figures} of {}{left}", part * 100.0, size_text(total))
}

pub(in crate::commands) fn size_text(bytes: u64) -> String {
    let mut size = bytes as f64;
    for unit in ["B", "KiB", "MiB"] {
        if size < 1024.0 {
            let digits = usize::from(unit != "B");
            return format!("{size:.digits$} {unit}");
        }
        size /= 1024.0;
    }
    format!("{size:.1} GiB")
}

fn time_text(seconds: u64) -> String {
    match seconds {
        0..60 => format!("{seconds} s"),
        60..3600 => format!("{} min {} s", seconds / 60, seconds % 60),
        _ => format!("{} h {} min", seconds / 3600, seconds / 60 % 60),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_line_says_how_far_and_how_long() {
        let at = |items, bytes| Figures { items, bytes };
        let seconds = Duration::from_secs(10);
        assert_eq!(
            text(("imported", "entities"), at(0, 0), at(1000, 5 << 20), Some(20 << 20), seconds),
            "[#####---------------] 25 % imported 1000 entities, 100/s, \
             5.0 MiB of 20.0 MiB at 512.0 KiB/s, 30 s left"
        );
        // What was done before this run says nothing of its speed.
        assert_eq!(
            text(("exported", "entities"), at(1000, 0), at(1100, 999), None, seconds),
            "exported 1100 entities, 10/s, 999 B"
        );
        assert!(text(("x", "y"), at(0, 0), at(0, 0), Some(9), seconds).ends_with("of 9 B"));
        assert_eq!(time_text(3725), "1 h 2 min");
        assert_eq!(size_text(3 << 30), "3.0 GiB");
    }
}
