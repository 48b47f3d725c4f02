//! How far a command is: a bar that is redrawn on a terminal, a line now and then elsewhere. On standard error, so that
//! standard output stays what the command was asked for.

use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use crate::output::size;

const DRAWS_PER_SECOND: u8 = 5;
/// How often a line is printed where there is no terminal.
const LINE_EVERY: Duration = Duration::from_secs(5);

/// The progress of a transfer.
pub struct Meter {
    quiet: bool,
    bar: ProgressBar,
    began: Instant,
    printed: Instant,
    verb: &'static str,
    /// What is counted, such as `entities`.
    noun: &'static str,
    /// How far the work was when it began.
    first: Figures,
    /// Bytes of the whole, if they are known.
    total: Option<u64>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Figures {
    pub items: u64,
    pub bytes: u64,
}

impl Meter {
    pub fn new(
        verb: &'static str,
        noun: &'static str,
        quiet: bool,
        first: Figures,
        total: Option<u64>,
    ) -> Self {
        let total = total.filter(|total| *total > 0);
        let template = match total {
            Some(_) => {
                "[{bar:20}] {percent} % {binary_bytes} of {binary_total_bytes}, {eta} left, {wide_msg}"
            }
            None => "{binary_bytes}, {wide_msg}",
        };
        let bar = drawn(quiet, template).with_position(first.bytes);
        total.inspect(|total| bar.set_length(*total));
        bar.reset_eta();
        let (began, printed) = (Instant::now(), Instant::now());
        Self { quiet, bar, began, printed, verb, noun, first, total }
    }

    /// Takes the figures of now, and shows them if it is time to.
    pub fn show(&mut self, now: Figures) {
        if self.quiet {
            return;
        }
        let counted = counted(self.verb, self.noun, self.first, now, self.elapsed());
        if self.bar.is_hidden() && self.printed.elapsed() >= LINE_EVERY {
            self.printed = Instant::now();
            let of = self.total.map(|total| format!(" of {}", size(total))).unwrap_or_default();
            eprintln!("{counted}, {}{of}", size(now.bytes));
        }
        self.bar.set_message(counted);
        self.bar.set_position(now.bytes);
    }

    /// Takes the bar off the terminal, so that something else can be printed.
    pub fn clear(&self) {
        self.bar.suspend(|| {});
    }

    /// Takes the bar off the terminal for good.
    pub fn finish(&self) {
        self.bar.finish_and_clear();
    }

    pub fn elapsed(&self) -> Duration {
        self.began.elapsed()
    }
}

/// Lines on a terminal that replace each other. Nothing is shown where there is no terminal.
pub struct Screen(ProgressBar);

impl Screen {
    pub fn new(quiet: bool) -> Self {
        Self(drawn(quiet, "{msg}"))
    }

    pub fn show(&self, lines: &[String]) {
        self.0.set_message(lines.join("\n"));
    }

    pub fn finish(&self) {
        self.0.finish_and_clear();
    }
}

fn drawn(quiet: bool, template: &str) -> ProgressBar {
    let target = match quiet {
        true => ProgressDrawTarget::hidden(),
        // This one is hidden too where standard error is no terminal.
        false => ProgressDrawTarget::stderr_with_hz(DRAWS_PER_SECOND),
    };
    let style = ProgressStyle::with_template(template).expect("the templates here are valid");
    ProgressBar::with_draw_target(None, target).with_style(style.progress_chars("#--"))
}

/// What was done, and how many in a second. Work that was done before this run says nothing of its speed.
fn counted(verb: &str, noun: &str, first: Figures, now: Figures, elapsed: Duration) -> String {
    let rate = now.items.saturating_sub(first.items) as f64 / elapsed.as_secs_f64().max(0.001);
    // Few and large items have no speed that a whole number could show.
    let speed = if rate < 1.0 { String::new() } else { format!(", {rate:.0}/s") };
    format!("{verb} {} {noun}{speed}", now.items)
}

/// A bar of text for a part of a whole.
pub fn bar(part: u64, whole: u64, cells: usize) -> String {
    let filled = (part.min(whole) as u128 * cells as u128 / u128::from(whole.max(1))) as usize;
    format!("{}{}", "█".repeat(filled), "░".repeat(cells - filled))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_have_a_speed_where_it_shows() {
        let at = |items| Figures { items, bytes: 0 };
        let seconds = Duration::from_secs(10);
        let text = counted("exported", "entities", at(1000), at(1100), seconds);
        assert_eq!(text, "exported 1100 entities, 10/s");
        assert_eq!(counted("sent", "backups", at(0), at(2), seconds), "sent 2 backups");
    }

    #[test]
    fn bars_are_as_long_as_their_part() {
        assert_eq!(bar(1, 4, 4), "█░░░");
        assert_eq!(bar(9, 4, 4), "████");
        assert_eq!(bar(0, 0, 2), "░░");
    }

    #[test]
    fn every_template_is_valid() {
        for total in [None, Some(9)] {
            let mut meter = Meter::new("moved", "blobs", false, Figures::default(), total);
            meter.show(Figures { items: 1, bytes: 5 });
            meter.clear();
            meter.finish();
        }
        let screen = Screen::new(true);
        screen.show(&["a".to_owned()]);
        screen.finish();
    }
}
