//! `lazuli serve`: the server itself.

use lazuli_server::settings::Settings;

use crate::flags::SettingFlags;
use crate::told::Told;
use lazuli_console::Result;

pub(crate) fn run(flags: SettingFlags) -> Result<()> {
    let settings = flags.sources().texts().and_then(|texts| Settings::read(&texts)).told()?;
    lazuli_server::serve(settings).told()
}
