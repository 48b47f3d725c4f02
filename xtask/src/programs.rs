//! Programs as users have them, on a server of their own: what they do must work as it does on the original.

use std::path::Path;
use std::process::Command;

use crate::arguments::Arguments;
use crate::process::{self, unusable};
use crate::workspace::{Workspace, cargo, root};
use crate::{Failure, Result, azure_storage, bullmq, debian, python_programs, server};

/// A workspace of its own, so that what the program needs does not become what Lazuli needs.
const OBJECT_STORE: &str = "tests/programs/object-store";

/// The account that every server on loopback has.
const ACCOUNT: &str = "devstoreaccount1";

/// The tree that rclone carries: folders, and files in each.
const TREE_FOLDERS: usize = 50;
const TREE_FILES: usize = 100;

type Program = fn() -> Result;

/// The programs, by name.
const PROGRAMS: &[(&str, Program)] = &[
    ("object-store", object_store),
    ("rclone", rclone),
    ("azure-storage", azure_storage::run),
    ("bullmq", bullmq::run),
    ("adlfs", python_programs::adlfs),
    ("emulators", python_programs::emulators),
    ("az", python_programs::az),
    ("s3", python_programs::s3),
];

pub(crate) fn run(mut arguments: Arguments) -> Result {
    let name = arguments.word();
    arguments.finish()?;
    match PROGRAMS.iter().find(|(known, _)| Some(*known) == name.as_deref()) {
        Some((_, program)) => program(),
        None => {
            let names: Vec<&str> = PROGRAMS.iter().map(|(name, _)| *name).collect();
            Err(Failure::Usage(format!("the programs are: {}", names.join(", "))))
        }
    }
}

/// `tests/programs/object-store` to its end.
pub(crate) fn object_store() -> Result {
    let workspace = Workspace::load()?;
    let manifest = root().join(OBJECT_STORE).join("Cargo.toml");
    let (server, endpoints) = server::start(&workspace, &workspace.scratch.join("object-store"))?;
    let mut run = cargo();
    run.args(["run", "--quiet", "--locked", "--manifest-path"]).arg(manifest);
    run.arg("--target-dir").arg(workspace.scratch.join("object-store-target"));
    process::run(run.arg("--").arg(blobs(&endpoints)?))?;
    server.stop()
}

/// A tree of files up, checked, and down again with rclone.
pub(crate) fn rclone() -> Result {
    if !debian::has("rclone", "version")? {
        return Ok(());
    }
    let workspace = Workspace::load()?;
    let folder = workspace.scratch.join("rclone");
    let (server, endpoints) = server::start(&workspace, &folder.join("server"))?;
    let (tree, back) = (folder.join("tree"), folder.join("back"));
    grow(&tree)?;
    process::fresh_folder(&back)?;
    let rclone = Rclone::new(&workspace, blobs(&endpoints)?)?;
    rclone.run("mkdir", &["lazuli:tree"])?;
    rclone.run("sync", &[text(&tree)?, "lazuli:tree"])?;
    rclone.run("check", &[text(&tree)?, "lazuli:tree"])?;
    rclone.run("sync", &["lazuli:tree", text(&back)?])?;
    process::run(Command::new("diff").arg("-r").arg(&tree).arg(&back))?;
    // Nothing has changed, so nothing may be carried; then something has.
    std::fs::remove_dir_all(tree.join("folder-07")).map_err(|error| unusable(&tree, &error))?;
    let changed = tree.join("folder-08/file-0008.txt");
    std::fs::write(&changed, "changed").map_err(|error| unusable(&changed, &error))?;
    rclone.run("sync", &[text(&tree)?, "lazuli:tree"])?;
    rclone.run("check", &["--download", text(&tree)?, "lazuli:tree"])?;
    rclone.run("purge", &["lazuli:tree"])?;
    println!(
        "{} files went up, were checked, came down, and are the same",
        TREE_FOLDERS * TREE_FILES
    );
    server.stop()
}

fn blobs(endpoints: &crate::conformance::Endpoints) -> Result<&str> {
    let url = endpoints.get("blobs").map(String::as_str);
    url.ok_or_else(|| Failure::failed("the server serves no blobs"))
}

fn text(path: &Path) -> Result<&str> {
    path.to_str().ok_or_else(|| Failure::failed(format!("{} is not UTF-8", path.display())))
}

/// rclone knows the emulator at its usual port only; elsewhere it takes a signature.
struct Rclone {
    url: String,
}

impl Rclone {
    fn new(workspace: &Workspace, blobs: &str) -> Result<Self> {
        let signature = Command::new(workspace.program("trial")?).arg("sas").output();
        let signature = signature.map_err(|error| Failure::failed(format!("sas: {error}")))?;
        let signature = String::from_utf8_lossy(&signature.stdout);
        Ok(Self { url: format!("{blobs}/{ACCOUNT}?{}", signature.trim()) })
    }

    fn run(&self, what: &str, words: &[&str]) -> Result {
        let mut command = Command::new("rclone");
        command.arg(what).args(words).args(["--transfers", "16", "--checkers", "16"]);
        // A remote called `lazuli`, without a file of settings.
        command.args(["--config", "/dev/null"]).envs([
            ("RCLONE_CONFIG_LAZULI_TYPE", "azureblob"),
            ("RCLONE_CONFIG_LAZULI_SAS_URL", self.url.as_str()),
        ]);
        process::run(&mut command)
    }
}

/// A tree of small files, all different, some empty, some in deeper folders, two of them large.
fn grow(tree: &Path) -> Result {
    process::fresh_folder(tree)?;
    for folder in 0..TREE_FOLDERS {
        let mut path = tree.join(format!("folder-{folder:02}"));
        if folder % 10 == 9 {
            path.push("deeper/und tiefer");
        }
        std::fs::create_dir_all(&path).map_err(|error| unusable(&path, &error))?;
        for file in 0..TREE_FILES {
            let path = path.join(format!("file-{file:04}.txt"));
            let length = if (folder, file) < (1, 2) { 100_000 } else { (folder * 31 + file) % 400 };
            let content = format!("{folder}/{file};").repeat(length);
            std::fs::write(&path, content).map_err(|error| unusable(&path, &error))?;
        }
    }
    Ok(())
}
