//! The language of rules: `on`, `>password`, `~pattern`, `&channel`, `+command`, `-@category`, `(selector)` and the rest.

use super::permissions::{KeyPattern, Permissions};
use super::user::{Digest, Rights, digest};
use crate::command::{Categories, TABLE};
use crate::failure::Failure;

/// Why a rule is refused; the words are those of the service.
type Refused = &'static str;

const SYNTAX: Refused = "Syntax error";
const UNKNOWN: Refused = "Unknown command or category name in ACL";
const FIRST_ARGUMENT: Refused = "Allowing first-arg of a subcommand is not supported";
const BAD_DIGEST: Refused = "The password hash must be exactly 64 characters and contain only lowercase hexadecimal characters";
const NO_PASSWORD: Refused = "The password you are trying to remove from the user does not exist";
const ALL_KEYS: Refused = "Adding a pattern after the * pattern (or the 'allkeys' flag) is not valid and does not have any \
    effect. Try 'resetkeys' to start with an empty list of patterns";
const ALL_CHANNELS: Refused = "Adding a pattern after the * pattern (or the 'allchannels' flag) is not valid and does not \
    have any effect. Try 'resetchannels' to start with an empty list of channels";

/// In the store only: the access keys of accounts still decide about the default user. No rule of a client can say this.
pub(super) const BY_GATE: &str = "=gate";

/// The user that a text of the store describes.
pub(super) fn parse(text: &str) -> Result<Rights, Failure> {
    let (is_by_gate, rest) = match text.strip_prefix(BY_GATE) {
        Some(rest) => (true, rest),
        None => (false, text),
    };
    let words: Vec<String> = rest.split_whitespace().map(str::to_owned).collect();
    let mut rights = Rights::default();
    apply(&mut rights, &words)?;
    rights.is_by_gate |= is_by_gate;
    Ok(rights)
}

/// Applies rules one after another. What is refused leaves the rights half changed: the caller throws them away.
pub(super) fn apply(rights: &mut Rights, modifiers: &[String]) -> Result<(), Failure> {
    for modifier in merged(modifiers)? {
        apply_one(rights, &modifier).map_err(|why| {
            Failure::new(format!("ERR Error in ACL SETUSER modifier '{modifier}': {why}"))
        })?;
    }
    Ok(())
}

/// The rules with those in parentheses made one.
fn merged(modifiers: &[String]) -> Result<Vec<String>, Failure> {
    let (mut found, mut open): (Vec<String>, Option<String>) = (Vec::new(), None);
    for word in modifiers {
        let joined = match open.take() {
            Some(begun) => format!("{begun} {word}"),
            None => word.clone(),
        };
        match joined.starts_with('(') && !joined.ends_with(')') {
            true => open = Some(joined),
            false => found.push(joined),
        }
    }
    match open {
        None => Ok(found),
        Some(open) => {
            let first = open.split(' ').next().unwrap_or_default();
            let text = "ERR Unmatched parenthesis in acl selector starting at";
            Err(Failure::new(format!("{text} '{first}'.")))
        }
    }
}

fn apply_one(rights: &mut Rights, rule: &str) -> Result<(), Refused> {
    match rule.to_ascii_lowercase().as_str() {
        "on" => rights.is_on = true,
        "off" => rights.is_on = false,
        "nopass" => {
            forget_passwords(rights);
            rights.is_nopass = true;
        }
        "resetpass" => forget_passwords(rights),
        "sanitize-payload" => rights.sanitizes = Some(true),
        "skip-sanitize-payload" => rights.sanitizes = Some(false),
        "clearselectors" => rights.selectors.clear(),
        "reset" => *rights = Rights { sanitizes: Some(true), ..Rights::default() },
        _ => match rule.as_bytes().first() {
            Some(b'>') => add_password(rights, digest(&rule.as_bytes()[1..])),
            Some(b'#') => add_password(rights, parse_digest(&rule[1..])?),
            Some(b'<') => remove_password(rights, &digest(&rule.as_bytes()[1..]))?,
            Some(b'!') => remove_password(rights, &parse_digest(&rule[1..])?)?,
            Some(b'(') => rights.selectors.push(selector(rule)?),
            _ => permit(&mut rights.own, rule)?,
        },
    }
    Ok(())
}

fn forget_passwords(rights: &mut Rights) {
    rights.passwords.clear();
    (rights.is_nopass, rights.is_by_gate) = (false, false);
}

fn add_password(rights: &mut Rights, password: Digest) {
    (rights.is_nopass, rights.is_by_gate) = (false, false);
    if !rights.passwords.contains(&password) {
        rights.passwords.push(password);
    }
}

fn remove_password(rights: &mut Rights, password: &Digest) -> Result<(), Refused> {
    let at = rights.passwords.iter().position(|it| it == password).ok_or(NO_PASSWORD)?;
    rights.passwords.remove(at);
    Ok(())
}

fn parse_digest(text: &str) -> Result<Digest, Refused> {
    let is_hex = text.bytes().all(|it| matches!(it, b'0'..=b'9' | b'a'..=b'f'));
    if text.len() != 64 || !is_hex {
        return Err(BAD_DIGEST);
    }
    let mut digest = Digest::default();
    for (byte, at) in digest.iter_mut().zip((0..64).step_by(2)) {
        *byte = u8::from_str_radix(&text[at..at + 2], 16).map_err(|_| BAD_DIGEST)?;
    }
    Ok(digest)
}

fn selector(rule: &str) -> Result<Permissions, Refused> {
    let inside = rule.strip_prefix('(').and_then(|it| it.strip_suffix(')')).ok_or(SYNTAX)?;
    let mut permissions = Permissions::default();
    for word in inside.split_whitespace() {
        permit(&mut permissions, word)?;
    }
    Ok(permissions)
}

/// A rule on commands, keys or channels.
fn permit(permissions: &mut Permissions, rule: &str) -> Result<(), Refused> {
    match rule.to_ascii_lowercase().as_str() {
        "allkeys" | "~*" => {
            permissions.all_keys = true;
            permissions.keys.clear();
        }
        "resetkeys" => {
            permissions.all_keys = false;
            permissions.keys.clear();
        }
        "allchannels" | "&*" => {
            permissions.all_channels = true;
            permissions.channels.clear();
        }
        "resetchannels" => {
            permissions.all_channels = false;
            permissions.channels.clear();
        }
        "allcommands" | "+@all" => permissions.allow_every(true),
        "nocommands" | "-@all" => permissions.allow_every(false),
        lower => match rule.as_bytes().first() {
            Some(b'~' | b'%') => add_keys(permissions, rule)?,
            Some(b'&') => add_channel(permissions, &rule[1..])?,
            Some(b'+') => allow(permissions, &lower[1..], true)?,
            Some(b'-') => allow(permissions, &lower[1..], false)?,
            _ => return Err(SYNTAX),
        },
    }
    Ok(())
}

fn is_word(pattern: &str) -> bool {
    !pattern.bytes().any(|byte| byte.is_ascii_whitespace() || byte == 0)
}

fn add_keys(permissions: &mut Permissions, rule: &str) -> Result<(), Refused> {
    if permissions.all_keys {
        return Err(ALL_KEYS);
    }
    let (reads, writes, pattern) = match rule.strip_prefix('~') {
        Some(pattern) => (true, true, pattern),
        None => {
            let (flags, pattern) = rule[1..].split_once('~').unwrap_or((&rule[1..], ""));
            let flags = flags.to_ascii_uppercase();
            if !matches!(flags.as_str(), "R" | "W" | "RW" | "WR") {
                return Err(SYNTAX);
            }
            (flags.contains('R'), flags.contains('W'), pattern)
        }
    };
    if !is_word(pattern) {
        return Err(SYNTAX);
    }
    if reads && writes && pattern == "*" {
        permissions.all_keys = true;
        permissions.keys.clear();
        return Ok(());
    }
    let pattern = pattern.to_owned();
    match permissions.keys.iter_mut().find(|it| it.pattern == pattern) {
        Some(known) => (known.reads, known.writes) = (known.reads | reads, known.writes | writes),
        None => permissions.keys.push(KeyPattern { pattern, reads, writes }),
    }
    Ok(())
}

fn add_channel(permissions: &mut Permissions, pattern: &str) -> Result<(), Refused> {
    if permissions.all_channels {
        return Err(ALL_CHANNELS);
    }
    if !is_word(pattern) {
        return Err(SYNTAX);
    }
    if !permissions.channels.iter().any(|it| it == pattern) {
        permissions.channels.push(pattern.to_owned());
    }
    Ok(())
}

/// A rule on a command, a subcommand, a first argument or a category, in lower case.
fn allow(permissions: &mut Permissions, name: &str, is_allowed: bool) -> Result<(), Refused> {
    if let Some(category) = name.strip_prefix('@') {
        let found = Categories::named(category).ok_or(UNKNOWN)?;
        permissions.allow_category(found, category, is_allowed);
        return Ok(());
    }
    let (parent, rest) = match name.split_once('|') {
        Some((parent, rest)) => (parent, Some(rest)),
        None => (name, None),
    };
    let command = TABLE.command(parent.as_bytes()).ok_or(UNKNOWN)?;
    let Some(rest) = rest else {
        permissions.allow(command, is_allowed);
        return Ok(());
    };
    if let Some(found) = TABLE.subcommand(command, rest.as_bytes()) {
        permissions.allow(found, is_allowed);
        return Ok(());
    }
    if rest.contains('|') {
        return Err(FIRST_ARGUMENT);
    }
    if !is_allowed || !command.subcommands.is_empty() || rest.is_empty() {
        return Err(UNKNOWN);
    }
    permissions.allow_first_argument(command, rest);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rights(rules: &str) -> Rights {
        let words: Vec<String> = rules.split(' ').map(str::to_owned).collect();
        let mut rights = Rights::default();
        apply(&mut rights, &words).unwrap();
        rights
    }

    #[test]
    fn what_is_described_is_read_back_as_the_same() {
        for rules in [
            "on nopass ~* &* +@all",
            "on >one >two ~a* %R~b* %W~c resetchannels &x* -@all +@read -get +config|get +select|0",
            "off +@all -@dangerous +keys (%R~s:* +get) (+set ~t:* &ch)",
            "reset skip-sanitize-payload",
        ] {
            let made = rights(rules);
            let again = parse(&made.text()).unwrap();
            assert_eq!(again.text(), made.text(), "{rules}");
        }
        let first = super::super::User::first();
        assert!(parse(&first.rights().text()).unwrap().is_by_gate);
        assert!(apply(&mut Rights::default(), &[BY_GATE.to_owned()]).is_err());
    }

    #[test]
    fn a_later_rule_takes_the_place_of_an_earlier_one() {
        assert_eq!(rights("+get -get +set").own.describe_commands(), "-@all -get +set");
        assert_eq!(rights("+config|get -config").own.describe_commands(), "-@all -config");
        assert_eq!(rights("+get +@all").own.describe_commands(), "+@all");
        assert_eq!(rights("%R~a %W~a").own.describe_keys(), "~a");
    }

    #[test]
    fn refusals_have_the_words_of_the_service() {
        let refused = |rules: &[&str]| {
            let words: Vec<String> = rules.iter().map(|it| (*it).to_owned()).collect();
            apply(&mut Rights::default(), &words).unwrap_err().0.into_owned()
        };
        let head = "ERR Error in ACL SETUSER modifier";
        assert_eq!(refused(&["+nosuch"]), format!("{head} '+nosuch': {UNKNOWN}"));
        assert_eq!(refused(&["+@nosuch"]), format!("{head} '+@nosuch': {UNKNOWN}"));
        assert_eq!(refused(&["foo"]), format!("{head} 'foo': Syntax error"));
        assert_eq!(refused(&["allkeys", "~x"]), format!("{head} '~x': {ALL_KEYS}"));
        assert_eq!(refused(&["&*", "&x"]), format!("{head} '&x': {ALL_CHANNELS}"));
        assert_eq!(refused(&["#abc"]), format!("{head} '#abc': {BAD_DIGEST}"));
        assert_eq!(refused(&["<nope"]), format!("{head} '<nope': {NO_PASSWORD}"));
        assert_eq!(
            refused(&["+config|get|x"]),
            format!("{head} '+config|get|x': {FIRST_ARGUMENT}")
        );
        assert_eq!(refused(&["-get|x"]), format!("{head} '-get|x': {UNKNOWN}"));
        assert_eq!(refused(&["%Q~x"]), format!("{head} '%Q~x': Syntax error"));
        assert_eq!(
            refused(&["(+get", "~a", "on)"]),
            format!("{head} '(+get ~a on)': Syntax error")
        );
        let open = "ERR Unmatched parenthesis in acl selector starting at '(+get'.";
        assert_eq!(refused(&["(+get", "~a"]), open);
    }

    #[test]
    fn passwords_are_compared_as_digests() {
        let made = rights("on >one >two <one");
        assert!(made.has_password(b"two") && !made.has_password(b"one"));
        assert!(!made.text().contains("two"));
    }
}
