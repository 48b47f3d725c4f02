//! The failures of the server's own functions as failures of a command.

use lazuli_console::{Failure, Result};
use lazuli_server::settings::Wrong;

pub(crate) trait Told<T> {
    fn told(self) -> Result<T>;
}

impl<T> Told<T> for std::result::Result<T, Wrong> {
    fn told(self) -> Result<T> {
        self.map_err(|wrong| Failure::usage(wrong.to_string()))
    }
}

impl<T> Told<T> for lazuli_server::failure::Result<T> {
    fn told(self) -> Result<T> {
        self.map_err(|failure| Failure::failed(failure.message()).maybe_hint(failure.what_to_do()))
    }
}
