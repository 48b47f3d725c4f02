//! Where PostgreSQL's programs are, and as whom they run.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::fs::{MetadataExt, chown};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Debian keeps the programs of each version in a folder of its own.
const DEBIAN: &str = "/usr/lib/postgresql";
/// The oldest version that the store takes.
const VERSION_LEAST: u32 = 15;

#[derive(Clone, Debug)]
pub(crate) struct Programs {
    folder: PathBuf,
    /// The user `postgres`, if we are root: the server refuses to run as root.
    user: Option<(u32, u32)>,
}

impl Programs {
    /// None if PostgreSQL is not installed.
    pub(crate) fn find() -> Option<Self> {
        let folder = newest_of_debian().or_else(in_path)?;
        let is_root = fs::metadata("/proc/self").is_ok_and(|it| it.uid() == 0);
        let user = if is_root { Some(postgres_user()?) } else { None };
        Some(Self { folder, user })
    }

    /// A command, without what our own environment says of other servers.
    pub(crate) fn command(&self, program: &str) -> Command {
        self.as_user(self.folder.join(program))
    }

    /// Any program, as the user that the server runs as.
    pub(crate) fn as_user(&self, program: impl AsRef<OsStr>) -> Command {
        let mut command = Command::new(program);
        for (name, _) in std::env::vars_os() {
            if name.as_encoded_bytes().starts_with(b"PG") {
                command.env_remove(name);
            }
        }
        command.env("LC_ALL", "C").current_dir("/");
        if let Some((user, group)) = self.user {
            command.uid(user).gid(group);
        }
        command
    }

    pub(crate) fn path(&self, program: &str) -> PathBuf {
        self.folder.join(program)
    }

    /// Gives a folder to the user that the server runs as.
    pub(crate) fn give(&self, folder: &Path) -> std::io::Result<()> {
        match self.user {
            Some((user, group)) => chown(folder, Some(user), Some(group)),
            None => Ok(()),
        }
    }
}

fn newest_of_debian() -> Option<PathBuf> {
    let versions = fs::read_dir(DEBIAN).ok()?.filter_map(|entry| {
        let path = entry.ok()?.path();
        let version: u32 = path.file_name()?.to_str()?.parse().ok()?;
        let folder = path.join("bin");
        (version >= VERSION_LEAST && folder.join("initdb").exists()).then_some((version, folder))
    });
    versions.max().map(|(_, folder)| folder)
}

fn in_path() -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path).find(|folder| folder.join("initdb").exists())
}

fn postgres_user() -> Option<(u32, u32)> {
    let id = |option: &str| {
        let output = Command::new("id").args([option, "postgres"]).output().ok()?;
        String::from_utf8(output.stdout).ok()?.trim().parse().ok()
    };
    Some((id("-u")?, id("-g")?))
}
