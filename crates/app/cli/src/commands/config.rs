//! `lazuli config`: the settings in force and where each comes from.

use lazuli_server::settings::{self, Settings};

use crate::flags::SettingFlags;
use crate::told::Told;
use lazuli_console::Result;
use lazuli_console::output;

pub(crate) fn run(flags: SettingFlags, json: bool) -> Result<()> {
    let texts = flags.sources().texts().told()?;
    // What `serve` would refuse is refused here as well.
    Settings::read(&texts).told()?;
    if json {
        output::json(&settings::json(&texts));
    } else {
        let rows: Vec<Vec<String>> = settings::lines(&texts).into_iter().map(Vec::from).collect();
        output::table(&["setting", "value", "from"], &rows);
    }
    Ok(())
}
