//! Lowers the priority of a background thread below that of threads that serve requests.

/// The nice value of background threads.
#[cfg(target_os = "linux")]
const NICENESS: i32 = 10;
/// Timer slack: how much longer than requested the thread may sleep. Small, so that its pauses stay short.
#[cfg(target_os = "linux")]
const TIMER_SLACK_NS: u64 = 1_000;

/// Lowers the priority of this thread only.
#[cfg(target_os = "linux")]
pub(crate) fn give_way() {
    // Without permission the thread keeps its priority. The value is absolute, not relative to the parent thread.
    let _ = rustix::process::setpriority_process(None, NICENESS);
    let _ = rustix::thread::set_current_timer_slack(std::num::NonZeroU64::new(TIMER_SLACK_NS));
}

/// On other systems it would affect the whole process.
#[cfg(not(target_os = "linux"))]
pub(crate) fn give_way() {}
