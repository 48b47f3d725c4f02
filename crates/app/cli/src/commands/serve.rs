//! `lazuli serve`: the server itself.

use lazuli_server::settings::Settings;

use crate::failure::Result;
use crate::flags::SettingFlags;

pub(crate) fn run(flags: SettingFlags) -> Result<()> {
    let settings = Settings::read(&flags.sources().texts()?)?;
    Ok(lazuli_server::serve(settings)?)
}
