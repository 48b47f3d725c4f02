//! Local folders: their files, and the path in them where a blob may be written.
//!
//! Names of blobs are not trusted. None of them leads out of the folder that is written into: neither by its parts nor over
//! a symbolic link in that folder.

use std::fs::{self, Metadata};
use std::io;
use std::path::{Path, PathBuf};
use std::time::UNIX_EPOCH;

use lazuli_console::{Failure, Result};

use super::address::{shown, text_of};
use super::listing::check_count;

/// The deepest folder that is looked into.
const DEPTH_MAX: usize = 256;
/// The names of files that are being written, in the folder where they will be.
pub(super) const PART_PREFIX: &str = ".lazuli-";
pub const PART_SUFFIX: &str = ".part";

/// A file below a folder.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Found {
    /// Relative to the folder, with slashes.
    pub(super) name: String,
    pub(super) path: PathBuf,
    pub(super) size: u64,
    /// Seconds since the Unix epoch.
    pub(super) modified: i64,
}

impl Found {
    pub(super) fn new(name: String, path: PathBuf, meta: &Metadata) -> Self {
        let since = meta.modified().ok().and_then(|time| time.duration_since(UNIX_EPOCH).ok());
        let modified = since.map_or(0, |since| since.as_secs() as i64);
        Self { name, path, size: meta.len(), modified }
    }
}

/// The files of a folder.
#[derive(Debug, Default)]
pub(super) struct Tree {
    pub(super) files: Vec<Found>,
    /// Names that cannot be those of blobs, and why.
    pub(super) refused: Vec<String>,
}

/// All files below a folder. Symbolic links are skipped unless they are to be followed; other kinds of entries always are.
pub(super) fn walk(root: &Path, follow_links: bool) -> Result<Tree> {
    let mut tree = Tree::default();
    // Each folder with the real paths of those above it, so that links cannot form a loop.
    let mut open = vec![(root.to_owned(), String::new(), Vec::<PathBuf>::new())];
    while let Some((folder, prefix, mut above)) = open.pop() {
        above.push(fs::canonicalize(&folder).map_err(|error| cannot(&folder, &error))?);
        if above.len() > DEPTH_MAX {
            let message = format!("{} is more than {DEPTH_MAX} folders deep", folder.display());
            return Err(Failure::failed(message));
        }
        for entry in fs::read_dir(&folder).map_err(|error| cannot(&folder, &error))? {
            let entry = entry.map_err(|error| cannot(&folder, &error))?;
            let path = entry.path();
            let own = entry.file_name();
            let name = match text_of(Path::new(&own)) {
                Ok(name) => format!("{prefix}{name}"),
                Err(reason) => {
                    tree.refused.push(format!("{}: {reason}", folder.display()));
                    continue;
                }
            };
            if is_part(super::address::last(&name)) {
                continue;
            }
            let Some(meta) = look(&path, follow_links)? else { continue };
            if meta.is_dir() {
                let real = fs::canonicalize(&path).map_err(|error| cannot(&path, &error))?;
                if !above.contains(&real) {
                    open.push((path, format!("{name}/"), above.clone()));
                }
            } else if meta.is_file() {
                tree.files.push(Found::new(name, path, &meta));
                check_count(tree.files.len())?;
            }
        }
    }
    Ok(tree)
}

/// The metadata of a path; none for what is left out.
fn look(path: &Path, follow_links: bool) -> Result<Option<Metadata>> {
    let own = fs::symlink_metadata(path);
    let meta = match own {
        Ok(meta) if meta.is_symlink() && !follow_links => return Ok(None),
        Ok(meta) if meta.is_symlink() => fs::metadata(path),
        other => other,
    };
    match meta {
        Ok(meta) => Ok(Some(meta)),
        // It was removed a moment ago, or the link leads nowhere.
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(cannot(path, &error)),
    }
}

fn is_part(name: &str) -> bool {
    name.starts_with(PART_PREFIX) && name.ends_with(PART_SUFFIX)
}

/// The path below a folder where a blob of this name is written. The error is a sentence.
pub(super) fn inside(root: &Path, name: &str) -> std::result::Result<PathBuf, String> {
    let refuse = |why: &str| Err(format!("the name `{}` {why}", shown(name)));
    let mut path = root.to_owned();
    for part in name.split('/') {
        match part {
            "." | ".." => return refuse("could lead out of the folder"),
            "" => return refuse("has an empty part, which no file can have"),
            _ if part.contains('\\') => {
                return refuse("has a backslash, which is no part of a name");
            }
            _ if part.contains('\0') => return refuse("has a zero byte, which no file can have"),
            _ if is_part(part) => return refuse("is one of files that are being written"),
            _ => path.push(part),
        }
    }
    Ok(path)
}

/// Creates the folders between the root and a file in it. The root itself may be a symbolic link to a folder.
pub(super) fn prepare(root: &Path, file: &Path, follow_links: bool) -> Result<()> {
    fs::create_dir_all(root).map_err(|error| cannot(root, &error))?;
    let between = file.strip_prefix(root).ok().and_then(Path::parent).unwrap_or(Path::new(""));
    let mut folder = root.to_owned();
    for part in between.components() {
        folder.push(part);
        match fs::create_dir(&folder) {
            Ok(()) => continue,
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            Err(error) => return Err(cannot(&folder, &error)),
        }
        let meta = fs::symlink_metadata(&folder).map_err(|error| cannot(&folder, &error))?;
        if meta.is_symlink() && !follow_links {
            let what = "is a symbolic link, which only --follow-links writes through";
            return Err(Failure::failed(format!("{} {what}", folder.display())));
        }
    }
    Ok(())
}

pub fn cannot(path: &Path, error: &io::Error) -> Failure {
    Failure::failed(format!("{}: {error}", shown(&path.to_string_lossy())))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    fn names(root: &Path, follow_links: bool) -> Vec<String> {
        let tree = walk(root, follow_links).unwrap();
        let mut names: Vec<_> = tree.files.into_iter().map(|file| file.name).collect();
        names.sort();
        names
    }

    #[test]
    fn links_are_left_out_or_followed_but_never_in_a_circle() {
        let folder = tempfile::tempdir().unwrap();
        let elsewhere = tempfile::tempdir().unwrap();
        let root = folder.path();
        fs::create_dir_all(root.join("a/b")).unwrap();
        fs::write(root.join("a/b/c d"), "x").unwrap();
        fs::write(root.join(".lazuli-1-2.part"), "x").unwrap();
        fs::write(elsewhere.path().join("e"), "x").unwrap();
        symlink(root, root.join("a/circle")).unwrap();
        symlink(elsewhere.path(), root.join("linked")).unwrap();
        symlink(root.join("nowhere"), root.join("broken")).unwrap();
        assert_eq!(names(root, false), ["a/b/c d"]);
        assert_eq!(names(root, true), ["a/b/c d", "linked/e"]);
    }

    #[test]
    fn no_name_leads_out_of_the_folder() {
        let root = Path::new("/r");
        assert_eq!(inside(root, "a/b c/…").unwrap(), Path::new("/r/a/b c/…"));
        for bad in
            ["..", "a/../b", "../x", "/etc/passwd", "a//b", "a/", "", ".", "a\\..\\b", "a\0b"]
        {
            assert!(inside(root, bad).is_err(), "{bad:?}");
        }
    }

    #[test]
    fn no_folder_is_made_beyond_a_link() {
        let folder = tempfile::tempdir().unwrap();
        let elsewhere = tempfile::tempdir().unwrap();
        let root = folder.path().join("new");
        prepare(&root, &root.join("a/b/c"), false).unwrap();
        assert!(root.join("a/b").is_dir() && !root.join("a/b/c").exists());
        symlink(elsewhere.path(), root.join("link")).unwrap();
        assert!(prepare(&root, &root.join("link/x/y"), false).is_err());
        assert!(!elsewhere.path().join("x").exists());
        prepare(&root, &root.join("link/x/y"), true).unwrap();
        assert!(elsewhere.path().join("x").is_dir());
        fs::write(root.join("file"), "x").unwrap();
        assert!(prepare(&root, &root.join("file/x/y"), false).is_err());
    }
}
