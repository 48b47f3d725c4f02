//! What a set of rules allows: commands, keys by pattern and channels by pattern.

use std::collections::BTreeSet;

use lazuli_resp::Args;

use crate::command::{Categories, Command, Flags, KeySpec, TABLE};
use crate::glob;

/// Why a command is refused, in the order in which it is found out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Denied {
    Command,
    /// With the place of the argument.
    Key(usize),
    Channel(usize),
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct KeyPattern {
    pub(crate) pattern: String,
    pub(crate) reads: bool,
    pub(crate) writes: bool,
}

#[derive(Clone, Debug, Default)]
pub(crate) struct Permissions {
    /// One bit for each place in the table of commands.
    commands: Vec<u64>,
    /// Commands that are allowed with one first argument, by their places.
    first_arguments: BTreeSet<(usize, String)>,
    /// What `rules` begin from: all commands or none.
    begins_with_all: bool,
    /// The rules on commands since then, as they were given.
    rules: Vec<String>,
    pub(crate) all_keys: bool,
    pub(crate) keys: Vec<KeyPattern>,
    pub(crate) all_channels: bool,
    pub(crate) channels: Vec<String>,
}

impl Permissions {
    pub(crate) fn all() -> Self {
        let mut all = Self { all_keys: true, all_channels: true, ..Self::default() };
        all.allow_every(true);
        all
    }

    pub(crate) fn allows_all(&self) -> bool {
        let allows_commands = self.begins_with_all && self.rules.is_empty();
        allows_commands && self.all_keys && self.all_channels
    }

    /// Allows all commands or none.
    pub(crate) fn allow_every(&mut self, is_allowed: bool) {
        self.first_arguments.clear();
        self.rules.clear();
        self.begins_with_all = is_allowed;
        self.commands = vec![if is_allowed { u64::MAX } else { 0 }; TABLE.commands.len() / 64 + 1];
    }

    fn set(&mut self, number: usize, is_allowed: bool) {
        self.commands.resize(TABLE.commands.len() / 64 + 1, 0);
        let bit = 1 << (number % 64);
        match is_allowed {
            true => self.commands[number / 64] |= bit,
            false => self.commands[number / 64] &= !bit,
        }
    }

    /// Allows or forbids a command with all of its subcommands.
    pub(crate) fn allow(&mut self, command: &Command, is_allowed: bool) {
        self.set(command.number, is_allowed);
        for number in &command.subcommands {
            self.set(*number, is_allowed);
        }
        self.first_arguments.retain(|(number, _)| *number != command.number);
        let below = format!("{}|", command.name);
        self.remember(is_allowed, command.name, |rule| rule.starts_with(&below));
    }

    pub(crate) fn allow_category(&mut self, category: Categories, name: &str, is_allowed: bool) {
        let all = TABLE.commands.iter().filter(|it| it.categories.has(category));
        all.for_each(|command| self.set(command.number, is_allowed));
        self.remember(is_allowed, &format!("@{name}"), |_| false);
    }

    /// Allows a command for one first argument.
    pub(crate) fn allow_first_argument(&mut self, command: &Command, argument: &str) {
        let argument = argument.to_ascii_lowercase();
        self.remember(true, &format!("{}|{argument}", command.name), |_| false);
        self.first_arguments.insert((command.number, argument));
    }

    /// Puts a rule behind those before it, and drops those that it makes void.
    fn remember(&mut self, is_allowed: bool, name: &str, is_void: impl Fn(&str) -> bool) {
        self.rules.retain(|rule| rule[1..] != *name && !is_void(&rule[1..]));
        self.rules.push(format!("{}{name}", if is_allowed { '+' } else { '-' }));
    }

    pub(crate) fn check(&self, command: &'static Command, args: Args<'_>) -> Result<(), Denied> {
        if !self.has_command(command, args) {
            return Err(Denied::Command);
        }
        if !self.all_keys
            && let Some(at) = self.forbidden_key(command, args)
        {
            return Err(Denied::Key(at));
        }
        if !self.all_channels
            && let Some(at) = self.forbidden_channel(command, args)
        {
            return Err(Denied::Channel(at));
        }
        Ok(())
    }

    fn has_command(&self, command: &Command, args: Args<'_>) -> bool {
        let number = command.number;
        let word = self.commands.get(number / 64).copied().unwrap_or_default();
        if command.has(Flags::NO_AUTH) || word & (1 << (number % 64)) != 0 {
            return true;
        }
        let of_command = self.first_arguments.iter().filter(|(it, _)| *it == number);
        let mut named = of_command.map(|(_, argument)| argument);
        named.any(|argument| args.is(1, argument))
    }

    fn forbidden_key(&self, command: &'static Command, args: Args<'_>) -> Option<usize> {
        let mut forbidden = None;
        visit_keys(command, args, |at, reads, writes| {
            if forbidden.is_none() && !self.has_key(args.at(at), reads, writes) {
                forbidden = Some(at);
            }
        });
        forbidden
    }

    fn has_key(&self, key: &[u8], reads: bool, writes: bool) -> bool {
        let fits = |it: &KeyPattern| (!reads || it.reads) && (!writes || it.writes);
        let mut fitting = self.keys.iter().filter(|it| fits(it));
        fitting.any(|it| glob::matches(it.pattern.as_bytes(), key))
    }

    pub(crate) fn reads_all_keys(&self) -> bool {
        self.all_keys || self.keys.iter().any(|it| it.reads && it.pattern == "*")
    }

    fn forbidden_channel(&self, command: &Command, args: Args<'_>) -> Option<usize> {
        let (places, is_pattern) = match command.name {
            "publish" | "spublish" => (1..2, false),
            "subscribe" | "ssubscribe" => (1..args.len(), false),
            "psubscribe" => (1..args.len(), true),
            _ => return None,
        };
        let mut places = places.into_iter();
        places.find(|at| !self.has_channel(args.at(*at), is_pattern))
    }

    /// Whether a channel may be used. A pattern may be listened to only if it is one of the rules itself.
    pub(crate) fn has_channel(&self, channel: &[u8], is_pattern: bool) -> bool {
        let fits = |rule: &String| match is_pattern {
            true => rule.as_bytes() == channel,
            false => glob::matches(rule.as_bytes(), channel),
        };
        self.all_channels || self.channels.iter().any(fits)
    }

    /// The rules on commands, as ACL GETUSER shows them.
    pub(crate) fn describe_commands(&self) -> String {
        let base = if self.begins_with_all { "+@all" } else { "-@all" };
        let rules = self.rules.iter().map(String::as_str);
        std::iter::once(base).chain(rules).collect::<Vec<_>>().join(" ")
    }

    pub(crate) fn describe_keys(&self) -> String {
        if self.all_keys {
            return "~*".to_owned();
        }
        let show = |it: &KeyPattern| match (it.reads, it.writes) {
            (true, false) => format!("%R~{}", it.pattern),
            (false, true) => format!("%W~{}", it.pattern),
            _ => format!("~{}", it.pattern),
        };
        self.keys.iter().map(show).collect::<Vec<_>>().join(" ")
    }

    pub(crate) fn describe_channels(&self) -> String {
        if self.all_channels {
            return "&*".to_owned();
        }
        self.channels.iter().map(|it| format!("&{it}")).collect::<Vec<_>>().join(" ")
    }

    /// All rules, in the order of ACL LIST.
    pub(crate) fn describe(&self) -> String {
        let reset = if self.all_channels { "" } else { "resetchannels" };
        let channels = self.describe_channels();
        let parts = [self.describe_keys(), reset.to_owned(), channels, self.describe_commands()];
        parts.into_iter().filter(|it| !it.is_empty()).collect::<Vec<_>>().join(" ")
    }
}

/// Visits the keys of a command with what it does to each: whether it reads it, and whether it writes it.
fn visit_keys(command: &'static Command, args: Args<'_>, mut visit: impl FnMut(usize, bool, bool)) {
    crate::keys::visit(command, args, |at, spec| {
        if spec.has("not_key") {
            return;
        }
        let (reads, writes) = uses(command, args, spec);
        visit(at, reads, writes);
    });
    if command.name == "sort" {
        let target = (2..args.len()).rfind(|at| args.is(*at, "store"));
        if let Some(at) = target.map(|it| it + 1).filter(|it| *it < args.len()) {
            visit(at, false, true);
        }
    }
}

/// Whether a command reads and writes the keys of a spec. For two commands that follows from their arguments.
fn uses(command: &Command, args: Args<'_>, spec: &KeySpec) -> (bool, bool) {
    match command.name {
        "set" => ((3..args.len()).any(|at| args.is(at, "get")), true),
        "bitfield" => {
            let writes = |at: &usize| args.is(*at, "set") || args.is(*at, "incrby");
            (true, (2..args.len()).any(|at| writes(&at)))
        }
        _ => {
            let writes = ["insert", "delete", "update"].iter().any(|flag| spec.has(flag));
            (spec.has("access"), writes)
        }
    }
}

impl Denied {
    /// As ACL DRYRUN says it.
    pub(crate) fn sentence(self, command: &Command, args: Args<'_>) -> String {
        let named = |at| String::from_utf8_lossy(args.at(at)).into_owned();
        let what = match self {
            Self::Command => format!("run the '{}' command", command.name),
            Self::Key(at) => format!("access the '{}' key", named(at)),
            Self::Channel(at) => format!("access the '{}' channel", named(at)),
        };
        format!("This user has no permissions to {what}")
    }
}
