//! The table of commands: what `commands.txt` says about each, and the function that runs it.
//!
//! Parsing, access control, locking, COMMAND and the answers of cluster mode all read this one table.

use std::collections::HashMap;
use std::sync::LazyLock;

use crate::call::Call;
use crate::commands;
use crate::failure::Failure;
use crate::limits::COMMAND_NAME_BYTES_MAX;

pub(crate) type Run = fn(&mut Call<'_, '_>) -> Result<(), Failure>;

/// What a command is like, one bit each, in the order in which COMMAND lists the names.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Flags(pub(crate) u32);

macro_rules! flags {
    ($type:ident: $($name:ident = $text:literal),* $(,)?) => {
        flags!(@count 0; $type; $($name)*);

        impl $type {
            pub(crate) const NAMES: &'static [(&'static str, $type)] =
                &[$(($text, $type::$name)),*];

            pub(crate) fn named(name: &str) -> Option<$type> {
                Self::NAMES.iter().find(|(it, _)| *it == name).map(|(_, flag)| *flag)
            }

            pub(crate) const fn has(self, other: $type) -> bool {
                self.0 & other.0 != 0
            }

            pub(crate) fn names(self) -> impl Iterator<Item = &'static str> {
                Self::NAMES.iter().filter(move |(_, it)| self.has(*it)).map(|(name, _)| *name)
            }

            fn parse(names: &str) -> $type {
                let all = names.split(' ').filter(|it| !it.is_empty());
                all.fold($type(0), |flags, name| {
                    $type(flags.0 | $type::named(name).expect("the table names known flags").0)
                })
            }
        }
    };
    (@count $number:expr; $type:ident; $name:ident $($rest:ident)*) => {
        impl $type {
            #[allow(dead_code, reason = "some are only shown to clients")]
            pub(crate) const $name: $type = $type(1 << $number);
        }
        flags!(@count $number + 1; $type; $($rest)*);
    };
    (@count $number:expr; $type:ident;) => {};
}

flags! { Flags:
    WRITE = "write", READONLY = "readonly", DENYOOM = "denyoom", ADMIN = "admin", PUBSUB = "pubsub",
    NOSCRIPT = "noscript", BLOCKING = "blocking", LOADING = "loading", STALE = "stale",
    SKIP_MONITOR = "skip_monitor", SKIP_SLOWLOG = "skip_slowlog", ASKING = "asking", FAST = "fast",
    NO_AUTH = "no_auth", MAY_REPLICATE = "may_replicate", NO_MANDATORY_KEYS = "no_mandatory_keys",
    NO_ASYNC_LOADING = "no_async_loading", NO_MULTI = "no_multi", MOVABLE_KEYS = "movablekeys",
    ALLOW_BUSY = "allow_busy",
}

/// The categories of access control, one bit each.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Categories(pub(crate) u32);

flags! { Categories:
    KEYSPACE = "keyspace", READ = "read", WRITE = "write", SET = "set", SORTED_SET = "sortedset",
    LIST = "list", HASH = "hash", STRING = "string", BITMAP = "bitmap",
    HYPERLOGLOG = "hyperloglog", GEO = "geo", STREAM = "stream", PUBSUB = "pubsub", ADMIN = "admin",
    FAST = "fast", SLOW = "slow", BLOCKING = "blocking", DANGEROUS = "dangerous",
    CONNECTION = "connection", TRANSACTION = "transaction", SCRIPTING = "scripting",
}

/// Where the arguments that are keys begin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Begin {
    Index(usize),
    /// Behind this word, which is looked for from this place on; from the end if it is negative.
    Keyword(&'static str, i32),
    Unknown,
}

/// Which of the arguments from there on are keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Find {
    /// To the last one, which counts from the first key or, if negative, from the last argument; every so many; a limit
    /// divides what is left.
    Range {
        last: i32,
        step: usize,
        limit: usize,
    },
    /// As many as the argument at `count` says, the first one at `first`.
    Count {
        count: usize,
        first: usize,
        step: usize,
    },
    Unknown,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct KeySpec {
    /// As COMMAND shows them: `RO`, `RW`, `OW`, `RM`, and what is done with the key.
    pub(crate) flags: &'static str,
    pub(crate) begin: Begin,
    pub(crate) find: Find,
}

impl KeySpec {
    pub(crate) fn has(&self, flag: &str) -> bool {
        self.flags.split(' ').any(|it| it == flag)
    }
}

/// Which locks a command needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Locks {
    None,
    /// Of the one key, which is at this place.
    Key(usize),
    /// Of all keys that its key specs find.
    Keys,
    /// Of the stripe that a cursor of a scan is in.
    Cursor,
    All,
}

pub(crate) struct Command {
    /// The whole name; a subcommand's has its command in front and a bar between them.
    pub(crate) name: &'static str,
    pub(crate) arity: i32,
    pub(crate) flags: Flags,
    pub(crate) categories: Categories,
    pub(crate) tips: Vec<&'static str>,
    pub(crate) group: &'static str,
    pub(crate) since: &'static str,
    pub(crate) keys: Vec<KeySpec>,
    pub(crate) summary: &'static str,
    pub(crate) locks: Locks,
    /// Its place in the table.
    pub(crate) number: usize,
    /// Its subcommands, by their places in the table.
    pub(crate) subcommands: Vec<usize>,
    pub(crate) run: Option<Run>,
}

impl Command {
    /// The name without that of its command.
    pub(crate) fn own_name(&self) -> &'static str {
        self.name.rsplit('|').next().unwrap_or(self.name)
    }

    pub(crate) fn has(&self, flag: Flags) -> bool {
        self.flags.has(flag)
    }

    pub(crate) fn takes(&self, count: usize) -> bool {
        let wanted = self.arity.unsigned_abs() as usize;
        if self.arity < 0 { count >= wanted } else { count == wanted }
    }
}

pub(crate) struct Table {
    pub(crate) commands: Vec<Command>,
    by_name: HashMap<&'static [u8], usize>,
}

pub(crate) static TABLE: LazyLock<Table> = LazyLock::new(Table::new);

impl Table {
    fn new() -> Self {
        let runs: HashMap<&str, Run> = commands::runs().collect();
        let text = include_str!("../commands.txt");
        let lines = text.lines().filter(|it| !it.is_empty() && !it.starts_with('#'));
        let mut commands: Vec<Command> = Vec::new();
        for line in lines {
            let mut command = parse(line);
            command.number = commands.len();
            command.run = runs.get(command.name).copied();
            if command.own_name() == "help" {
                command.run = Some(commands::help);
            }
            commands.push(command);
        }
        // What nothing runs is unknown to clients; a command with subcommands is known if one of them is.
        let has_run = |it: &&Command| it.run.is_some() && it.own_name() != "help";
        let runs_itself: Vec<&'static str> =
            commands.iter().filter(has_run).map(|it| it.name).collect();
        let is_known = |name: &str| {
            runs_itself.iter().any(|it| *it == name || it.split('|').next() == Some(name))
        };
        commands.retain(|it| {
            let parent = it.name.strip_suffix("|help");
            is_known(parent.unwrap_or(it.name))
        });
        for number in 0..commands.len() {
            commands[number].number = number;
            let parent = commands[number].name;
            let is_below = |it: &&Command| it.name.split_once('|').is_some_and(|it| it.0 == parent);
            let below = commands.iter().filter(is_below).map(|it| it.name).collect::<Vec<_>>();
            let place = |name: &&str| commands.iter().position(|it| it.name == *name);
            commands[number].subcommands = below.iter().filter_map(place).collect();
        }
        let by_name = commands.iter().map(|it| (it.name.as_bytes(), it.number)).collect();
        Self { commands, by_name }
    }

    /// The command of this name, in any case.
    pub(crate) fn command(&self, name: &[u8]) -> Option<&Command> {
        let mut lower = [0; COMMAND_NAME_BYTES_MAX];
        let lower = lower.get_mut(..name.len())?;
        lower.copy_from_slice(name);
        lower.make_ascii_lowercase();
        self.by_name.get(&*lower).map(|number| &self.commands[*number])
    }

    pub(crate) fn subcommand(&self, command: &Command, name: &[u8]) -> Option<&Command> {
        let all = command.subcommands.iter().map(|it| &self.commands[*it]);
        let mut all = all.into_iter();
        all.find(|it| it.own_name().as_bytes().eq_ignore_ascii_case(name))
    }

    /// Commands that are none's subcommand.
    pub(crate) fn roots(&self) -> impl Iterator<Item = &Command> {
        self.commands.iter().filter(|it| !it.name.contains('|'))
    }
}

fn parse(line: &'static str) -> Command {
    let mut fields = line.split(" |").map(str::trim);
    let mut next = || fields.next().unwrap_or_default();
    let (name, arity, flags, categories) = (next(), next(), next(), next());
    let (tips, group, since, keys, summary) = (next(), next(), next(), next(), next());
    let keys: Vec<KeySpec> =
        keys.split(';').filter(|it| !it.trim().is_empty()).map(parse_keys).collect();
    let locks = locks_of(name, &keys);
    Command {
        name,
        arity: arity.parse().expect("the table gives numbers as arities"),
        flags: Flags::parse(flags),
        categories: Categories::parse(categories),
        tips: tips.split(' ').filter(|it| !it.is_empty()).collect(),
        group,
        since,
        keys,
        summary,
        locks,
        number: 0,
        subcommands: Vec::new(),
        run: None,
    }
}

fn parse_keys(text: &'static str) -> KeySpec {
    let (flags, rest) = text.split_once('@').expect("a key spec has an @");
    let (begin, find) = rest.split_once(':').expect("a key spec has a colon");
    let (begin, find) = (begin.trim(), find.trim());
    let begin = match begin.find(['+', '-']) {
        _ if begin == "?" => Begin::Unknown,
        None => Begin::Index(begin.parse().expect("the table gives numbers as indexes")),
        Some(at) => {
            let from = begin[at..].parse().expect("the table gives numbers behind keywords");
            Begin::Keyword(&begin[..at], from)
        }
    };
    let numbers: Vec<i32> =
        find.trim_start_matches('#').split('/').filter_map(|it| it.parse().ok()).collect();
    let find = match (find.starts_with('#'), &numbers[..]) {
        (true, [count, first, step]) => {
            Find::Count { count: *count as usize, first: *first as usize, step: *step as usize }
        }
        (false, [last, step, limit]) => {
            Find::Range { last: *last, step: *step as usize, limit: *limit as usize }
        }
        _ => Find::Unknown,
    };
    KeySpec { flags: flags.trim(), begin, find }
}

/// Commands that use keys which their arguments do not name.
const WHOLE: &[&str] = &[
    "flushall",
    "flushdb",
    "keys",
    "dbsize",
    "randomkey",
    "swapdb",
    "sort",
    "sort_ro",
    "eval",
    "evalsha",
    "eval_ro",
    "evalsha_ro",
    "fcall",
    "fcall_ro",
    "debug",
    "move",
    "info",
    "memory|stats",
    "function|delete",
    "function|flush",
    "function|load",
    "function|restore",
];

fn locks_of(name: &str, keys: &[KeySpec]) -> Locks {
    if WHOLE.contains(&name) {
        return Locks::All;
    }
    match keys {
        _ if name == "scan" => Locks::Cursor,
        [] => Locks::None,
        [KeySpec { begin: Begin::Index(at), find: Find::Range { last: 0, .. }, .. }] => {
            Locks::Key(*at)
        }
        _ => Locks::Keys,
    }
}
