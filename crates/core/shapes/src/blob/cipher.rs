//! Contents encrypted at rest with a key that the customer brings with every request. We keep the key's SHA-256 and no key.
//!
//! AES-256 in counter mode, with an initial counter of its own for every source of bytes: any range can be read by itself.

use std::fmt;

use aes::Aes256;
use bytes::{Bytes, BytesMut};
use ctr::Ctr128BE;
use ctr::cipher::{KeyIvInit, StreamCipher, StreamCipherSeek};
use lazuli_engine::{Env, Error, Result};

use super::codes;

/// A key that came with a request. The front has checked that the sum is the key's.
#[derive(Clone)]
pub struct CustomerKey {
    pub key: [u8; 32],
    pub sha256: [u8; 32],
}

impl fmt::Debug for CustomerKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("CustomerKey")
    }
}

/// Whether a content written with one key, or none, may be touched by a request with another.
pub(super) fn check_key(written: Option<&[u8; 32]>, given: Option<&CustomerKey>) -> Result<()> {
    match (written, given) {
        (None, None) => Ok(()),
        (Some(written), Some(given)) if *written == given.sha256 => Ok(()),
        (Some(_), None) => {
            Err(Error::precondition(codes::KEY_REQUIRED, "the blob needs its customer's key"))
        }
        _ => Err(Error::precondition(codes::KEY_MISMATCH, "the blob has another customer's key")),
    }
}

/// The stream of one source, anywhere in it. Encrypting and decrypting are the same.
pub(super) struct Cipher(Ctr128BE<Aes256>);

impl Cipher {
    pub(super) fn at(key: &CustomerKey, iv: &[u8; 16], position: u64) -> Self {
        let mut cipher = Ctr128BE::<Aes256>::new((&key.key).into(), iv.into());
        cipher.seek(position);
        Self(cipher)
    }

    pub(super) fn apply(&mut self, bytes: &Bytes) -> Bytes {
        let mut changed = BytesMut::from(&bytes[..]);
        self.0.apply_keystream(&mut changed);
        changed.freeze()
    }
}

/// An initial counter that no other source has.
pub(super) fn new_iv(env: &Env) -> [u8; 16] {
    let mut iv = [0; 16];
    iv[..8].copy_from_slice(&env.random.next_u64().to_be_bytes());
    // The lower half counts blocks; it begins at zero, so that it never carries into what is drawn.
    iv[8..12].copy_from_slice(&env.random.next_u64().to_be_bytes()[..4]);
    iv
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_encrypted_as_a_whole_is_decrypted_from_anywhere() {
        let key = CustomerKey { key: [7; 32], sha256: [0; 32] };
        let iv = [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 0, 0, 0, 0];
        let plain: Bytes = (0..1000u32).map(|n| n as u8).collect();
        let hidden = Cipher::at(&key, &iv, 0).apply(&plain);
        assert_ne!(hidden, plain);
        for from in [0, 1, 15, 16, 17, 999] {
            let shown = Cipher::at(&key, &iv, from).apply(&hidden.slice(from as usize..));
            assert_eq!(shown, plain.slice(from as usize..));
        }
        let other = CustomerKey { key: [8; 32], sha256: [0; 32] };
        assert_ne!(Cipher::at(&other, &iv, 0).apply(&hidden), plain);
    }
}
