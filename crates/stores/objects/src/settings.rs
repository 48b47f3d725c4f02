//! Reads an address such as `az://container/folder?account=name&key_file=/etc/lazuli/key` or
//! `s3://bucket/folder?region=eu-west-1&key_id=ID&key_env=SECRET`.
//!
//! An address is shown to operators and written down. So it never holds a secret: it says in which file or in which
//! environment variable the key is.

use std::fmt;
use std::io::Read;
use std::path::PathBuf;

use lazuli_store::{Error, Result};

use crate::limits::{ADDRESS_BYTES_MAX, KEY_BYTES_MAX};

/// Which protocol the service speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Service {
    Azure,
    S3,
}

/// Where the secret key is. It is read when the objects are opened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Key {
    File(PathBuf),
    /// The name of an environment variable.
    Variable(String),
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    pub service: Service,
    /// The bucket, or the container of blobs.
    pub bucket: String,
    /// What names of objects begin with.
    pub folder: String,
    /// The account, or the id of the key.
    pub account: String,
    pub key: Key,
    pub region: Option<String>,
    /// The URL of the service, if it is not the provider's own.
    pub endpoint: Option<String>,
    /// The certificates to trust, if not those of the system.
    pub ca_file: Option<PathBuf>,
}

fn wrong(what: impl fmt::Display) -> Error {
    Error::invalid("bad-object-address", what)
}

impl Settings {
    /// Whether this is an address of objects.
    pub fn is_address(text: &str) -> bool {
        ["az://", "s3://"].iter().any(|scheme| text.starts_with(scheme))
    }

    /// What an address says. No message of an error repeats the address, which may hold a key by mistake.
    pub fn parse(address: &str) -> Result<Self> {
        if address.len() > ADDRESS_BYTES_MAX {
            return Err(wrong(format!("an address may have {ADDRESS_BYTES_MAX} bytes")));
        }
        let (service, rest) = match (address.strip_prefix("az://"), address.strip_prefix("s3://")) {
            (Some(rest), _) => (Service::Azure, rest),
            (_, Some(rest)) => (Service::S3, rest),
            _ => return Err(wrong("an address of objects begins with az:// or s3://")),
        };
        let (path, parameters) = rest.split_once('?').unwrap_or((rest, ""));
        let (bucket, folder) = path.split_once('/').unwrap_or((path, ""));
        if !is_bucket(bucket) {
            return Err(wrong(
                "a bucket or container has 3 to 63 lower-case letters, digits, dashes and dots",
            ));
        }
        let folder = folder.trim_matches('/');
        let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_./".contains(c);
        if !folder.chars().all(is_plain) || folder.split('/').any(|part| part.starts_with('.')) {
            return Err(wrong("a folder has letters, digits, and -, _ and . inside of its parts"));
        }
        let (mut account, mut key) = (None, None);
        let (mut region, mut endpoint, mut ca_file) = (None, None, None);
        for parameter in parameters.split('&').filter(|it| !it.is_empty()) {
            let Some((name, value)) = parameter.split_once('=') else {
                return Err(wrong("a parameter of an address has a value: name=value"));
            };
            let value = decoded(value)?;
            match (name, service) {
                ("account", Service::Azure) | ("key_id", Service::S3) => account = Some(value),
                ("key_file", _) => key = Some(Key::File(PathBuf::from(value))),
                ("key_env", _) => key = Some(Key::Variable(value)),
                ("region", Service::S3) => region = Some(value),
                ("endpoint", _) => endpoint = Some(checked_endpoint(value)?),
                ("ca_file", _) => ca_file = Some(PathBuf::from(value)),
                _ => return Err(wrong(UNKNOWN)),
            }
        }
        let account = account.filter(|it| !it.is_empty()).ok_or_else(|| match service {
            Service::Azure => wrong("the address names no account: account=NAME"),
            Service::S3 => wrong("the address names no key: key_id=ID"),
        })?;
        let key = key.ok_or_else(|| {
            wrong("the address does not say where the key is: key_file=PATH or key_env=NAME")
        })?;
        let (bucket, folder) = (bucket.to_owned(), folder.to_owned());
        Ok(Self { service, bucket, folder, account, key, region, endpoint, ca_file })
    }

    /// The bucket and the folder in it. The same objects are there whichever endpoint leads to them.
    pub fn place(&self) -> String {
        let scheme = match self.service {
            Service::Azure => "az",
            Service::S3 => "s3",
        };
        format!("{scheme}://{}/{}", self.bucket, self.folder)
    }
}

const UNKNOWN: &str = "a parameter of the address is unknown; az:// knows account, s3:// knows \
     key_id and region, and both know key_file, key_env, endpoint and ca_file";

fn is_bucket(name: &str) -> bool {
    let is_known = |byte: u8| {
        byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-' || byte == b'.'
    };
    (3..=63).contains(&name.len())
        && name.bytes().all(is_known)
        && name.as_bytes()[0].is_ascii_alphanumeric()
}

fn checked_endpoint(text: String) -> Result<String> {
    let rest = text.strip_prefix("https://").or_else(|| text.strip_prefix("http://"));
    match rest {
        Some(rest) if !rest.is_empty() && !rest.contains(['@', '?', '#', ' ']) => Ok(text),
        _ => Err(wrong("an endpoint is an http:// or https:// URL without user and query")),
    }
}

fn decoded(text: &str) -> Result<String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        bytes.push(match byte {
            b'%' => {
                let digits = [rest.next(), rest.next()].map(|it| (it? as char).to_digit(16));
                let [Some(high), Some(low)] = digits else {
                    return Err(wrong("a % in an address is followed by two hexadecimal digits"));
                };
                (high * 16 + low) as u8
            }
            byte => byte,
        });
    }
    match String::from_utf8(bytes) {
        Ok(text) if !text.contains('\0') => Ok(text),
        _ => Err(wrong("an address is UTF-8 without NUL")),
    }
}

impl Key {
    pub(crate) fn read(&self) -> Result<String> {
        let failed = |what: String| Error::invalid("no-object-key", what);
        let text = match self {
            Self::File(path) => {
                let mut text = String::new();
                let read = std::fs::File::open(path)
                    .and_then(|it| it.take(KEY_BYTES_MAX).read_to_string(&mut text));
                let shown = path.display();
                read.map_err(|error| failed(format!("key file {shown}: {error}")))?;
                text
            }
            Self::Variable(name) => std::env::var(name)
                .map_err(|_| failed(format!("environment variable {name} is not set")))?,
        };
        match text.trim() {
            "" => Err(failed("the key is empty".to_owned())),
            key => Ok(key.to_owned()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_names_bucket_folder_account_and_where_the_key_is() {
        let read = Settings::parse(
            "az://blocks/fleet-1/a?account=me&endpoint=http://127.0.0.1:10000/me&key_env=KEY",
        );
        let read = read.unwrap();
        assert_eq!((read.service, &*read.bucket), (Service::Azure, "blocks"));
        assert_eq!((&*read.folder, &*read.account), ("fleet-1/a", "me"));
        assert_eq!(read.key, Key::Variable("KEY".to_owned()));
        assert_eq!(read.endpoint.as_deref(), Some("http://127.0.0.1:10000/me"));
        assert_eq!(read.place(), "az://blocks/fleet-1/a");
        let read = Settings::parse("s3://bucket?key_id=id&key_file=%2Fk&region=eu-west-1").unwrap();
        assert_eq!(read.key, Key::File("/k".into()));
        assert_eq!((read.region.as_deref(), &*read.place()), (Some("eu-west-1"), "s3://bucket/"));
    }

    #[test]
    fn what_is_no_address_is_refused_and_not_repeated() {
        for address in [
            "",
            "http://bucket/a",
            "az://",
            "az://UPPER?account=a&key_env=K",
            "az://bucket?key_env=K",
            "az://bucket?account=a",
            "az://bucket?account=a&key=hunter2",
            "az://bucket?account=a&key_env=K&region=x",
            "az://bucket/../x?account=a&key_env=K",
            "az://bucket?account=a&key_env=K&endpoint=ftp://x",
            "az://bucket?account=a&key_env=K&endpoint=http://me:hunter2@x",
            "s3://bucket?account=a&key_env=K",
            "s3://bucket?key_id=a&key_env=%zz",
        ] {
            let refused = Settings::parse(address).unwrap_err();
            assert_eq!(refused.code(), "bad-object-address", "{address}");
            assert!(!format!("{refused:?}").contains("hunter2"));
        }
    }

    #[test]
    fn a_key_that_is_not_there_is_told() {
        let missing = Key::Variable("LAZULI_NO_SUCH_VARIABLE".to_owned());
        assert_eq!(missing.read().unwrap_err().code(), "no-object-key");
    }
}
