//! `lazuli config`: the settings in force and where each comes from.

use lazuli_server::settings::{self, Settings};

use crate::failure::Result;
use crate::flags::SettingFlags;
use crate::output;

pub(crate) fn run(flags: SettingFlags, json: bool) -> Result<()> {
    let texts = flags.sources().texts()?;
    // What `serve` would refuse is refused here as well.
    Settings::read(&texts)?;
    if json {
        output::json(&settings::json(&texts));
    } else {
        let rows: Vec<Vec<String>> = settings::lines(&texts).into_iter().map(Vec::from).collect();
        output::table(&["setting", "value", "from"], &rows);
    }
    Ok(())
}
