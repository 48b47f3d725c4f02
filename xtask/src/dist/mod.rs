//! `cargo xtask dist`: what people download. An archive and a Debian package, both made of the same files, with checksums.
//!
//! Both are reproducible: paths of the machine are mapped away, files are sorted, and all times are that of the commit.

mod trial;

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::arguments::Arguments;
use crate::process::{self, unusable};
use crate::workspace::{self, Workspace, cargo};
use crate::{Failure, Result, debian};

pub(crate) use trial::try_out;

/// Files of the repository that go into the archive, and where to.
const ARCHIVE_FILES: &[(&str, &str)] = &[
    ("README.md", "README.md"),
    ("CHANGELOG.md", "CHANGELOG.md"),
    ("LICENSE-MIT", "LICENSE-MIT"),
    ("LICENSE-APACHE", "LICENSE-APACHE"),
    ("packaging/lazuli.service", "systemd/lazuli.service"),
    ("packaging/lazuli.toml", "lazuli.toml"),
];

/// The same for the Debian package.
const PACKAGE_FILES: &[(&str, &str)] = &[
    ("CHANGELOG.md", "usr/share/doc/lazuli/CHANGELOG.md"),
    ("LICENSE-MIT", "usr/share/doc/lazuli/LICENSE-MIT"),
    ("LICENSE-APACHE", "usr/share/doc/lazuli/LICENSE-APACHE"),
    ("packaging/lazuli.service", "usr/lib/systemd/system/lazuli.service"),
    ("packaging/lazuli.toml", "etc/lazuli/lazuli.toml"),
];

/// A shell, where its completions are in the archive, and where Debian keeps them.
const COMPLETIONS: &[(&str, &str, &str)] = &[
    ("bash", "completions/lazuli.bash", "usr/share/bash-completion/completions/lazuli"),
    ("zsh", "completions/_lazuli", "usr/share/zsh/vendor-completions/_lazuli"),
    ("fish", "completions/lazuli.fish", "usr/share/fish/vendor_completions.d/lazuli.fish"),
];

/// What was made.
pub(crate) struct Made {
    pub(crate) archive: PathBuf,
    /// Made where Debian's tools are.
    pub(crate) package: Option<PathBuf>,
}

pub(crate) fn run(mut arguments: Arguments) -> Result {
    let only_try = arguments.flag("--try");
    arguments.finish()?;
    let workspace = Workspace::load()?;
    let release = Release::of_head()?;
    let program = release.build(&workspace)?;
    let made = release.pack(&program, &workspace.scratch.join("dist"))?;
    for path in [Some(&made.archive), made.package.as_ref()].into_iter().flatten() {
        println!("made {}", path.display());
    }
    if only_try { trial::of(&workspace, &made) } else { Ok(()) }
}

/// What the files are named after, and the time that they all carry.
pub(crate) struct Release {
    version: String,
    commit: String,
    /// Seconds since 1970 of the commit.
    time: String,
}

impl Release {
    pub(crate) fn of_head() -> Result<Self> {
        let git = |words: &[&str]| {
            let mut command = Command::new("git");
            output(command.args(words).current_dir(workspace::root()))
        };
        let dirty = !git(&["status", "--porcelain", "--untracked-files=no"])?.is_empty();
        let commit = git(&["rev-parse", "--short=12", "HEAD"])?;
        Ok(Self {
            version: env!("CARGO_PKG_VERSION").to_owned(),
            commit: if dirty { format!("{commit}-changed") } else { commit },
            time: git(&["log", "-1", "--format=%ct"])?,
        })
    }

    /// The program as people get it: optimized, stripped, and the same from every folder.
    fn build(&self, workspace: &Workspace) -> Result<PathBuf> {
        let home = std::env::var("CARGO_HOME")
            .or_else(|_| std::env::var("HOME").map(|home| format!("{home}/.cargo")));
        let root = workspace::root().display();
        let mut flags = format!("--remap-path-prefix={root}=/lazuli");
        if let Ok(home) = home {
            flags.push_str(&format!("\u{1f}--remap-path-prefix={home}=/cargo"));
        }
        let words = ["build", "--profile", "dist", "--locked", "--package", "lazuli"];
        let mut command = cargo();
        command.args(words).env("LAZULI_COMMIT", &self.commit);
        process::run(command.env("CARGO_ENCODED_RUSTFLAGS", flags))?;
        Ok(workspace.target().join("dist/lazuli"))
    }

    /// Makes both files, and one with their checksums, in a folder that is empty before.
    pub(crate) fn pack(&self, program: &Path, folder: &Path) -> Result<Made> {
        process::fresh_folder(folder)?;
        let stage = Stage::new(program, folder.join("stage"))?;
        let archive = self.archive(&stage, folder)?;
        let package = match debian::has("dpkg", "--version")? {
            true => Some(self.package(&stage, folder)?),
            false => None,
        };
        let made = [Some(&archive), package.as_ref()].into_iter().flatten();
        let names = made.map(|path| file_name(path));
        let sums = output(Command::new("sha256sum").args(names).current_dir(folder))?;
        write(&folder.join("SHA256SUMS"), &format!("{sums}\n"))?;
        std::fs::remove_dir_all(&stage.folder).map_err(|error| unusable(&stage.folder, &error))?;
        Ok(Made { archive, package })
    }

    fn archive(&self, stage: &Stage<'_>, folder: &Path) -> Result<PathBuf> {
        let machine = std::env::consts::ARCH;
        let name = format!("lazuli-{}-linux-{machine}", self.version);
        let root = stage.folder.join(&name);
        copy(stage.program, &root.join("bin/lazuli"), true)?;
        for (from, to) in ARCHIVE_FILES {
            copy(&workspace::root().join(from), &root.join(to), false)?;
        }
        for (shell, to, _) in COMPLETIONS {
            write(&root.join(to), &stage.completions(shell)?)?;
        }
        stage.man_pages(&root.join("man"))?;
        let archive = folder.join(format!("{name}.tar.gz"));
        // `gzip -n` leaves name and time out.
        let line = format!(
            "tar --sort=name --mtime=@{} --owner=0 --group=0 --numeric-owner --format=gnu -cf - '{name}' \
             | gzip -9n > '{}'",
            self.time,
            archive.display()
        );
        process::run(Command::new("sh").args(["-c", &line]).current_dir(&stage.folder))?;
        Ok(archive)
    }

    fn package(&self, stage: &Stage<'_>, folder: &Path) -> Result<PathBuf> {
        let machine = output(Command::new("dpkg").arg("--print-architecture"))?;
        let root = stage.folder.join("debian");
        copy(stage.program, &root.join("usr/bin/lazuli"), true)?;
        for (from, to) in PACKAGE_FILES {
            copy(&workspace::root().join(from), &root.join(to), false)?;
        }
        for (shell, _, to) in COMPLETIONS {
            write(&root.join(to), &stage.completions(shell)?)?;
        }
        let man = root.join("usr/share/man/man1");
        stage.man_pages(&man)?;
        process::run(Command::new("sh").args(["-c", "gzip -9n *.1"]).current_dir(&man))?;
        write(&root.join("DEBIAN/control"), &self.control(&machine))?;
        // A changed file of settings survives an upgrade.
        write(&root.join("DEBIAN/conffiles"), "/etc/lazuli/lazuli.toml\n")?;
        let package = folder.join(format!("lazuli_{}_{machine}.deb", self.version));
        let mut build = Command::new("dpkg-deb");
        build.args(["--root-owner-group", "-Zxz", "--build"]).arg(&root).arg(&package);
        process::run(build.env("SOURCE_DATE_EPOCH", &self.time))?;
        Ok(package)
    }

    fn control(&self, machine: &str) -> String {
        format!(
            "Package: lazuli\n\
             Version: {}\n\
             Architecture: {machine}\n\
             Maintainer: The Lazuli developers <lazuli@localhost>\n\
             Depends: libc6, libgcc-s1\n\
             Section: database\n\
             Priority: optional\n\
             Description: partition-first data platform in one binary\n \
             Speaks the protocols of Azure storage services and Cosmos DB on a store of its own\n \
             or on PostgreSQL servers. Every partition can be watched, split, merged and moved\n \
             while it is in use. Built from commit {}.\n",
            self.version, self.commit
        )
    }
}

/// Where the files are gathered before they are packed.
struct Stage<'p> {
    program: &'p Path,
    folder: PathBuf,
}

impl<'p> Stage<'p> {
    fn new(program: &'p Path, folder: PathBuf) -> Result<Self> {
        process::fresh_folder(&folder)?;
        Ok(Self { program, folder })
    }

    fn completions(&self, shell: &str) -> Result<String> {
        Ok(output(Command::new(self.program).args(["completions", shell]))? + "\n")
    }

    fn man_pages(&self, folder: &Path) -> Result {
        std::fs::create_dir_all(folder).map_err(|error| unusable(folder, &error))?;
        output(Command::new(self.program).arg("man").arg(folder)).map(drop)
    }
}

fn file_name(path: &Path) -> &OsStr {
    path.file_name().unwrap_or(path.as_os_str())
}

fn copy(from: &Path, to: &Path, is_program: bool) -> Result {
    parent(to)?;
    std::fs::copy(from, to).map_err(|error| unusable(from, &error))?;
    let mode = if is_program { "755" } else { "644" };
    process::run(Command::new("chmod").arg(mode).arg(to))
}

fn write(path: &Path, text: &str) -> Result {
    parent(path)?;
    std::fs::write(path, text).map_err(|error| unusable(path, &error))?;
    process::run(Command::new("chmod").arg("644").arg(path))
}

fn parent(path: &Path) -> Result {
    let folder = path.parent().unwrap_or(Path::new("."));
    std::fs::create_dir_all(folder).map_err(|error| unusable(folder, &error))
}

/// What a program prints, without the end of its last line. It must end well.
fn output(command: &mut Command) -> Result<String> {
    let line = process::describe(command);
    let output = command.output();
    let output =
        output.map_err(|error| Failure::failed(format!("{line} did not start: {error}")))?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr);
        return Err(Failure::failed(format!("{line}: {}\n{said}", output.status)));
    }
    Ok(String::from_utf8_lossy(&output.stdout).trim_end().to_owned())
}
