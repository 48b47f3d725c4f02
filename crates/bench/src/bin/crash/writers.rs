//! The load: writers that insert entities one after another and remember what they were told.

use std::net::SocketAddr;
use std::thread::JoinHandle;

use crate::Result;
use crate::client::Client;

/// Partition keys that the writers of a round share, so that several of them meet in one.
const PARTITION_KEYS: u64 = 5;

/// An entity's text is between one and this many times its row key long.
const TEXT_REPEATS_MAX: u64 = 40;

/// An entity that was sent off.
#[derive(Clone)]
pub(crate) struct Key {
    pub(crate) partition: String,
    pub(crate) row: String,
    /// The length of its text follows from this number.
    number: u64,
    /// Whether the server said that it is stored. If not, it may be there or not, but never in part.
    pub(crate) answered: bool,
}

impl Key {
    fn new(round: u64, writer: usize, number: u64) -> Self {
        let partition = format!("p{}", number % PARTITION_KEYS);
        let row = format!("{round:06}-{writer:02}-{number:08}");
        Self { partition, row, number, answered: false }
    }

    /// What the entity must hold: something that no other entity has, so that a mix-up shows.
    pub(crate) fn text(&self) -> String {
        let repeats = 1 + self.number % TEXT_REPEATS_MAX;
        self.row.repeat(usize::try_from(repeats).unwrap_or(1))
    }
}

/// What the writers of a round sent, in no order.
#[derive(Default)]
pub(crate) struct Written {
    pub(crate) keys: Vec<Key>,
}

pub(crate) fn start(
    address: SocketAddr,
    round: u64,
    count: usize,
) -> Vec<JoinHandle<Result<Vec<Key>>>> {
    (0..count).map(|writer| std::thread::spawn(move || write(address, round, writer))).collect()
}

pub(crate) fn join(writers: Vec<JoinHandle<Result<Vec<Key>>>>) -> Result<Written> {
    let mut written = Written::default();
    for writer in writers {
        let keys = writer.join().map_err(|_| "a writer panicked".to_owned())?;
        written.keys.append(&mut keys?);
    }
    Ok(written)
}

/// Writes until the connection breaks. An answer that is neither yes nor a broken connection is a failure.
fn write(address: SocketAddr, round: u64, writer: usize) -> Result<Vec<Key>> {
    let mut keys = Vec::new();
    // A server that dies before the writer has connected leaves nothing to remember.
    let Ok(mut client) = Client::connect(address) else { return Ok(keys) };
    for number in 0.. {
        let mut key = Key::new(round, writer, number);
        match client.insert(&key.partition, &key.row, &key.text()) {
            Ok(answer) if matches!(answer.status, 201 | 204) => {
                key.answered = true;
                keys.push(key);
            }
            Ok(answer) => {
                return Err(format!("insert {}: {} {}", key.row, answer.status, answer.body));
            }
            Err(_) => {
                keys.push(key);
                break;
            }
        }
    }
    Ok(keys)
}
