//! The last day of every partition's figures, in bounded memory: size, reads, writes, throttled requests and latency, in
//! steps of ten seconds, a minute and ten minutes.
//!
//! [`History`] is plain data: samples in, series out, no clock of its own. [`Recorder`] takes the samples from an
//! engine; the server calls it every ten seconds, a test at any time.
//!
//! In a fleet the recorders of all nodes tell each other what they sampled, so that the history of each is that of all, and
//! what they know of hot keys.
//!
//! Memory: a step without requests is not stored, so an idle partition costs only its entry (below 400 bytes). A
//! step with requests takes 32 bytes; 324 of them are kept for a partition that is always in use. With the default of
//! 10,000 partitions that is 4 MB for idle ones, and at the very most 110 MB.

mod exchange;
mod heat;
mod history;
mod level;
mod packed;
mod point;
mod recorder;
mod step;
mod told;
mod watch;

pub use history::{History, PARTITIONS_MAX};
pub use point::{Latency, Point, Rates};
pub use recorder::Recorder;
pub use step::Step;
