//! What there is to type: every command with its flags and help.

use clap::{Parser, Subcommand};

use crate::flags::SettingFlags;

/// Lazuli: a partition-first data platform in one binary.
#[derive(Debug, Parser)]
#[command(name = "lazuli", version, disable_help_subcommand = true)]
pub(crate) struct Args {
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Print the settings in force and where each comes from
    Config {
        #[command(flatten)]
        settings: SettingFlags,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Print the version
    Version,
}
