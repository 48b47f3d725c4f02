//! ACL: users and their rules, who the client is, which categories there are, what was refused.

use lazuli_resp::parse_integer;

use crate::acl::{DEFAULT, Permissions, User, hex};
use crate::call::Call;
use crate::command::{Categories, Command, Run, TABLE};
use crate::failure::Failure;
use crate::pubsub::Kind;

pub(super) const RUNS: &[(&str, Run)] = &[
    ("acl|cat", cat),
    ("acl|deluser", deluser),
    ("acl|dryrun", dryrun),
    ("acl|genpass", genpass),
    ("acl|getuser", getuser),
    ("acl|list", list),
    ("acl|load", no_file),
    ("acl|log", log),
    ("acl|save", no_file),
    ("acl|setuser", setuser),
    ("acl|users", users),
    ("acl|whoami", whoami),
];

/// The most bits of a password that is made.
const PASSWORD_BITS_MAX: i64 = 4096;
const PASSWORD_BITS: usize = 256;
/// How many entries of the log are shown unless asked for another number.
const LOG_ENTRIES: usize = 10;

fn text_at(call: &Call<'_, '_>, index: usize) -> String {
    String::from_utf8_lossy(call.args.at(index)).into_owned()
}

fn whoami(call: &mut Call<'_, '_>) -> Result<(), Failure> {
    let name = call.session.user.as_ref().map_or(DEFAULT, |it| &it.name);
    call.out.text(name);
    Ok(())
}

fn users(call: &mut Call<'_, '_>) -> Result<(), Failure> {
    let users = call.server.acl.users();
    call.out.array(users.len());
    users.keys().for_each(|name| call.out.text(name));
    Ok(())
}

fn list(call: &mut Call<'_, '_>) -> Result<(), Failure> {
    let users = call.server.acl.users();
    call.out.array(users.len());
    for (name, user) in users.iter() {
        let rules = user.rights().describe(call.server.is_nopass(user));
        call.out.text(&format!("user {name} {rules}"));
    }
    Ok(())
}

/// The argument of a rule as text; rules are names and patterns of clients that write UTF-8.
fn rule(bytes: &[u8]) -> Result<String, Failure> {
    let text = std::str::from_utf8(bytes);
    let text = text.map_err(|_| const { Failure::of("ERR rules of users must be UTF-8") })?;
    Ok(text.to_owned())
}

fn setuser(call: &mut Call<'_, '_>) -> Result<(), Failure> {
    let name = rule(call.args.at(2))?;
    if name.bytes().any(|byte| byte.is_ascii_whitespace() || byte == 0) {
        return Err(Failure::of("ERR Usernames can't contain spaces or null characters"));
    }
    let rules = call.args.from(3).iter().map(rule).collect::<Result<Vec<_>, _>>()?;
    call.session.users_until = call.server.acl.set(&name, &rules)?;
    if let Some(user) = call.server.acl.user(&name) {
        silence(call, &user);
    }
    call.out.ok();
    Ok(())
}

/// Disconnects clients of a user that listen to what it may not hear any more.
fn silence(call: &Call<'_, '_>, user: &User) {
    let rights = user.rights();
    let of_user = call.server.clients.list();
    for client in of_user.iter().filter(|it| it.texts().user == user.name) {
        let mut is_allowed = true;
        for kind in [Kind::Channel, Kind::Pattern, Kind::Shard] {
            call.server.pubsub.heard_by(client.id, kind, |channel| {
                is_allowed &= rights.hears(channel, kind == Kind::Pattern);
            });
        }
        if !is_allowed {
            client.kill();
        }
    }
}

fn deluser(call: &mut Call<'_, '_>) -> Result<(), Failure> {
    let names: Vec<String> = (2..call.args.len()).map(|at| text_at(call, at)).collect();
    if names.iter().any(|name| name == DEFAULT) {
        return Err(Failure::of("ERR The 'default' user cannot be removed"));
    }
    let mut count = 0;
    for name in &names {
        let Some(change) = call.server.acl.delete(name) else { continue };
        call.session.users_until = change;
        count += 1;
        for client in call.server.clients.list().iter().filter(|it| it.texts().user == *name) {
            // If that is the client itself, it gets its reply before.
            client.kill();
        }
    }
    call.out.count(count);
    Ok(())
}

fn getuser(call: &mut Call<'_, '_>) -> Result<(), Failure> {
    let Some(user) = call.server.acl.user(&text_at(call, 2)) else {
        call.out.null_array();
        return Ok(());
    };
    let rights = user.rights();
    call.out.map(6);
    call.out.text("flags");
    let flags = rights.flags(call.server.is_nopass(&user));
    call.out.set(flags.len());
    flags.iter().for_each(|flag| call.out.text(flag));
    call.out.text("passwords");
    call.out.array(rights.passwords.len());
    for password in &rights.passwords {
        call.out.text(&hex(password));
    }
    show(call, &rights.own);
    call.out.text("selectors");
    call.out.array(rights.selectors.len());
    for selector in &rights.selectors {
        call.out.map(3);
        show(call, selector);
    }
    Ok(())
}

fn show(call: &mut Call<'_, '_>, permissions: &Permissions) {
    let parts = [
        ("commands", permissions.describe_commands()),
        ("keys", permissions.describe_keys()),
        ("channels", permissions.describe_channels()),
    ];
    for (name, text) in parts {
        call.out.text(name);
        call.out.text(&text);
    }
}

fn cat(call: &mut Call<'_, '_>) -> Result<(), Failure> {
    let Some(name) = call.args.get(2) else {
        call.out.array(Categories::NAMES.len());
        Categories::NAMES.iter().for_each(|(name, _)| call.out.text(name));
        return Ok(());
    };
    let name = String::from_utf8_lossy(name).to_ascii_lowercase();
    let category = Categories::named(&name)
        .ok_or_else(|| Failure::new(format!("ERR Unknown category '{name}'")))?;
    let all: Vec<_> = TABLE.commands.iter().filter(|it| it.categories.has(category)).collect();
    call.out.array(all.len());
    all.iter().for_each(|it| call.out.text(it.name));
    Ok(())
}

fn genpass(call: &mut Call<'_, '_>) -> Result<(), Failure> {
    let bits = match call.args.get(2) {
        None => PASSWORD_BITS,
        Some(text) => {
            let bits = parse_integer(text).ok_or(Failure::NOT_INTEGER)?;
            let text = "ERR ACL GENPASS argument must be the number of bits for the output \
                        password, a positive number up to 4096";
            let bits = Some(bits).filter(|it| (1..=PASSWORD_BITS_MAX).contains(it));
            bits.and_then(|it| usize::try_from(it).ok()).ok_or(Failure::of(text))?
        }
    };
    let digits = bits.div_ceil(4);
    let mut bytes = vec![0; digits.div_ceil(2)];
    let failed = |_| Failure::of("ERR the system gives no random numbers");
    getrandom::fill(&mut bytes).map_err(failed)?;
    call.out.text(&hex(&bytes)[..digits]);
    Ok(())
}

fn no_file(_: &mut Call<'_, '_>) -> Result<(), Failure> {
    Err(Failure::of(
        "ERR This Redis instance is not configured to use an ACL file. You may want to specify \
         users via the ACL SETUSER command and then issue a CONFIG REWRITE (assuming you have a \
         Redis configuration file set) in order to store users in the Redis configuration.",
    ))
}

fn log(call: &mut Call<'_, '_>) -> Result<(), Failure> {
    if call.args.len() > 3 {
        return Err(crate::dispatch::wrong_arity(call.command));
    }
    if call.args.is(2, "reset") {
        call.server.acl.log().clear();
        call.out.ok();
        return Ok(());
    }
    let most = match call.args.len() {
        2 => LOG_ENTRIES,
        _ => usize::try_from(call.integer(2)?).unwrap_or_default(),
    };
    let now_ms = call.now_ms();
    let log = call.server.acl.log();
    call.out.array(log.entries().len().min(most));
    for entry in log.entries().take(most) {
        call.out.map(7);
        call.out.text("count");
        call.out.integer(entry.count as i64);
        call.out.text("reason");
        call.out.text(entry.reason.name());
        call.out.text("context");
        call.out.text(entry.context);
        call.out.text("object");
        call.out.bulk(&entry.object);
        call.out.text("username");
        call.out.text(&entry.user);
        call.out.text("age-seconds");
        call.out.double(now_ms.saturating_sub(entry.at_ms) as f64 / 1000.0);
        call.out.text("client-info");
        call.out.text(&entry.client);
    }
    Ok(())
}

fn dryrun(call: &mut Call<'_, '_>) -> Result<(), Failure> {
    let name = text_at(call, 2);
    let user = call.server.acl.user(&name);
    let user = user.ok_or_else(|| Failure::new(format!("ERR User '{name}' not found")))?;
    let args = call.args.from(3);
    let command: &'static Command = crate::dispatch::find(&TABLE, args)
        .map_err(|_| Failure::new(format!("ERR Command '{}' not found", text_at(call, 3))))?;
    if !command.takes(args.len()) {
        return Err(crate::dispatch::wrong_arity(command));
    }
    match user.rights().check(command, args) {
        Ok(()) => call.out.ok(),
        Err(denied) => call.out.text(&denied.sentence(command, args)),
    }
    Ok(())
}
