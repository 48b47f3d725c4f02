//! Shared access signatures for one queue, one container, or what is in it: signed with the account's key, or with a key
//! that was made for a user for a while.
//!
//! The signed text grew from version to version, so the version that a signature names decides which text is compared.

use std::borrow::Cow;

use super::bearer::Identity;
use super::delegation::DelegatedKey;
use super::sas::Fields;
use super::{Keys, Refusal};
use crate::acl::StoredPolicy;
use lazuli_http::message::Request;
use lazuli_http::uri::{Query, percent_decode};

/// From these versions on the text has in it: the headers of the answer; the name of the service; addresses and
/// protocols; the kind of resource and the time of a snapshot; who is authorized; the scope of encryption; the user who
/// may use it; headers and parameters of the request.
const VERSION_WITH_ANSWER_HEADERS: &str = "2013-08-15";
const VERSION_WITH_SERVICE: &str = "2015-02-21";
const VERSION_WITH_ADDRESSES: &str = "2015-04-05";
const VERSION_WITH_RESOURCE: &str = "2018-11-09";
const VERSION_WITH_AGENTS: &str = "2020-02-10";
const VERSION_WITH_SCOPE: &str = "2020-12-06";
const VERSION_WITH_USER: &str = "2025-07-05";
const VERSION_WITH_REQUEST: &str = "2026-04-06";

/// The most headers or parameters that a signature can ask for.
const ASKED_MAX: usize = 32;

/// What a request is about, as signatures name it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Resource<'a> {
    Queue(&'a str),
    Container(&'a str),
    /// `at` is the time of the snapshot or the id of the version, if it is about one.
    Blob {
        container: &'a str,
        blob: &'a str,
        at: Option<&'a str>,
    },
}

/// How much a signature covers, beginning at the resource that the request names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    Queue,
    /// A container with everything in it.
    Container,
    /// A folder with everything below it.
    Directory,
    Blob,
    Snapshot,
    Version,
}

/// What a signature grants, after it was verified.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServiceGrant {
    pub scope: Scope,
    pub permissions: String,
    /// Headers that the answer must have, with their values.
    pub answer_headers: Vec<(&'static str, String)>,
    pub encryption_scope: Option<String>,
}

const ANSWER_HEADERS: [(&str, &str); 5] = [
    ("rscc", "cache-control"),
    ("rscd", "content-disposition"),
    ("rsce", "content-encoding"),
    ("rscl", "content-language"),
    ("rsct", "content-type"),
];

/// The policy that a signature names: what must be looked up before it can be checked.
pub fn policy<'q>(query: &'q Query<'q>) -> Option<&'q str> {
    query.get("si").filter(|policy| !policy.is_empty())
}

/// Verifies a signature. The policy is the one that it names; naming one that does not exist is no use. The identity is
/// that of the token that came with it, if one did.
pub fn check(
    request: &Request,
    query: &Query<'_>,
    account: &str,
    keys: &Keys,
    resource: Resource<'_>,
    policy: Option<&StoredPolicy>,
    identity: Option<&Identity>,
) -> Result<ServiceGrant, Refusal> {
    let fields = Fields(query);
    let version = fields.version()?;
    let (scope, name) = scope(&fields, resource)?;
    let text = Text { request, fields: &fields, version, scope, resource };
    let named = canonical(account, version, scope, &name);
    match DelegatedKey::named(query) {
        None => fields.verify(&text.of_account(&named), keys)?,
        Some(key) => {
            if !fields.get("si").is_empty() {
                return Err(Refusal::Malformed);
            }
            fields.verify(&text.of_user(&named, &key), &key.derive(keys))?;
            key.check(request, service_letter(scope), fields.get("sduoid"), identity)?;
        }
    }
    if !fields.get("si").is_empty() && policy.is_none() {
        return Err(Refusal::UnknownPolicy);
    }
    let terms = fields.terms(policy)?;
    terms.check(request)?;
    let given = ANSWER_HEADERS.map(|(field, header)| (header, fields.get(field).to_owned()));
    let encryption_scope = Some(fields.get("ses")).filter(|scope| !scope.is_empty());
    Ok(ServiceGrant {
        scope,
        permissions: terms.permissions,
        answer_headers: given.into_iter().filter(|(_, value)| !value.is_empty()).collect(),
        encryption_scope: encryption_scope.map(str::to_owned),
    })
}

/// How much is covered, and the name of it.
fn scope<'r>(
    fields: &Fields<'_>,
    resource: Resource<'r>,
) -> Result<(Scope, Cow<'r, str>), Refusal> {
    Ok(match (fields.get("sr"), resource) {
        (_, Resource::Queue(queue)) => (Scope::Queue, queue.into()),
        ("c", Resource::Container(container) | Resource::Blob { container, .. }) => {
            (Scope::Container, container.into())
        }
        ("b", Resource::Blob { container, blob, .. }) => {
            (Scope::Blob, format!("{container}/{blob}").into())
        }
        ("bs", Resource::Blob { container, blob, .. }) => {
            (Scope::Snapshot, format!("{container}/{blob}").into())
        }
        ("bv", Resource::Blob { container, blob, .. }) => {
            (Scope::Version, format!("{container}/{blob}").into())
        }
        ("d", Resource::Blob { container, blob, .. }) => {
            let depth = fields.get("sdd").parse().map_err(|_| Refusal::Malformed)?;
            let folder = folder(blob, depth).ok_or(Refusal::WrongSignature)?;
            (Scope::Directory, format!("{container}/{folder}").into())
        }
        // It is for something in the container, and the request is about the container itself.
        ("b" | "bs" | "bv" | "d", Resource::Container(_)) => return Err(Refusal::WrongSignature),
        _ => return Err(Refusal::Malformed),
    })
}

/// The first names of a path, as many as the folder is deep.
fn folder(blob: &str, depth: usize) -> Option<&str> {
    let ends = blob.match_indices('/').map(|(at, _)| at).chain([blob.len()]);
    match depth.checked_sub(1) {
        Some(last) => ends.into_iter().nth(last).map(|end| &blob[..end]),
        None => Some(""),
    }
}

fn service_letter(scope: Scope) -> char {
    if scope == Scope::Queue { 'q' } else { 'b' }
}

fn canonical(account: &str, version: &str, scope: Scope, name: &str) -> String {
    match (version >= VERSION_WITH_SERVICE, scope) {
        (false, _) => format!("/{account}/{name}"),
        (true, Scope::Queue) => format!("/queue/{account}/{name}"),
        (true, _) => format!("/blob/{account}/{name}"),
    }
}

/// The texts of all versions.
struct Text<'t> {
    request: &'t Request,
    fields: &'t Fields<'t>,
    version: &'t str,
    scope: Scope,
    resource: Resource<'t>,
}

impl Text<'_> {
    fn of_account(&self, named: &str) -> String {
        let get = |name| self.fields.get(name);
        let mut text = vec![get("sp"), get("st"), get("se"), named, get("si")];
        if self.version >= VERSION_WITH_ADDRESSES {
            text.extend([get("sip"), get("spr")]);
        }
        text.push(self.version);
        if self.scope != Scope::Queue {
            self.push_resource(&mut text);
            self.push_answer_headers(&mut text);
        }
        text.join("\n")
    }

    fn of_user(&self, named: &str, key: &DelegatedKey<'_>) -> String {
        let get = |name| self.fields.get(name);
        let is_queue = self.scope == Scope::Queue;
        let mut text = vec![get("sp"), get("st"), get("se"), named];
        text.extend(key.fields());
        if self.version >= VERSION_WITH_AGENTS && !is_queue {
            text.extend(["saoid", "suoid", "scid"].map(get));
        }
        if self.version >= VERSION_WITH_USER {
            text.extend([key.delegated_tenant, get("sduoid")]);
        }
        text.extend([get("sip"), get("spr"), self.version]);
        let (headers, parameters) = (self.asked_headers(), self.asked_parameters());
        if !is_queue {
            self.push_resource(&mut text);
            if self.version >= VERSION_WITH_REQUEST {
                text.extend([headers.as_str(), parameters.as_str()]);
            }
            self.push_answer_headers(&mut text);
        }
        text.join("\n")
    }

    fn push_resource<'t>(&'t self, text: &mut Vec<&'t str>) {
        if self.version >= VERSION_WITH_RESOURCE {
            let at = match self.resource {
                Resource::Blob { at: Some(at), .. } if self.scope != Scope::Container => at,
                _ => "",
            };
            text.extend([self.fields.get("sr"), at]);
        }
        if self.version >= VERSION_WITH_SCOPE {
            text.push(self.fields.get("ses"));
        }
    }

    fn push_answer_headers<'t>(&'t self, text: &mut Vec<&'t str>) {
        if self.version >= VERSION_WITH_ANSWER_HEADERS {
            text.extend(ANSWER_HEADERS.map(|(field, _)| self.fields.get(field)));
        }
    }

    /// The headers that the request must have: their names are in the signature, and their values are signed.
    fn asked_headers(&self) -> String {
        let lines = asked(self.fields.get("srh")).map(|name| {
            let value = self.request.header(&name).unwrap_or_default();
            format!("{name}:{value}\n")
        });
        lines.collect()
    }

    /// The same for parameters of its address.
    fn asked_parameters(&self) -> String {
        let lines = asked(self.fields.get("srq")).map(|name| {
            let value = self.fields.get(&name);
            format!("\n{name}:{value}")
        });
        lines.collect()
    }
}

fn asked(names: &str) -> impl Iterator<Item = Cow<'_, str>> {
    let names = names.split(',').filter(|name| !name.is_empty()).take(ASKED_MAX);
    names.map(|name| percent_decode(name).unwrap_or(name.into()))
}

#[cfg(test)]
#[path = "service_sas_tests.rs"]
mod tests;
