//! Who may do what: tokens that a connection has shown, and the keys that sign them.

use lazuli_azure::auth::bearer::{self, TokenFault, Tokens};
use lazuli_azure::auth::namespace_sas::Token;
use lazuli_azure::auth::{Accounts, Key, Keys};
use lazuli_bus_shape::AuthorizationRule;

use crate::error::{Fault, Result};
use crate::{Front, address, now_ms};

/// The rule that every namespace has: its keys are those of the account, and may do everything.
pub(crate) const ROOT_RULE: &str = "RootManageSharedAccessKey";

/// Whom a token of an identity provider is made for: the services by address, and by the ids they are registered under.
const AUDIENCES: [&str; 4] = [
    "https://servicebus.azure.net",
    "https://eventhubs.azure.net",
    "80a10ef9-8168-493d-abf9-3297c4ef6e3c",
    "80369ed6-5f11-4dd9-bef3-692475845e77",
];
/// Behind the name of a namespace in its address.
const CLOUDS: [&str; 4] = [
    "servicebus.windows.net",
    "servicebus.chinacloudapi.cn",
    "servicebus.usgovcloudapi.net",
    "servicebus.cloudapi.de",
];

/// The key that the emulators of the service publish. It opens the account of development as long as that one has its own
/// published key.
pub struct Published {
    pub account: &'static str,
    /// The published key of the account.
    pub key: Key,
    /// The one that clients of this service know instead.
    pub other: Key,
}

impl Published {
    /// The account, as long as it has its published key.
    fn in_force(&self, accounts: &Accounts) -> Option<String> {
        const PROBE: &str = "is this key in force?";
        let keys = accounts.get(self.account)?;
        keys.verify(PROBE, &self.key.sign(PROBE)).then(|| self.account.to_owned())
    }
}

/// What a token allows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Right {
    Send,
    Listen,
    Manage,
}

impl Right {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Send => "Send",
            Self::Listen => "Listen",
            Self::Manage => "Manage",
        }
    }
}

/// A token that was shown and is good.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Claim {
    /// The account.
    pub(crate) namespace: String,
    /// What it is for, in lower case, with everything below it; empty means the whole namespace.
    pub(crate) path: String,
    pub(crate) rights: Vec<Right>,
    pub(crate) expires_ms: u64,
}

impl Claim {
    /// Whether it is for this path, whatever it allows there.
    fn covers(&self, path: &str) -> bool {
        let path = path.to_lowercase();
        let below = path.strip_prefix(&*self.path);
        self.path.is_empty() || below.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    }
}

/// The namespace in which the tokens allow something, or why not.
pub(crate) fn allowed(claims: &[Claim], path: &str, right: Right) -> Result<String> {
    let now = now_ms();
    let mut good = claims.iter().filter(|claim| claim.expires_ms > now && claim.covers(path));
    let has =
        |claim: &&Claim| claim.rights.contains(&right) || claim.rights.contains(&Right::Manage);
    good.find(has).map(|claim| claim.namespace.clone()).ok_or_else(|| {
        let right = right.name();
        Fault::unauthorized(format!(
            "Unauthorized access. '{right}' claim(s) are required to perform this operation. \
             Resource: 'sb://{path}'."
        ))
    })
}

/// Until when the tokens allow something, if any of them ever did.
pub(crate) fn allowed_until_ms(claims: &[Claim], path: &str, right: Right) -> Option<u64> {
    let has =
        |claim: &&Claim| claim.rights.contains(&right) || claim.rights.contains(&Right::Manage);
    let covering = claims.iter().filter(|claim| claim.covers(path)).filter(has);
    covering.map(|claim| claim.expires_ms).max()
}

/// A token on its way in, and over which connection it came.
pub(crate) struct Shown<'a> {
    pub(crate) token: &'a str,
    /// What it is said to be for: `sb://host/entity`.
    pub(crate) audience: &'a str,
    /// Whether the connection is one over TLS.
    pub(crate) secure: bool,
}

/// Checks a token. What kind it is shows in its text; some clients say otherwise beside it.
pub(crate) async fn check(front: &Front, shown: &Shown<'_>) -> Result<Claim> {
    let invalid = || Fault::unauthorized("InvalidSignature: The token has an invalid signature.");
    let Some(token) = Token::parse(shown.token) else { return by_identity(front, shown) };
    let expires_ms = token.expires_s.saturating_mul(1_000);
    if expires_ms <= now_ms() {
        return Err(Fault::unauthorized("ExpiredToken: The token is expired."));
    }
    let path = path_of(&token.resource);
    if token.rule == ROOT_RULE {
        let namespace = by_root(front, &token).ok_or_else(invalid)?;
        let rights = vec![Right::Manage, Right::Send, Right::Listen];
        return Ok(Claim { namespace, path, rights, expires_ms });
    }
    match by_entity(front, &token, &path, expires_ms).await {
        Some(claim) => Ok(claim),
        None => by_namespace(front, &token, path, expires_ms).await.ok_or_else(invalid),
    }
}

/// The path that a resource names, with everything below it.
fn path_of(resource: &str) -> String {
    let path = address::path(resource).to_lowercase();
    let entity = path.strip_suffix("$management").map(|path| path.trim_end_matches('/'));
    entity.unwrap_or(&path).to_owned()
}

/// A token of an identity provider, which is taken at its word where the operator switched that on, and over TLS only.
fn by_identity(front: &Front, shown: &Shown<'_>) -> Result<Claim> {
    let refused =
        |fault: TokenFault| Err(Fault::unauthorized(format!("InvalidToken: {}", fault.detail())));
    if front.tokens == Tokens::Off {
        return refused(TokenFault::NotSupported);
    }
    if !shown.secure {
        return refused(TokenFault::NotSecure);
    }
    let host = shown.audience.split("://").nth(1).unwrap_or_default();
    let label = host.split(['.', ':', '/']).next().unwrap_or_default();
    let is_ours = |audience: &str| {
        let audience = audience.trim_end_matches('/');
        let host = audience.strip_prefix("https://").unwrap_or(audience);
        AUDIENCES.contains(&audience)
            || host.split_once('.').is_some_and(|(name, rest)| {
                name.eq_ignore_ascii_case(label) && CLOUDS.contains(&rest)
            })
    };
    let identity = match bearer::check_text(shown.token, now_ms() / 1_000, is_ours) {
        Ok(identity) => identity,
        Err(fault) => return refused(fault),
    };
    // A token names no account: it is for the one whose name the host has, or else for the only one.
    let mut names = front.accounts.names();
    let named = names.iter().position(|name| name.eq_ignore_ascii_case(label));
    let namespace = match named {
        Some(at) => names.swap_remove(at),
        None if names.len() == 1 => names.swap_remove(0),
        None => return refused(TokenFault::OtherAudience),
    };
    let rights = vec![Right::Manage, Right::Send, Right::Listen];
    let expires_ms = identity.expires_s.saturating_mul(1_000);
    Ok(Claim { namespace, path: path_of(shown.audience), rights, expires_ms })
}

/// The account whose key signed a token.
fn by_root(front: &Front, token: &Token) -> Option<String> {
    if let Some(published) = &front.published {
        let other = Keys { first: published.other.clone(), second: None };
        if token.is_signed_by(&other) {
            return published.in_force(&front.accounts);
        }
    }
    front.accounts.find(|keys| token.is_signed_by(keys))
}

/// A token that is signed by a rule of the queue or topic that it is for.
async fn by_entity(front: &Front, token: &Token, path: &str, expires_ms: u64) -> Option<Claim> {
    let name = path.split("/subscriptions/").next().unwrap_or(path);
    for namespace in front.accounts.names() {
        let Ok(entity) = front.bus.entity(&namespace, name).await else { continue };
        let rules = &entity.description.authorization_rules;
        let is_it = |rule: &&AuthorizationRule| {
            rule.name == token.rule && token.is_signed_by(&keys_of(rule))
        };
        let Some(rule) = rules.iter().find(is_it) else { continue };
        let (path, rights) = (path.to_owned(), rights_of(rule));
        return Some(Claim { namespace, path, rights, expires_ms });
    }
    None
}

/// A token that is signed by a rule of a whole namespace.
async fn by_namespace(
    front: &Front,
    token: &Token,
    path: String,
    expires_ms: u64,
) -> Option<Claim> {
    for namespace in front.accounts.names() {
        let Ok(Some(rule)) = front.bus.namespace_rule(&namespace, &token.rule).await else {
            continue;
        };
        if token.is_signed_by(&keys_of(&rule)) {
            return Some(Claim { namespace, path, rights: rights_of(&rule), expires_ms });
        }
    }
    None
}

fn keys_of(rule: &AuthorizationRule) -> Keys {
    let second = Some(Key::from_text(&rule.secondary_key));
    Keys { first: Key::from_text(&rule.primary_key), second }
}

fn rights_of(rule: &AuthorizationRule) -> Vec<Right> {
    let named = |right: &Right| rule.rights.iter().any(|name| name == right.name());
    [Right::Send, Right::Listen, Right::Manage].into_iter().filter(named).collect()
}

/// The claim of a client that shows the name of a rule and its key when it connects.
pub(crate) fn by_password(front: &Front, rule: &str, key: &str) -> Option<Claim> {
    const PROBE: &str = "is this the key?";
    if rule != ROOT_RULE {
        return None;
    }
    let signed = Key::from_text(key).sign_by_text(PROBE);
    let is_it = |keys: &Keys| keys.verify_by_text(PROBE, &signed);
    let published = front
        .published
        .as_ref()
        .filter(|published| is_it(&Keys { first: published.other.clone(), second: None }));
    let namespace = match published {
        Some(published) => published.in_force(&front.accounts),
        None => front.accounts.find(is_it),
    }?;
    let rights = vec![Right::Manage, Right::Send, Right::Listen];
    Some(Claim { namespace, path: String::new(), rights, expires_ms: u64::MAX })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn claim(path: &str, rights: &[Right], expires_ms: u64) -> Claim {
        Claim { namespace: "dev".into(), path: path.into(), rights: rights.to_vec(), expires_ms }
    }

    #[test]
    fn a_claim_is_good_for_its_path_its_rights_and_its_time() {
        let is = |claim: Claim, path: &str, right| allowed(&[claim], path, right).is_ok();
        let all = || claim("", &[Right::Manage], u64::MAX);
        assert!(is(all(), "q", Right::Send) && is(all(), "", Right::Manage));
        let one = || claim("q1", &[Right::Listen], u64::MAX);
        assert!(is(one(), "Q1", Right::Listen) && is(one(), "q1/$DeadLetterQueue", Right::Listen));
        assert!(!is(one(), "q1", Right::Send) && !is(one(), "q11", Right::Listen));
        assert!(!is(one(), "q", Right::Listen) && !is(one(), "", Right::Listen));
        assert!(!is(claim("", &[Right::Manage], 1), "q", Right::Send));
        assert!(allowed(&[], "q", Right::Send).is_err());
    }
}
