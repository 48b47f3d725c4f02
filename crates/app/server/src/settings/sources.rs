//! Where the text of each setting comes from: flag, environment, file, default, in this order of precedence.

use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};

use super::nearest::nearest;
use super::table::{OTHER_VARIABLES, Row, TABLE, VARIABLE_PREFIX, find, variable};
use super::{Result, Wrong};

/// The settings file that is read without being named, if it exists.
pub const FILE_DEFAULT: &str = "lazuli.toml";

/// The largest settings file.
const FILE_BYTES_MAX: u64 = 1024 * 1024;

/// What a process was started with. The environment is passed in, so that tests need not change their own.
#[derive(Debug, Default)]
pub struct Sources {
    /// Flags given, by name of the setting.
    pub flags: BTreeMap<&'static str, String>,
    pub variables: BTreeMap<String, String>,
    /// The file named by `--config`.
    pub file: Option<PathBuf>,
    /// Where `lazuli.toml` is looked for.
    pub folder: PathBuf,
}

/// Where a value comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Origin {
    Flag,
    Variable,
    File(PathBuf),
    Default,
}

/// The text of every setting that has one, and where it comes from.
#[derive(Debug)]
pub struct Texts {
    texts: BTreeMap<&'static str, (String, Origin)>,
    pub file: Option<PathBuf>,
}

impl Sources {
    /// The flags and this process' environment and folder. Variables that are not text are left to be found unknown.
    pub fn of_process(flags: BTreeMap<&'static str, String>, file: Option<PathBuf>) -> Self {
        let variables = std::env::vars_os()
            .filter_map(|(name, value)| {
                let name = name.into_string().ok()?;
                let ours = name.starts_with(VARIABLE_PREFIX);
                ours.then(|| (name, value.to_string_lossy().into_owned()))
            })
            .collect();
        Self { flags, variables, file, folder: PathBuf::new() }
    }

    /// Gathers all texts. Fails on an unknown name, wherever it stands.
    pub fn texts(&self) -> Result<Texts> {
        let mut texts = BTreeMap::new();
        for row in TABLE.iter() {
            if let Some(default) = row.default {
                texts.insert(row.name, (default.to_owned(), Origin::Default));
            }
        }
        let file = self.file();
        if let Some(file) = &file {
            for (row, text) in read_file(file)? {
                texts.insert(row.name, (text, Origin::File(file.clone())));
            }
        }
        for (row, text) in self.known_variables()? {
            texts.insert(row.name, (text, Origin::Variable));
        }
        for (name, text) in &self.flags {
            texts.insert(name, (text.clone(), Origin::Flag));
        }
        Ok(Texts { texts, file })
    }

    /// The settings file: the one named by flag or variable, else the one that lies in the folder.
    fn file(&self) -> Option<PathBuf> {
        let named = || self.variables.get("LAZULI_CONFIG").map(PathBuf::from);
        self.file.clone().or_else(named).or_else(|| {
            let lying = self.folder.join(FILE_DEFAULT);
            lying.is_file().then_some(lying)
        })
    }

    fn known_variables(&self) -> Result<Vec<(&'static Row, String)>> {
        let names: Vec<String> = TABLE.iter().map(Row::variable).collect();
        let mut known = Vec::new();
        for (name, text) in &self.variables {
            if let Some(at) = names.iter().position(|known| known == name) {
                known.push((&TABLE[at], text.clone()));
            } else if !OTHER_VARIABLES.contains(&name.as_str()) {
                let all = names.iter().map(String::as_str).chain(OTHER_VARIABLES.iter().copied());
                return Err(Wrong::new(format!("unknown environment variable {name}"))
                    .meant(nearest(name, all)));
            }
        }
        Ok(known)
    }
}

impl Texts {
    /// The text of a setting and where it comes from; none if nothing sets it.
    pub fn get(&self, name: &str) -> Option<(&str, &Origin)> {
        self.texts.get(name).map(|(text, origin)| (text.as_str(), origin))
    }
}

impl Origin {
    /// Where to look for the setting of this name, in words.
    pub fn describe(&self, name: &str) -> String {
        match self {
            Self::Flag => format!("flag --{name}"),
            Self::Variable => format!("environment variable {}", variable(name)),
            other => other.to_string(),
        }
    }
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Flag => f.write_str("flag"),
            Self::Variable => f.write_str("environment"),
            Self::File(path) => write!(f, "file {}", path.display()),
            Self::Default => f.write_str("default"),
        }
    }
}

fn read_file(path: &Path) -> Result<Vec<(&'static Row, String)>> {
    let place = path.display();
    let cannot = |error: std::io::Error| Wrong::new(format!("cannot read {place}: {error}"));
    let length = std::fs::metadata(path).map_err(cannot)?.len();
    if length > FILE_BYTES_MAX {
        return Err(Wrong::new(format!("{place} is larger than {FILE_BYTES_MAX} bytes")));
    }
    let text = std::fs::read_to_string(path).map_err(cannot)?;
    // The parser's own message would quote the line, which may hold keys.
    let table: toml::Table = text.parse().map_err(|error: toml::de::Error| {
        let line = error.span().map_or(1, |span| text[..span.start].lines().count().max(1));
        Wrong::new(format!("{place}, line {line}: {}", error.message()))
    })?;
    table.into_iter().map(|(name, value)| entry(path, &name, &value)).collect()
}

fn entry(path: &Path, name: &str, value: &toml::Value) -> Result<(&'static Row, String)> {
    let place = path.display();
    let Some(row) = find(name) else {
        return Err(Wrong::new(format!("{place}: unknown setting {name}"))
            .meant(nearest(name, TABLE.iter().map(|row| row.name))));
    };
    match value {
        toml::Value::String(text) => Ok((row, text.clone())),
        toml::Value::Integer(number) => Ok((row, number.to_string())),
        _ => Err(Wrong::new(format!("{place}: {name} takes a string or a whole number"))),
    }
}
