//! `lazuli completions` and `lazuli man`: made from the definition of the command line.

use std::path::Path;

use clap::CommandFactory;
use clap_complete::Shell;
use lazuli_console::{Failure, Result, output};

use crate::args::Args;

pub(crate) fn completions(shell: Shell) {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut Args::command(), "lazuli", &mut script);
    output::line(String::from_utf8_lossy(&script).trim_end());
}

pub(crate) fn man(folder: &Path) -> Result<()> {
    let made = std::fs::create_dir_all(folder)
        .and_then(|()| clap_mangen::generate_to(Args::command(), folder));
    made.map_err(|error| Failure::failed(format!("{}: {error}", folder.display())))?;
    output::line(&format!("wrote the man pages of all commands into {}", folder.display()));
    Ok(())
}
