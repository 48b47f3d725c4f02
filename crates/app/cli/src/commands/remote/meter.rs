//! Shows how far a transfer is: a line that changes on a terminal, a line now and then elsewhere.

use std::io::{IsTerminal, Write};
use std::time::{Duration, Instant};

use crate::output;

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
        let width = if self.terminal { output::terminal_width() } else { usize::MAX };
        let text = text(what, self.first, now, self.total, elapsed, width);
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

/// How far it is, in one line that is narrower than `width`: what says least is left out first.
fn text(
    (verb, noun): (&str, &str),
    first: Figures,
    now: Figures,
    total: Option<u64>,
    elapsed: Duration,
    width: usize,
) -> String {
    let seconds = elapsed.as_secs_f64().max(0.001);
    let rate = now.items.saturating_sub(first.items) as f64 / seconds;
    // Few and large things have no speed that a whole number could tell.
    let speed = if rate < 1.0 { String::new() } else { format!(", {rate:.0}/s") };
    let count = format!("{verb} {} {noun}", now.items);
    let Some(total) = total.filter(|total| *total > 0) else {
        return output::fit(&format!("{count}{speed}, {}", size_text(now.bytes)), width);
    };
    let part = (now.bytes as f64 / total as f64).min(1.0);
    let bar = |cells: usize| {
        let full = (part * cells as f64) as usize;
        format!("[{}{}] {:.0} %", "#".repeat(full), "-".repeat(cells - full), part * 100.0)
    };
    let bytes_rate = now.bytes.saturating_sub(first.bytes) as f64 / seconds;
    let left = total.saturating_sub(now.bytes) as f64 / bytes_rate;
    let (bytes_speed, left) = match left.is_finite() {
        true => {
            let speed = format!(" at {}/s", size_text(bytes_rate as u64));
            (speed, format!(", {} left", time_text(left as u64)))
        }
        false => (String::new(), String::new()),
    };
    let bytes = format!("{} of {}", size_text(now.bytes), size_text(total));
    let (wide, small) = (bar(BAR_CELLS), bar(BAR_CELLS / 2));
    let lines = [
        format!("{wide} {count}{speed}, {bytes}{bytes_speed}{left}"),
        format!("{wide} {count}, {bytes}{bytes_speed}{left}"),
        format!("{small} {count}, {bytes}{bytes_speed}{left}"),
        format!("{small} {count}, {bytes}{left}"),
        format!("{small} {} {noun}{left}", now.items),
    ];
    let [.., shortest] = &lines;
    let fitting = lines.iter().find(|line| line.chars().count() < width);
    output::fit(fitting.unwrap_or(shortest), width)
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
            text(
                ("imported", "entities"),
                at(0, 0),
                at(1000, 5 << 20),
                Some(20 << 20),
                seconds,
                usize::MAX
            ),
            "[#####---------------] 25 % imported 1000 entities, 100/s, \
             5.0 MiB of 20.0 MiB at 512.0 KiB/s, 30 s left"
        );
        // What was done before this run says nothing of its speed.
        assert_eq!(
            text(("exported", "entities"), at(1000, 0), at(1100, 999), None, seconds, 80),
            "exported 1100 entities, 10/s, 999 B"
        );
        assert!(text(("x", "y"), at(0, 0), at(0, 0), Some(9), seconds, 80).ends_with("of 9 B"));
        // On a terminal a line that is as wide as the terminal wraps, and then stays.
        let large = at(123_456_789, 700 << 30);
        for width in [80, 60, 40, 10] {
            let line =
                text(("transferred", "blobs"), at(0, 0), large, Some(900 << 30), seconds, width);
            assert!(line.chars().count() < width, "{width}: {line}");
        }
        assert_eq!(
            text(
                ("imported", "entities"),
                at(0, 0),
                at(1000, 5 << 20),
                Some(20 << 20),
                seconds,
                80
            ),
            "[##--------] 25 % imported 1000 entities, 5.0 MiB of 20.0 MiB, 30 s left"
        );
        assert_eq!(time_text(3725), "1 h 2 min");
        assert_eq!(size_text(3 << 30), "3.0 GiB");
    }
}
