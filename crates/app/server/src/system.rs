//! What the server asks of the operating system for itself: files that only their owner may read, and room for connections.

use std::fs::{self, Permissions};
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use rustix::fs::Mode;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit, umask};

/// The permissions that new files do not have: all of those for others than the owner.
const OTHERS: u32 = 0o077;
/// Folders of the data folder that hold keys, tokens or what users stored.
const PRIVATE_FOLDERS: [&str; 6] = ["catalog", "shards", "blocks", "audit", "tls", "restoring"];
/// Those of them whose files are looked at one by one. The files of blocks can be millions, and their folder is closed.
const WALKED_FOLDERS: [&str; 4] = ["catalog", "shards", "audit", "tls"];
/// How deep folders lie in each other there.
const DEPTH_MAX: usize = 8;

/// Sets the umask so that only the owner can read files that this process creates, in any folder: the stores' files hold
/// the keys of accounts and the data of users. Files for other users get their mode explicitly.
pub(crate) fn make_files_private() {
    umask(Mode::from_raw_mode(OTHERS));
}

/// Makes private what an older version, or a copy, has left open to others.
pub(crate) fn close_to_others(data: &Path) -> io::Result<()> {
    for name in PRIVATE_FOLDERS {
        let path = data.join(name);
        match fs::symlink_metadata(&path) {
            Ok(found) if found.is_dir() => close(&path, found.permissions().mode())?,
            _ => continue,
        }
        if WALKED_FOLDERS.contains(&name) {
            close_below(&path, DEPTH_MAX)?;
        }
    }
    let token = data.join("admin-token");
    match fs::symlink_metadata(&token) {
        Ok(found) if found.is_file() => close(&token, found.permissions().mode()),
        _ => Ok(()),
    }
}

fn close_below(folder: &Path, depth: usize) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let (path, found) = entry.and_then(|entry| Ok((entry.path(), entry.metadata()?)))?;
        if found.is_file() || found.is_dir() {
            close(&path, found.permissions().mode())?;
        }
        if found.is_dir() && depth > 0 {
            close_below(&path, depth - 1)?;
        }
    }
    Ok(())
}

fn close(path: &Path, mode: u32) -> io::Result<()> {
    if mode & OTHERS == 0 {
        return Ok(());
    }
    fs::set_permissions(path, Permissions::from_mode(mode & !OTHERS & 0o7777))
}

/// Lets the process have as many files and connections open as the system allows it at most.
pub(crate) fn raise_descriptors() {
    let limit = getrlimit(Resource::Nofile);
    if limit.current != limit.maximum {
        // Where it is refused the limit that there is holds.
        let _ = setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, ..limit });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_open_to_others_is_closed() {
        let folder = tempfile::tempdir().unwrap();
        let data = folder.path();
        fs::create_dir_all(data.join("catalog/tables")).unwrap();
        fs::create_dir_all(data.join("blocks")).unwrap();
        for file in ["catalog/one", "catalog/tables/two", "admin-token", "format"] {
            fs::write(data.join(file), "x").unwrap();
            fs::set_permissions(data.join(file), Permissions::from_mode(0o644)).unwrap();
        }
        std::os::unix::fs::symlink(data.join("format"), data.join("catalog/link")).unwrap();
        close_to_others(data).unwrap();
        let mode = |name: &str| fs::metadata(data.join(name)).unwrap().permissions().mode() & 0o777;
        for file in ["catalog/one", "catalog/tables/two", "admin-token"] {
            assert_eq!(mode(file), 0o600, "{file}");
        }
        for folder in ["catalog", "catalog/tables", "blocks"] {
            assert_eq!(mode(folder), 0o700, "{folder}");
        }
        assert_eq!(mode("format"), 0o644, "there is nothing secret in it");
    }
}
