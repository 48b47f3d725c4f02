//! SCRAM-SHA-256 for servers (RFC 5802, RFC 7677), with channel binding to the server's certificate (`-PLUS`, RFC 5929).
//!
//! A server keeps a [`Secret`], from which no proof can be made. A user who does not exist is asked like any other, with a
//! salt that is always the same for the name, so that nobody learns which names exist.

use std::fmt;

use base64::Engine;
use base64::engine::general_purpose::STANDARD as BASE64;
use hmac::{Hmac, KeyInit, Mac};
use sha2::{Digest, Sha256};
use subtle::ConstantTimeEq;

use crate::limits::{SCRAM_BYTES_MAX, SCRAM_ITERATIONS};

pub const MECHANISM: &str = "SCRAM-SHA-256";
pub const MECHANISM_PLUS: &str = "SCRAM-SHA-256-PLUS";

const KEY_BYTES: usize = 32;
const SALT_BYTES: usize = 16;

/// What is kept of a password, in PostgreSQL's own form `SCRAM-SHA-256$ITERATIONS:SALT$STORED:SERVER`.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret {
    iterations: u32,
    salt: Vec<u8>,
    stored_key: [u8; KEY_BYTES],
    server_key: [u8; KEY_BYTES],
}

/// Without what is secret in it.
impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{MECHANISM} with {} iterations", self.iterations)
    }
}

fn hmac(key: &[u8], parts: &[&[u8]]) -> [u8; KEY_BYTES] {
    let mut mac = Hmac::<Sha256>::new_from_slice(key).expect("HMAC takes keys of any length");
    parts.iter().for_each(|part| mac.update(part));
    mac.finalize().into_bytes().into()
}

fn xor(left: &[u8; KEY_BYTES], right: &[u8; KEY_BYTES]) -> [u8; KEY_BYTES] {
    std::array::from_fn(|index| left[index] ^ right[index])
}

impl Secret {
    /// The secret of a password. The salt is chance, passed in.
    pub fn of_password(password: &str, salt: &[u8]) -> Self {
        let mut round = hmac(password.as_bytes(), &[salt, &1_u32.to_be_bytes()]);
        let mut salted = round;
        for _ in 1..SCRAM_ITERATIONS {
            round = hmac(password.as_bytes(), &[&round]);
            salted = xor(&salted, &round);
        }
        let client_key = hmac(&salted, &[b"Client Key"]);
        Self {
            iterations: SCRAM_ITERATIONS,
            salt: salt.to_vec(),
            stored_key: Sha256::digest(client_key).into(),
            server_key: hmac(&salted, &[b"Server Key"]),
        }
    }

    pub fn parse(text: &str) -> Option<Self> {
        let rest = text.strip_prefix(MECHANISM)?.strip_prefix('$')?;
        let (salted, keys) = rest.split_once('$')?;
        let (iterations, salt) = salted.split_once(':')?;
        let (stored, server) = keys.split_once(':')?;
        let key = |text: &str| BASE64.decode(text).ok()?.try_into().ok();
        Some(Self {
            iterations: iterations.parse().ok()?,
            salt: BASE64.decode(salt).ok()?,
            stored_key: key(stored)?,
            server_key: key(server)?,
        })
    }

    /// As PostgreSQL keeps it in `pg_authid`.
    pub fn print(&self) -> String {
        let [salt, stored, server] =
            [&self.salt[..], &self.stored_key, &self.server_key].map(|it| BASE64.encode(it));
        format!("{MECHANISM}${}:{salt}${stored}:{server}", self.iterations)
    }

    /// A secret that no password has, always the same for a name.
    pub fn of_nobody(name: &str, seed: &[u8]) -> Self {
        let of = |what: &[u8]| hmac(seed, &[what, name.as_bytes()]);
        Self {
            iterations: SCRAM_ITERATIONS,
            salt: of(b"salt")[..SALT_BYTES].to_vec(),
            stored_key: of(b"stored"),
            server_key: of(b"server"),
        }
    }
}

/// Why a client is not let in. What is told to it is the same in all cases but the malformed one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ScramError {
    Malformed(&'static str),
    /// The client could have bound the channel and thinks that we can not: somebody stands between.
    Downgrade,
    WrongProof,
}

/// A conversation after the client's first message.
pub struct Exchange {
    secret: Secret,
    first_bare: String,
    server_first: String,
    nonce: String,
    /// What the client must repeat: its header, and the certificate's hash if it binds the channel.
    binding: Vec<u8>,
}

/// The hash of our certificate, if the connection is encrypted.
pub type Binding<'a> = Option<&'a [u8]>;

impl Exchange {
    /// Reads the client's first message. `nonce` is chance, passed in. The answer is what the server says first.
    pub fn begin(
        mechanism: &str,
        message: &[u8],
        secret: Secret,
        nonce: &str,
        binding: Binding<'_>,
    ) -> Result<(Self, String), ScramError> {
        let malformed = ScramError::Malformed;
        if message.len() > SCRAM_BYTES_MAX {
            return Err(malformed("too long"));
        }
        let text = std::str::from_utf8(message).map_err(|_| malformed("not UTF-8"))?;
        let mut parts = text.splitn(3, ',');
        let flag = parts.next().ok_or(malformed("no flag"))?;
        let identity = parts.next().ok_or(malformed("no identity"))?;
        let bare = parts.next().ok_or(malformed("no message"))?;
        let mut repeated = format!("{flag},{identity},").into_bytes();
        match (mechanism, flag) {
            (MECHANISM_PLUS, "p=tls-server-end-point") => {
                repeated.extend_from_slice(binding.ok_or(malformed("nothing to bind to"))?);
            }
            (MECHANISM, "n") => {}
            (MECHANISM, "y") if binding.is_none() => {}
            (MECHANISM, "y") => return Err(ScramError::Downgrade),
            _ => return Err(malformed("a flag that is not of the mechanism")),
        }
        if !identity.is_empty() {
            return Err(malformed("an authorization identity"));
        }
        let mut fields = bare.split(',');
        let name = fields.next().filter(|it| it.starts_with("n="));
        name.ok_or(malformed("no name"))?;
        let client_nonce = fields.next().and_then(|it| it.strip_prefix("r="));
        let client_nonce = client_nonce.filter(|it| !it.is_empty()).ok_or(malformed("no nonce"))?;
        let nonce = format!("{client_nonce}{nonce}");
        let salt = BASE64.encode(&secret.salt);
        let server_first = format!("r={nonce},s={salt},i={}", secret.iterations);
        let exchange = Self {
            secret,
            first_bare: bare.to_owned(),
            server_first: server_first.clone(),
            nonce,
            binding: repeated,
        };
        Ok((exchange, server_first))
    }

    /// Checks the client's proof. The answer is what the server says last: its own proof.
    pub fn finish(self, message: &[u8]) -> Result<String, ScramError> {
        let malformed = ScramError::Malformed;
        if message.len() > SCRAM_BYTES_MAX {
            return Err(malformed("too long"));
        }
        let text = std::str::from_utf8(message).map_err(|_| malformed("not UTF-8"))?;
        let (without_proof, proof) = text.rsplit_once(",p=").ok_or(malformed("no proof"))?;
        let mut fields = without_proof.split(',');
        let binding = fields.next().and_then(|it| it.strip_prefix("c="));
        let binding = binding.ok_or(malformed("no channel binding"))?;
        let binding = BASE64.decode(binding).map_err(|_| malformed("no base64"))?;
        let nonce = fields.next().and_then(|it| it.strip_prefix("r="));
        if nonce != Some(self.nonce.as_str()) {
            return Err(malformed("another nonce"));
        }
        let proof = BASE64.decode(proof).map_err(|_| malformed("no base64"))?;
        let proof: [u8; KEY_BYTES] = proof.try_into().map_err(|_| malformed("a short proof"))?;
        let signed: [&[u8]; 5] = [
            self.first_bare.as_bytes(),
            b",",
            self.server_first.as_bytes(),
            b",",
            without_proof.as_bytes(),
        ];
        let client_key = xor(&proof, &hmac(&self.secret.stored_key, &signed));
        let stored_key: [u8; KEY_BYTES] = Sha256::digest(client_key).into();
        let is_right = stored_key.ct_eq(&self.secret.stored_key) & binding.ct_eq(&self.binding);
        if !bool::from(is_right) {
            return Err(ScramError::WrongProof);
        }
        Ok(format!("v={}", BASE64.encode(hmac(&self.secret.server_key, &signed))))
    }
}

/// What a client sends first: the mechanism that it chose, and its first message.
pub fn read_initial(body: bytes::Bytes) -> Result<(String, bytes::Bytes), ScramError> {
    let mut reader = crate::Reader::new(body);
    let malformed = |_| ScramError::Malformed("no mechanism");
    let mechanism = reader.text().map_err(malformed)?;
    let message = reader.value().map_err(malformed)?;
    Ok((mechanism, message.ok_or(ScramError::Malformed("no first message"))?))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The example of RFC 7677, section 3.
    const CLIENT_FIRST: &[u8] = b"n,,n=user,r=rOprNGfwEbeRWgbNEkqO";
    const NONCE: &str = "%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0";
    const CLIENT_FINAL: &str = "c=biws,r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,\
         p=dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ=";

    fn secret() -> Secret {
        Secret::of_password("pencil", &BASE64.decode("W22ZaJ0SNY7soEsUEjb6gQ==").unwrap())
    }

    fn begin(
        message: &[u8],
        mechanism: &str,
        binding: Binding<'_>,
    ) -> Result<Exchange, ScramError> {
        Exchange::begin(mechanism, message, secret(), NONCE, binding).map(|(exchange, _)| exchange)
    }

    #[test]
    fn the_example_of_the_standard_is_let_in_and_gets_its_proof() {
        let (exchange, said) =
            Exchange::begin(MECHANISM, CLIENT_FIRST, secret(), NONCE, None).unwrap();
        assert_eq!(
            said,
            format!("r=rOprNGfwEbeRWgbNEkqO{NONCE},s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096")
        );
        let last = exchange.finish(CLIENT_FINAL.as_bytes()).unwrap();
        assert_eq!(last, "v=6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4=");
    }

    #[test]
    fn a_wrong_password_nonce_or_name_is_refused() {
        let other = Secret::of_password("pen", b"0123456789abcdef");
        let (exchange, _) = Exchange::begin(MECHANISM, CLIENT_FIRST, other, NONCE, None).unwrap();
        assert_eq!(exchange.finish(CLIENT_FINAL.as_bytes()), Err(ScramError::WrongProof));
        let nobody = Secret::of_nobody("user", b"seed");
        let (exchange, _) = Exchange::begin(MECHANISM, CLIENT_FIRST, nobody, NONCE, None).unwrap();
        assert_eq!(exchange.finish(CLIENT_FINAL.as_bytes()), Err(ScramError::WrongProof));
        let (exchange, _) =
            Exchange::begin(MECHANISM, CLIENT_FIRST, secret(), "other", None).unwrap();
        assert!(matches!(exchange.finish(CLIENT_FINAL.as_bytes()), Err(ScramError::Malformed(_))));
    }

    #[test]
    fn a_client_that_was_told_of_no_binding_where_there_is_one_is_refused() {
        let first = b"y,,n=,r=abc";
        assert_eq!(begin(first, MECHANISM, Some(b"hash")).err(), Some(ScramError::Downgrade));
        assert!(begin(first, MECHANISM, None).is_ok());
        let bound = b"p=tls-server-end-point,,n=,r=abc";
        assert!(begin(bound, MECHANISM_PLUS, Some(b"hash")).is_ok());
        assert!(begin(bound, MECHANISM_PLUS, None).is_err());
        assert!(begin(bound, MECHANISM, Some(b"hash")).is_err());
    }

    #[test]
    fn a_secret_reads_as_it_prints() {
        let printed = secret().print();
        assert_eq!(Secret::parse(&printed), Some(secret()));
        assert_eq!(Secret::parse("md5abc"), None);
        assert_eq!(Secret::of_nobody("a", b"s"), Secret::of_nobody("a", b"s"));
    }
}
