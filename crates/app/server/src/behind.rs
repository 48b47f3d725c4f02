//! The runtime for background work, such as moving a partition. It has half as many threads as there are cores,
//! and a lower priority than those that answer requests.

use std::io;
#[cfg(target_os = "linux")]
use std::num::NonZeroU64;

use lazuli_env::{Env, real};
use tokio::runtime::{Builder, Runtime};

/// How much its threads give way: among busy ones each gets about a tenth of what one of the others gets.
#[cfg(target_os = "linux")]
const NICENESS: i32 = 10;
/// How much longer than asked for they may sleep, so that their rests are short.
#[cfg(target_os = "linux")]
const TIMER_SLACK_NS: u64 = 1_000;
const THREADS_MAX: usize = 8;

/// Keeps the runtime until it is dropped. Whatever still runs then is cut off, as by a crash.
pub struct Behind(Option<Runtime>);

impl Behind {
    pub fn start() -> io::Result<Self> {
        let mut builder = Builder::new_multi_thread();
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        let threads = (cores / 2).clamp(1, THREADS_MAX);
        builder.worker_threads(threads).thread_name("lazuli:behind").on_thread_start(give_way);
        Ok(Self(Some(builder.enable_time().build()?)))
    }

    /// Surroundings that use it, beside the runtime in which this is called.
    pub fn env(&self) -> Env {
        let runtime = self.0.as_ref().expect("there is a runtime until this is dropped");
        real::env_with_two(runtime.handle().clone())
    }
}

impl Drop for Behind {
    fn drop(&mut self) {
        if let Some(runtime) = self.0.take() {
            runtime.shutdown_background();
        }
    }
}

/// On other systems niceness is the process's, not the thread's.
#[cfg(target_os = "linux")]
fn give_way() {
    // Without it the thread is as urgent as others, which is no reason to stop.
    let _ = rustix::process::nice(NICENESS);
    let _ = rustix::thread::set_current_timer_slack(NonZeroU64::new(TIMER_SLACK_NS));
}

#[cfg(not(target_os = "linux"))]
fn give_way() {}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[tokio::test]
    async fn what_is_behind_runs_on_a_thread_of_its_own_and_what_it_starts_does_not() {
        let behind = Behind::start().unwrap();
        let env = behind.env();
        let (tell, mut told) = tokio::sync::mpsc::unbounded_channel();
        let name = || std::thread::current().name().map(str::to_owned);
        let (inner, spawn) = (tell.clone(), env.spawn.clone());
        let task = async move {
            inner.send(("behind", name())).unwrap();
            let front = async move { inner.send(("front", name())).unwrap() };
            spawn.spawn("front", Box::pin(front));
        };
        env.spawn.spawn_behind("behind", Box::pin(task));
        let mut seen = [told.recv().await.unwrap(), told.recv().await.unwrap()];
        seen.sort();
        assert_eq!(seen[0], ("behind", Some("lazuli:behind".to_owned())));
        assert_ne!(seen[1].1, seen[0].1);
    }

    #[tokio::test]
    async fn what_runs_behind_is_cut_off_at_the_end() {
        let behind = Behind::start().unwrap();
        let (held, mut dropped) = tokio::sync::mpsc::channel::<()>(1);
        let task = async move {
            let _held = held;
            tokio::time::sleep(Duration::from_secs(3600)).await;
        };
        behind.env().spawn.spawn_behind("for ever", Box::pin(task));
        drop(behind);
        assert_eq!(dropped.recv().await, None);
    }
}
