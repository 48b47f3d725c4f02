//! Values as bytes, in the plain forms of their types.

use super::{stream, types};
use crate::value::Value;

pub(super) fn length(out: &mut Vec<u8>, length: usize) {
    match length {
        0..64 => out.push(length as u8),
        64..16_384 => out.extend_from_slice(&[0x40 | (length >> 8) as u8, length as u8]),
        _ => match u32::try_from(length) {
            Ok(length) => {
                out.push(0x80);
                out.extend_from_slice(&length.to_be_bytes());
            }
            Err(_) => {
                out.push(0x81);
                out.extend_from_slice(&(length as u64).to_be_bytes());
            }
        },
    }
}

pub(super) fn text(out: &mut Vec<u8>, bytes: &[u8]) {
    length(out, bytes.len());
    out.extend_from_slice(bytes);
}

/// The type and the value.
pub(super) fn value(value: &Value) -> Vec<u8> {
    let mut out = Vec::new();
    match value {
        Value::String(bytes) => {
            out.push(types::STRING);
            text(&mut out, bytes);
        }
        Value::List(list) => {
            out.push(types::LIST);
            length(&mut out, list.len());
            list.iter_from(0).for_each(|item| text(&mut out, item));
        }
        Value::Set(set) => {
            out.push(types::SET);
            length(&mut out, set.len());
            set.each(&mut |member| text(&mut out, member));
        }
        Value::Hash(hash) => {
            let first_ms = hash.next_expiry_ms();
            out.push(if first_ms.is_some() { types::HASH_TIMES } else { types::HASH });
            first_ms.inspect(|at| out.extend_from_slice(&at.to_le_bytes()));
            length(&mut out, hash.len());
            hash.each(&mut |field, content| {
                if let Some(first_ms) = first_ms {
                    let distance = hash.expiry_ms(field).map_or(0, |at| at - first_ms + 1);
                    length(&mut out, distance as usize);
                }
                text(&mut out, field);
                text(&mut out, content);
            });
        }
        Value::Sorted(zset) => {
            out.push(types::ZSET_2);
            length(&mut out, zset.len());
            // The highest first: whoever inserts them in this order finds each place at once.
            zset.walk(0, usize::MAX, true, &mut |member, score| {
                text(&mut out, member);
                out.extend_from_slice(&score.to_le_bytes());
            });
        }
        Value::Stream(stream) => {
            out.push(types::STREAM_2);
            stream::write(&mut out, stream);
        }
    }
    out
}
