//! Steps that mostly wait for timers of the services they judge: a few of them run at the same time, each in a process of its
//! own, so that two cores have something to do.

use std::collections::VecDeque;
use std::fs::File;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use crate::process::unusable;
use crate::workspace::Workspace;
use crate::{Failure, Result, conformance};

/// How many run at once. With more, clients and servers would wait for each other instead of for timers.
pub(crate) const AT_ONCE: usize = 3;

/// How often the ends of steps are looked for.
const POLL_INTERVAL: Duration = Duration::from_millis(100);

/// How a step ended, and after how many seconds.
pub(crate) struct Ended {
    pub(crate) name: &'static str,
    pub(crate) seconds: f64,
    pub(crate) result: Result,
}

struct Running {
    name: &'static str,
    began: Instant,
    child: Child,
}

/// Runs the steps of these names. All of them run to their end, also if one fails. The output of each is printed when it has
/// ended, so that none is torn.
pub(crate) fn run(names: &[&'static str]) -> Result<Vec<Ended>> {
    let workspace = Workspace::load()?;
    // What all share is made before, by one.
    conformance::prepare(&workspace)?;
    let folder = workspace.scratch.join("beside");
    crate::process::fresh_folder(&folder)?;
    let mut waiting: VecDeque<&'static str> = names.iter().copied().collect();
    let (mut running, mut ended): (Vec<Running>, Vec<Ended>) = (Vec::new(), Vec::new());
    loop {
        while running.len() < AT_ONCE
            && let Some(name) = waiting.pop_front()
        {
            running.push(start(name, &folder)?);
        }
        if running.is_empty() {
            return Ok(ended);
        }
        let mut left = Vec::new();
        for mut step in running {
            match step.child.try_wait() {
                Ok(None) => left.push(step),
                Ok(Some(status)) => {
                    let log = folder.join(step.name);
                    print!("{}", std::fs::read_to_string(&log).unwrap_or_default());
                    let failed = || Failure::failed(format!("step {}: {status}", step.name));
                    let result = if status.success() { Ok(()) } else { Err(failed()) };
                    let seconds = step.began.elapsed().as_secs_f64();
                    ended.push(Ended { name: step.name, seconds, result });
                }
                Err(error) => return Err(Failure::failed(error.to_string())),
            }
        }
        running = left;
        std::thread::sleep(POLL_INTERVAL);
    }
}

fn start(name: &'static str, folder: &Path) -> Result<Running> {
    let log = folder.join(name);
    let file = File::create(&log).map_err(|error| unusable(&log, &error))?;
    let copy = file.try_clone().map_err(|error| unusable(&log, &error))?;
    let program = std::env::current_exe().map_err(|error| Failure::failed(error.to_string()))?;
    let child = Command::new(program)
        .args(["test", "--only", name])
        .stdin(Stdio::null())
        .stdout(file)
        .stderr(copy)
        .spawn()
        .map_err(|error| Failure::failed(format!("step {name} did not start: {error}")))?;
    Ok(Running { name, began: Instant::now(), child })
}

impl Drop for Running {
    fn drop(&mut self) {
        // Fails only if it has ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
