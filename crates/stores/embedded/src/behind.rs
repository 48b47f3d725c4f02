//! Making a thread less urgent than those that serve requests: for work that nobody waits for.

/// By how much it gives way, where the cores are busy.
#[cfg(target_os = "linux")]
const NICENESS: i32 = 10;
/// How much longer than asked for it may sleep, so that its rests are short.
#[cfg(target_os = "linux")]
const TIMER_SLACK_NS: u64 = 1_000;

/// Makes this thread, and no other, less urgent.
#[cfg(target_os = "linux")]
pub(crate) fn give_way() {
    // Whoever may not choose runs as before. It is not added to what the thread has that starts this one.
    let _ = rustix::process::setpriority_process(None, NICENESS);
    let _ = rustix::thread::set_current_timer_slack(std::num::NonZeroU64::new(TIMER_SLACK_NS));
}

/// Elsewhere it would be the whole process.
#[cfg(not(target_os = "linux"))]
pub(crate) fn give_way() {}
