//! COMMAND: the table of commands, for clients that read it.

use std::collections::BTreeMap;

use lazuli_resp::Reply;

use crate::call::Call;
use crate::command::{Begin, Categories, Command, Find, Flags, KeySpec, Run, TABLE};
use crate::dispatch;
use crate::failure::Failure;
use crate::glob;

pub(super) const RUNS: &[(&str, Run)] = &[
    ("command", all),
    ("command|count", count),
    ("command|docs", docs),
    ("command|getkeys", getkeys),
    ("command|getkeysandflags", getkeysandflags),
    ("command|info", info),
    ("command|list", list),
];

fn all(call: &mut Call<'_, '_>) -> Result<(), Failure> {
    call.out.array(TABLE.roots().count());
    TABLE.roots().for_each(|command| write(call.out, command));
    Ok(())
}

fn count(call: &mut Call<'_, '_>) -> Result<(), Failure> {
    call.out.count(TABLE.roots().count());
    Ok(())
}

fn named(name: &[u8]) -> Option<&'static Command> {
    TABLE.commands.iter().find(|it| it.name.as_bytes().eq_ignore_ascii_case(name))
}

fn info(call: &mut Call<'_, '_>) -> Result<(), Failure> {
    if call.args.len() == 2 {
        return all(call);
    }
    call.out.array(call.args.len() - 2);
    for name in call.args.from(2).iter() {
        match named(name) {
            Some(command) => write(call.out, command),
            None => call.out.null_array(),
        }
    }
    Ok(())
}

/// One command as clients read it: the first and last key and the step between keys are the oldest form of key specs.
fn write(out: &mut Reply, command: &Command) {
    let (first, last, step) = positions(command);
    out.array(10);
    out.text(command.name);
    out.integer(i64::from(command.arity));
    let flags: Vec<&str> = command.flags.names().collect();
    out.set(flags.len());
    flags.iter().for_each(|it| out.simple(it));
    out.integer(first);
    out.integer(last);
    out.integer(step);
    let categories: Vec<&str> = command.categories.names().collect();
    out.set(categories.len());
    categories.iter().for_each(|it| out.simple(&format!("@{it}")));
    out.array(command.tips.len());
    command.tips.iter().for_each(|it| out.text(it));
    out.array(command.keys.len());
    command.keys.iter().for_each(|it| write_keys(out, it));
    out.array(command.subcommands.len());
    command.subcommands.iter().for_each(|it| write(out, &TABLE.commands[*it]));
}

fn positions(command: &Command) -> (i64, i64, i64) {
    let mut found: Option<(i64, i64, i64)> = None;
    for spec in &command.keys {
        let (Begin::Index(first), Find::Range { last, step, limit: 0 }) = (spec.begin, spec.find)
        else {
            continue;
        };
        let first = first as i64;
        let last = if last >= 0 { first + i64::from(last) } else { i64::from(last) };
        found = match found {
            None => Some((first, last, step as i64)),
            // Specs side by side are one range.
            Some((start, end, step)) if first == end + 1 => Some((start, last, step)),
            other => other,
        };
    }
    found.unwrap_or_default()
}

fn write_keys(out: &mut Reply, spec: &KeySpec) {
    out.map(3);
    out.text("flags");
    let flags: Vec<&str> = spec.flags.split(' ').filter(|it| !it.is_empty()).collect();
    out.set(flags.len());
    flags.iter().for_each(|it| out.simple(it));
    out.text("begin_search");
    out.map(2);
    out.text("type");
    match spec.begin {
        Begin::Index(index) => {
            out.text("index");
            out.text("spec");
            pairs(out, &[("index", index as i64)]);
        }
        Begin::Keyword(word, from) => {
            out.text("keyword");
            out.text("spec");
            out.map(2);
            out.text("keyword");
            out.text(word);
            out.text("startfrom");
            out.integer(i64::from(from));
        }
        Begin::Unknown => {
            out.text("unknown");
            out.text("spec");
            out.map(0);
        }
    }
    out.text("find_keys");
    out.map(2);
    out.text("type");
    match spec.find {
        Find::Range { last, step, limit } => {
            out.text("range");
            out.text("spec");
            let all =
                [("lastkey", i64::from(last)), ("keystep", step as i64), ("limit", limit as i64)];
            pairs(out, &all);
        }
        Find::Count { count, first, step } => {
            out.text("keynum");
            out.text("spec");
            let all =
                [("keynumidx", count as i64), ("firstkey", first as i64), ("keystep", step as i64)];
            pairs(out, &all);
        }
        Find::Unknown => {
            out.text("unknown");
            out.text("spec");
            out.map(0);
        }
    }
}

fn pairs(out: &mut Reply, pairs: &[(&str, i64)]) {
    out.map(pairs.len());
    for (name, value) in pairs {
        out.text(name);
        out.integer(*value);
    }
}

fn docs(call: &mut Call<'_, '_>) -> Result<(), Failure> {
    let shown: Vec<&'static Command> = match call.args.len() {
        2 => TABLE.roots().collect(),
        _ => call.args.from(2).iter().filter_map(named).collect(),
    };
    call.out.map(shown.len());
    shown.iter().for_each(|command| write_docs(call.out, command));
    Ok(())
}

fn write_docs(out: &mut Reply, command: &Command) {
    out.text(command.name);
    let mut fields: BTreeMap<&str, &str> = BTreeMap::new();
    fields.insert("since", command.since);
    fields.insert("group", command.group);
    if !command.summary.is_empty() {
        fields.insert("summary", command.summary);
    }
    out.map(fields.len() + usize::from(!command.subcommands.is_empty()));
    for (name, value) in fields {
        out.text(name);
        out.text(value);
    }
    if !command.subcommands.is_empty() {
        out.text("subcommands");
        out.map(command.subcommands.len());
        command.subcommands.iter().for_each(|it| write_docs(out, &TABLE.commands[*it]));
    }
}

fn list(call: &mut Call<'_, '_>) -> Result<(), Failure> {
    let args = call.args;
    let value = String::from_utf8_lossy(args.at(4)).to_ascii_lowercase();
    let is_shown: Box<dyn Fn(&Command) -> bool> = match args.len() {
        2 => Box::new(|it| !it.name.contains('|')),
        5 if args.is(2, "filterby") && args.is(3, "aclcat") => {
            let category = Categories::named(&value);
            Box::new(move |it| category.is_some_and(|category| it.categories.has(category)))
        }
        5 if args.is(2, "filterby") && args.is(3, "pattern") => {
            Box::new(move |it| glob::matches_any_case(value.as_bytes(), it.name.as_bytes()))
        }
        5 if args.is(2, "filterby") && args.is(3, "module") => Box::new(|_| false),
        _ => return Err(Failure::SYNTAX),
    };
    let shown: Vec<&Command> = TABLE.commands.iter().filter(|it| is_shown(it)).collect();
    call.out.set(shown.len());
    shown.iter().for_each(|it| call.out.text(it.name));
    Ok(())
}

/// The places and specs of the keys of a command that stands in the arguments of this one.
fn keys_of(call: &Call<'_, '_>) -> Result<Vec<(usize, &'static KeySpec)>, Failure> {
    let args = call.args.from(2);
    let command =
        dispatch::find(&TABLE, args).map_err(|_| Failure::of("ERR Invalid command specified"))?;
    if command.keys.is_empty() {
        return Err(Failure::of("ERR The command has no key arguments"));
    }
    if !command.takes(args.len()) {
        return Err(Failure::of("ERR Invalid number of arguments specified for command"));
    }
    let mut found = Vec::new();
    let is_known = crate::keys::visit(command, args, |at, spec| found.push((at, spec)));
    if !is_known || (found.is_empty() && !command.has(Flags::NO_MANDATORY_KEYS)) {
        return Err(Failure::of("ERR Invalid arguments specified for command"));
    }
    if found.is_empty() {
        return Err(Failure::of("ERR The command has no key arguments"));
    }
    Ok(found)
}

fn getkeys(call: &mut Call<'_, '_>) -> Result<(), Failure> {
    let found = keys_of(call)?;
    call.out.array(found.len());
    found.iter().for_each(|(at, _)| call.out.bulk(call.args.at(at + 2)));
    Ok(())
}

fn getkeysandflags(call: &mut Call<'_, '_>) -> Result<(), Failure> {
    let found = keys_of(call)?;
    call.out.array(found.len());
    for (at, spec) in found {
        call.out.array(2);
        call.out.bulk(call.args.at(at + 2));
        let flags: Vec<&str> = spec.flags.split(' ').filter(|it| !it.is_empty()).collect();
        call.out.set(flags.len());
        flags.iter().for_each(|it| call.out.simple(it));
    }
    Ok(())
}
