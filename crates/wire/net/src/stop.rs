//! How a process is told to stop: one [`Stopper`] says so once, and every [`Stop`] sees it, however late it looks.

use tokio::sync::watch;

pub struct Stopper(watch::Sender<bool>);

#[derive(Clone)]
pub struct Stop(watch::Receiver<bool>);

/// A pair that belongs together. Dropping the stopper also stops.
pub fn stopper() -> (Stopper, Stop) {
    let (sender, receiver) = watch::channel(false);
    (Stopper(sender), Stop(receiver))
}

impl Stopper {
    pub fn stop(&self) {
        self.0.send_replace(true);
    }
}

impl Stop {
    pub fn is_stopped(&self) -> bool {
        *self.0.borrow() || self.0.has_changed().is_err()
    }

    /// Waits for the stop.
    pub async fn stopped(&mut self) {
        // An error means that the stopper is gone, which is a stop too.
        let _ = self.0.wait_for(|stopped| *stopped).await;
    }
}
