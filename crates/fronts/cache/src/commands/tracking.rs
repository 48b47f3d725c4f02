//! CLIENT TRACKING, CACHING, TRACKINGINFO and GETREDIR: clients that keep copies of keys.

use std::collections::BTreeSet;

use lazuli_resp::parse_integer;

use crate::call::Call;
use crate::command::Run;
use crate::failure::Failure;
use crate::limits::{PREFIX_BYTES_MAX, PREFIXES_MAX};
use crate::tracking::{Mode, Tracking};

pub(super) const RUNS: &[(&str, Run)] = &[
    ("client|caching", caching),
    ("client|getredir", getredir),
    ("client|tracking", tracking),
    ("client|trackinginfo", trackinginfo),
];

/// The words of CLIENT TRACKING behind ON or OFF.
#[derive(Default)]
struct Options {
    redirect: Option<u64>,
    is_broadcast: bool,
    is_opt_in: bool,
    is_opt_out: bool,
    skips_own: bool,
    prefixes: Vec<Box<[u8]>>,
}

impl Options {
    fn parse(call: &Call<'_, '_>) -> Result<Self, Failure> {
        let (args, mut found, mut at) = (call.args, Self::default(), 3);
        while at < args.len() {
            let has_more = at + 1 < args.len();
            if args.is(at, "redirect") && has_more {
                if found.redirect.is_some() {
                    let text = "ERR A client can only redirect to a single other client";
                    return Err(Failure::of(text));
                }
                let id = parse_integer(args.at(at + 1)).ok_or(Failure::NOT_INTEGER)?;
                let text = "ERR The client ID you want redirect to does not exist";
                let id = u64::try_from(id).ok().filter(|it| call.server.clients.get(*it).is_some());
                found.redirect = Some(id.ok_or(Failure::of(text))?);
                at += 1;
            } else if args.is(at, "bcast") {
                found.is_broadcast = true;
            } else if args.is(at, "optin") {
                found.is_opt_in = true;
            } else if args.is(at, "optout") {
                found.is_opt_out = true;
            } else if args.is(at, "noloop") {
                found.skips_own = true;
            } else if args.is(at, "prefix") && has_more {
                found.prefixes.push(args.at(at + 1).into());
                at += 1;
            } else {
                return Err(Failure::SYNTAX);
            }
            at += 1;
        }
        Ok(found)
    }

    /// What these options make of what a client has asked for before.
    fn applied(&self, before: Option<&Tracking>) -> Result<Tracking, Failure> {
        if !self.is_broadcast && !self.prefixes.is_empty() {
            return Err(Failure::of("ERR PREFIX option requires BCAST mode to be enabled"));
        }
        if before.is_some_and(|it| (it.mode == Mode::Broadcast) != self.is_broadcast) {
            return Err(Failure::of(
                "ERR You can't switch BCAST mode on/off before disabling tracking for this client, \
                 and then re-enabling it with a different mode.",
            ));
        }
        let opts = (self.is_opt_in, self.is_opt_out);
        if self.is_broadcast && opts != (false, false) {
            return Err(Failure::of("ERR OPTIN and OPTOUT are not compatible with BCAST"));
        }
        let mode = match opts {
            (true, true) => {
                return Err(Failure::of("ERR You can't specify both OPTIN mode and OPTOUT mode"));
            }
            _ if self.is_broadcast => Mode::Broadcast,
            (true, false) => Mode::OptIn,
            (false, true) => Mode::OptOut,
            (false, false) => Mode::Read,
        };
        let is_other = |it: &&Tracking| match it.mode {
            Mode::OptIn => mode == Mode::OptOut,
            Mode::OptOut => mode == Mode::OptIn,
            Mode::Read | Mode::Broadcast => false,
        };
        if before.filter(is_other).is_some() {
            return Err(Failure::of(
                "ERR You can't switch OPTIN/OPTOUT mode before disabling tracking for this client, \
                 and then re-enabling it with a different mode.",
            ));
        }
        let prefixes = self.all_prefixes(before)?;
        let (skips_own, redirect) = (self.skips_own, self.redirect);
        Ok(Tracking { mode, prefixes, skips_own, redirect, is_broken: false, caching: false })
    }

    fn all_prefixes(&self, before: Option<&Tracking>) -> Result<BTreeSet<Box<[u8]>>, Failure> {
        let mut all: BTreeSet<Box<[u8]>> = before.map_or(BTreeSet::new(), |it| it.prefixes.clone());
        let overlap = |one: &[u8], other: &[u8]| one.starts_with(other) || other.starts_with(one);
        let refuse = |one: &[u8], what: &str, other: &[u8]| {
            let (one, other) = (String::from_utf8_lossy(one), String::from_utf8_lossy(other));
            let text = "Prefixes for a single client must not overlap.";
            Failure::new(format!(
                "ERR Prefix '{one}' overlaps with {what} prefix '{other}'. {text}"
            ))
        };
        for (at, prefix) in self.prefixes.iter().enumerate() {
            if let Some(known) = all.iter().find(|it| overlap(it, prefix)) {
                return Err(refuse(prefix, "an existing", known));
            }
            let mut others = self.prefixes[at + 1..].iter();
            if let Some(other) = others.find(|it| overlap(it, prefix)) {
                return Err(refuse(prefix, "another provided", other));
            }
        }
        all.extend(self.prefixes.iter().cloned());
        if self.is_broadcast && all.is_empty() {
            all.insert(Box::default());
        }
        if all.len() > PREFIXES_MAX || all.iter().any(|it| it.len() > PREFIX_BYTES_MAX) {
            return Err(Failure::of(
                "ERR a client may have up to 256 prefixes of up to 4096 bytes",
            ));
        }
        Ok(all)
    }
}

fn tracking(call: &mut Call<'_, '_>) -> Result<(), Failure> {
    let options = Options::parse(call)?;
    let client = call.session.client.clone();
    if call.args.is(2, "off") {
        call.server.track_no_more(&client);
    } else if call.args.is(2, "on") {
        let before = client.tracking().clone();
        call.server.track(&client, options.applied(before.as_ref())?);
    } else {
        return Err(Failure::SYNTAX);
    }
    call.out.ok();
    Ok(())
}

fn caching(call: &mut Call<'_, '_>) -> Result<(), Failure> {
    let mut held = call.session.client.tracking();
    let found = held.as_mut().filter(|it| matches!(it.mode, Mode::OptIn | Mode::OptOut));
    let tracking = found.ok_or(Failure::of(
        "ERR CLIENT CACHING can be called only when the client is in tracking mode with OPTIN or \
         OPTOUT mode enabled",
    ))?;
    let wanted = match (call.args.is(2, "yes"), call.args.is(2, "no")) {
        (true, _) => Mode::OptIn,
        (_, true) => Mode::OptOut,
        _ => return Err(Failure::SYNTAX),
    };
    if tracking.mode != wanted {
        return Err(Failure::of(match wanted {
            Mode::OptIn => {
                "ERR CLIENT CACHING YES is only valid when tracking is enabled in OPTIN mode."
            }
            _ => "ERR CLIENT CACHING NO is only valid when tracking is enabled in OPTOUT mode.",
        }));
    }
    tracking.caching = true;
    drop(held);
    call.out.ok();
    Ok(())
}

/// The client that gets the messages: zero is itself, and -1 that there are none.
fn redirect(tracking: Option<&Tracking>) -> i64 {
    tracking.map_or(-1, |it| it.redirect.map_or(0, |id| id as i64))
}

fn getredir(call: &mut Call<'_, '_>) -> Result<(), Failure> {
    let redirect = redirect(call.session.client.tracking().as_ref());
    call.out.integer(redirect);
    Ok(())
}

fn trackinginfo(call: &mut Call<'_, '_>) -> Result<(), Failure> {
    let tracking = call.session.client.tracking().clone();
    let mut flags = vec![if tracking.is_some() { "on" } else { "off" }];
    if let Some(tracking) = &tracking {
        flags.extend(match (tracking.mode, tracking.caching) {
            (Mode::Read, _) => &[][..],
            (Mode::Broadcast, _) => &["bcast"],
            (Mode::OptIn, false) => &["optin"],
            (Mode::OptIn, true) => &["optin", "caching-yes"],
            (Mode::OptOut, false) => &["optout"],
            (Mode::OptOut, true) => &["optout", "caching-no"],
        });
        if tracking.skips_own {
            flags.push("noloop");
        }
        if tracking.is_broken {
            flags.push("broken_redirect");
        }
    }
    call.out.map(3);
    call.out.text("flags");
    call.out.set(flags.len());
    flags.iter().for_each(|flag| call.out.text(flag));
    call.out.text("redirect");
    call.out.integer(redirect(tracking.as_ref()));
    call.out.text("prefixes");
    // One prefix of nothing stands for all keys and is not shown.
    let prefixes = tracking.map(|it| it.prefixes).unwrap_or_default();
    let shown: Vec<_> = prefixes.iter().filter(|it| !it.is_empty()).collect();
    call.out.array(shown.len());
    shown.iter().for_each(|prefix| call.out.bulk(prefix));
    Ok(())
}
