//! The flags of settings, generated from the server's table of settings.

use std::collections::BTreeMap;
use std::path::PathBuf;

use clap::{Arg, ArgMatches, Args, Command, FromArgMatches, value_parser};
use lazuli_server::settings::{Sources, TABLE};

/// The settings given by flag, and the settings file if one is named.
#[derive(Clone, Debug, Default)]
pub(crate) struct SettingFlags {
    given: BTreeMap<&'static str, String>,
    file: Option<PathBuf>,
}

impl SettingFlags {
    /// Of all settings, the one that commands need to find a running server.
    pub(crate) fn of_data(data: Option<PathBuf>, file: Option<PathBuf>) -> Self {
        let data = data.map(|path| ("data", path.to_string_lossy().into_owned()));
        Self { given: data.into_iter().collect(), file }
    }

    /// These flags with this process' environment.
    pub(crate) fn sources(self) -> Sources {
        Sources::of_process(self.given, self.file)
    }
}

impl FromArgMatches for SettingFlags {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        let mut flags = Self::default();
        flags.update_from_arg_matches(matches)?;
        Ok(flags)
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        for row in TABLE.iter().filter(|row| !row.secret) {
            if let Some(text) = matches.get_one::<String>(row.name) {
                self.given.insert(row.name, text.clone());
            }
        }
        if let Some(file) = matches.get_one::<PathBuf>("config") {
            self.file = Some(file.clone());
        }
        Ok(())
    }
}

impl Args for SettingFlags {
    fn augment_args(command: Command) -> Command {
        let file = Arg::new("config")
            .long("config")
            .value_name("FILE")
            .value_parser(value_parser!(PathBuf))
            .help("The settings file [default: lazuli.toml if there is one]");
        TABLE.iter().filter(|row| !row.secret).fold(command.arg(file), |command, row| {
            let default = row.default.map(|text| format!(" [default: {text}]"));
            let help = format!("{}{}", row.help, default.unwrap_or_default());
            let arg = Arg::new(row.name).long(row.name).value_name(row.takes).help(help);
            // What is set for one front alone is explained once, in docs/settings.md.
            command.arg(arg.hide(row.is_override))
        })
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}
