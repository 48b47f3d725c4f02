//! What was measured, the bounds, and how both are shown.

use std::fmt;
use std::time::Duration;

use crate::figures::{milliseconds, verdict};

/// What the last items may cost, as a multiple of what the first cost.
const TIMES_MAX: f64 = 1.5;
/// The longest page of a list.
const LIST_PAGE_MAX: Duration = Duration::from_millis(1_000);
/// The longest answer to an operator.
const PAGE_MAX: Duration = Duration::from_millis(1_500);
/// The longest start.
const START_MAX: Duration = Duration::from_secs(10);
/// The most memory that an item may take while it is created.
const ITEM_BYTES_MAX: f64 = 4_096.0;
/// The most of one core that an idle server may use.
const IDLE_MAX: f64 = 0.05;

/// What it takes to create one item.
#[derive(Clone, Copy, Debug, Default)]
pub struct Creation {
    pub cpu_us: f64,
    pub wall_us: f64,
}

/// A list from its start to its end.
#[derive(Clone, Copy, Debug, Default)]
pub struct List {
    pub pages: usize,
    pub items: usize,
    pub first: Duration,
    pub last: Duration,
    pub all: Duration,
}

/// What one service takes.
#[derive(Clone, Copy, Debug)]
pub struct Figures {
    pub first: Creation,
    pub last: Creation,
    pub list: List,
    /// What the process grew by for each item.
    pub bytes: f64,
}

impl Figures {
    /// The processor time of one of the last items, as a multiple of that of one of the first.
    fn times(&self) -> f64 {
        self.last.cpu_us / self.first.cpu_us.max(f64::MIN_POSITIVE)
    }

    fn is_met(&self) -> bool {
        self.times() <= TIMES_MAX
            && self.list.first.max(self.list.last) <= LIST_PAGE_MAX
            && self.bytes <= ITEM_BYTES_MAX
    }
}

/// A page for operators: what it takes right after the start, and once more.
#[derive(Clone, Copy, Debug)]
pub struct Page {
    pub name: &'static str,
    pub first: Duration,
    pub again: Duration,
}

#[derive(Clone, Debug, Default)]
pub struct Report {
    pub services: Vec<(&'static str, Figures)>,
    pub start: Duration,
    pub pages: Vec<Page>,
    /// What an idle server uses, as a part of one core.
    pub idle: f64,
}

impl Report {
    pub fn is_met(&self) -> bool {
        self.services.iter().all(|(_, figures)| figures.is_met())
            && self.start <= START_MAX
            && self.pages.iter().all(|page| page.first.max(page.again) <= PAGE_MAX)
            && self.idle <= IDLE_MAX
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (name, figures) in &self.services {
            let Figures { first, last, list, bytes } = figures;
            let (times, met) = (figures.times(), verdict(figures.times() <= TIMES_MAX));
            writeln!(
                f,
                "{name}: create, CPU us {:.0} first, {:.0} last, {times:.2} times, \
                 {TIMES_MAX} at most {met}; wall us {:.0} and {:.0}",
                first.cpu_us, last.cpu_us, first.wall_us, last.wall_us
            )?;
            let met = verdict(list.first.max(list.last) <= LIST_PAGE_MAX);
            writeln!(
                f,
                "{name}: list, first page {:.1} ms, last page {:.1} ms, {:.0} at most {met}; \
                 {} items on {} pages in {:.0} ms",
                milliseconds(list.first),
                milliseconds(list.last),
                milliseconds(LIST_PAGE_MAX),
                list.items,
                list.pages,
                milliseconds(list.all)
            )?;
            let met = verdict(*bytes <= ITEM_BYTES_MAX);
            writeln!(f, "{name}: {bytes:.0} bytes each, {ITEM_BYTES_MAX} at most {met}")?;
        }
        let met = verdict(self.start <= START_MAX);
        writeln!(
            f,
            "start: {:.0} ms, {:.0} at most {met}",
            milliseconds(self.start),
            milliseconds(START_MAX)
        )?;
        for Page { name, first, again } in &self.pages {
            let met = verdict(*first.max(again) <= PAGE_MAX);
            let (first, again, most) =
                (milliseconds(*first), milliseconds(*again), milliseconds(PAGE_MAX));
            writeln!(f, "{name}: {first:.1} ms, again {again:.1} ms, {most:.0} at most {met}")?;
        }
        let (idle, met) = (self.idle * 100.0, verdict(self.idle <= IDLE_MAX));
        write!(f, "idle: {idle:.2} % of a core, {:.0} at most {met}", IDLE_MAX * 100.0)
    }
}
