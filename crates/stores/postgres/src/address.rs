//! Reads an address such as `postgres://user@host:5432,other:5432/database?sslmode=verify-full&schema=lazuli`.
//!
//! An address is written down in the catalog, in settings and in logs. So it never holds a password: it says in which file or
//! in which environment variable the password is.

use std::fmt;
use std::path::PathBuf;

use lazuli_store::{Error, Result};

use crate::limits::{ADDRESS_BYTES_MAX, CONNECTIONS_MAX, HOSTS_MAX, SCHEMA_BYTES_MAX};
use crate::settings::{Host, Password, Settings, TlsMode};

const SCHEMES: [&str; 2] = ["postgres://", "postgresql://"];
const PORT: u16 = 5432;

fn wrong(what: impl fmt::Display) -> Error {
    Error::invalid("bad-database-address", what)
}

/// What an address says. No message of an error repeats the address, which may hold a password by mistake.
pub(crate) fn parse(address: &str) -> Result<Settings> {
    if address.len() > ADDRESS_BYTES_MAX {
        return Err(wrong(format!("an address may have {ADDRESS_BYTES_MAX} bytes")));
    }
    let Some(rest) = SCHEMES.iter().find_map(|scheme| address.strip_prefix(scheme)) else {
        return Err(wrong("an address of a database begins with postgres://"));
    };
    let (rest, parameters) = rest.split_once('?').unwrap_or((rest, ""));
    let Some((authority, database)) = rest.split_once('/') else {
        return Err(wrong("the address names no database: postgres://user@host/database"));
    };
    let Some((user, hosts)) = authority.rsplit_once('@') else {
        return Err(wrong("the address names no user: postgres://user@host/database"));
    };
    if user.contains(':') {
        return Err(wrong(
            "an address holds no password: name a file or an environment variable that holds it, \
             with password_file=PATH or password_env=NAME",
        ));
    }
    let hosts = hosts.split(',').map(host).collect::<Result<Vec<_>>>()?;
    if hosts.len() > HOSTS_MAX {
        return Err(wrong(format!("an address may name {HOSTS_MAX} hosts")));
    }
    let (user, database) = (decoded(user)?, decoded(database)?);
    if user.is_empty() || database.is_empty() {
        return Err(wrong("user and database must not be empty"));
    }
    let mut settings = Settings::new(user, hosts, database);
    for parameter in parameters.split('&').filter(|it| !it.is_empty()) {
        let Some((name, value)) = parameter.split_once('=') else {
            return Err(wrong("a parameter of an address has a value: name=value"));
        };
        set(&mut settings, name, decoded(value)?)?;
    }
    if settings.tls.mode == TlsMode::VerifyFull && settings.tls.ca_file.is_none() {
        return Err(wrong("sslmode=verify-full needs the certificates to trust: sslrootcert=PATH"));
    }
    Ok(settings)
}

fn set(settings: &mut Settings, name: &str, value: String) -> Result<()> {
    match name {
        "sslmode" => settings.tls.mode = TlsMode::parse(&value)?,
        "sslrootcert" => settings.tls.ca_file = Some(PathBuf::from(value)),
        "schema" => {
            check_schema(&value)?;
            settings.schema = value;
        }
        "password_file" => settings.password = Password::File(PathBuf::from(value)),
        "password_env" => settings.password = Password::Variable(value),
        "write_connections" => settings.write_connections = connections(&value)?,
        "read_connections" => settings.read_connections = connections(&value)?,
        "standby_connections" => settings.standby_connections = connections(&value)?,
        "standby_reads" => {
            settings.reads_standbys = match &*value {
                "on" => true,
                "off" => false,
                _ => return Err(wrong("standby_reads is on or off")),
            }
        }
        _ => {
            return Err(wrong(
                "a parameter of the address is unknown; known are sslmode, sslrootcert, schema, \
                 password_file, password_env, write_connections, read_connections, \
                 standby_connections and standby_reads",
            ));
        }
    }
    Ok(())
}

fn host(text: &str) -> Result<Host> {
    let (name, port) = match text.strip_prefix('[') {
        Some(rest) => {
            let Some((name, port)) = rest.split_once(']') else {
                return Err(wrong("an IPv6 address ends with ]"));
            };
            (name, port.strip_prefix(':'))
        }
        None => match text.split_once(':') {
            Some((name, port)) => (name, Some(port)),
            None => (text, None),
        },
    };
    let port = port.map_or(Ok(PORT), str::parse).map_err(|_| wrong("a port is a number"))?;
    let is_known = |byte: u8| byte.is_ascii_alphanumeric() || b".-_:".contains(&byte);
    if name.is_empty() || port == 0 || !name.bytes().all(is_known) {
        return Err(wrong("a host is a name or an address, with :PORT behind it if not 5432"));
    }
    Ok(Host { name: name.to_owned(), port })
}

/// Refuses a name that needs quotes: it stands in statements as it is.
pub(crate) fn check_schema(name: &str) -> Result<()> {
    let is_known = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_';
    let is_good = !name.is_empty()
        && name.len() <= SCHEMA_BYTES_MAX
        && name.bytes().all(is_known)
        && !name.as_bytes()[0].is_ascii_digit()
        && !name.starts_with("pg_");
    match is_good {
        true => Ok(()),
        false => Err(wrong(
            "a schema has lower-case letters, digits and _, begins with no digit and not with pg_",
        )),
    }
}

fn connections(text: &str) -> Result<usize> {
    match text.parse() {
        Ok(count) if (1..=CONNECTIONS_MAX).contains(&count) => Ok(count),
        _ => Err(wrong(format!("connections are a number from 1 to {CONNECTIONS_MAX}"))),
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_names_user_hosts_database_and_parameters() {
        let settings = parse(
            "postgres://shard%201@db1.example:5433,[::1],10.0.0.7:6000/fleet?sslmode=verify-full&\
             sslrootcert=%2Fetc%2Fca.pem&schema=shard_1&password_env=PG_SECRET&read_connections=3&\
             standby_reads=off",
        )
        .unwrap();
        assert_eq!((&*settings.user, &*settings.database), ("shard 1", "fleet"));
        let hosts: Vec<String> = settings.hosts.iter().map(ToString::to_string).collect();
        assert_eq!(hosts, ["db1.example:5433", "[::1]:5432", "10.0.0.7:6000"]);
        assert_eq!(settings.tls.mode, TlsMode::VerifyFull);
        assert_eq!(settings.tls.ca_file.as_deref(), Some(std::path::Path::new("/etc/ca.pem")));
        assert_eq!(settings.schema, "shard_1");
        assert_eq!(settings.password, Password::Variable("PG_SECRET".into()));
        assert_eq!((settings.read_connections, settings.write_connections), (3, 16));
        assert!(!settings.reads_standbys);
        assert!(parse("postgres://me@host,other/db").unwrap().reads_standbys);
    }

    #[test]
    fn a_password_in_the_address_is_refused_and_not_repeated() {
        for address in ["postgres://me:hunter2@host/db", "postgres://me:hunter2@host"] {
            let refused = parse(address).unwrap_err();
            assert!(!format!("{refused} {refused:?}").contains("hunter2"));
        }
    }

    #[test]
    fn what_is_no_address_is_refused() {
        for address in [
            "",
            "mysql://me@host/db",
            "postgres://host/db",
            "postgres://me@host",
            "postgres://me@host/",
            "postgres://@host/db",
            "postgres://me@/db",
            "postgres://me@host:0/db",
            "postgres://me@host:x/db",
            "postgres://me@[::1/db",
            "postgres://me@host/db?schema=Upper",
            "postgres://me@host/db?schema=pg_mine",
            "postgres://me@host/db?schema=a;drop",
            "postgres://me@host/db?colour=red",
            "postgres://me@host/db?sslmode=allow",
            "postgres://me@host/db?sslmode=verify-full",
            "postgres://me@host/db?read_connections=0",
            "postgres://me@host,other/db?standby_connections=0",
            "postgres://me@host,other/db?standby_reads=perhaps",
            "postgres://me@host/d%zz",
            "postgres://me@host/d%00",
        ] {
            assert_eq!(parse(address).unwrap_err().code(), "bad-database-address", "{address}");
        }
    }
}
