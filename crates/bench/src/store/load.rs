//! What is written and read: keys and values of the size and shape that entities of a table have.

use std::sync::Arc;

use bytes::Bytes;
use lazuli_env::mix;
use lazuli_store::Write;

/// As many as partitions that are busy at once.
pub(super) const GUARDS: u64 = 8;
const FILL_BATCH_ITEMS: u64 = 1_000;
/// Values have from this many bytes up to five times as many.
const VALUE_BYTES_LEAST: usize = 208;

#[derive(Clone)]
pub(crate) struct Load {
    pub(super) items: u64,
    /// Text that values are cut from.
    text: Arc<[u8]>,
}

impl Load {
    pub(crate) fn new(items: u64) -> Self {
        let field = |n: u64| format!("{{\"n\":{n},\"name\":\"customer {:x}\"}},", mix(n));
        let text: String = (0..4_000).map(field).collect();
        Self { items, text: text.into_bytes().into() }
    }

    /// The key of an item; numbers beyond the last begin again.
    ///
    /// 52 bytes: container, hash, partition key, row key; a hundred rows in each partition.
    pub(super) fn key(&self, number: u64) -> Bytes {
        let number = number % self.items;
        let partition = number / 100;
        let hash = mix(partition);
        format!("c001{hash:08.8x}part-{partition:015}row-{number:016}").into()
    }

    /// Keys in no order, the same ones for the same numbers.
    pub(super) fn any_key(&self, at: u64) -> Bytes {
        self.key(mix(at))
    }

    pub(super) fn guard(&self, number: u64) -> Bytes {
        format!("guard-{}", number % GUARDS).into()
    }

    pub(crate) fn value(&self, number: u64) -> Bytes {
        let spread = mix(number) as usize;
        let length = VALUE_BYTES_LEAST + spread % (VALUE_BYTES_LEAST * 4);
        let at = spread / 8 % (self.text.len() - length);
        Bytes::copy_from_slice(&self.text[at..at + length])
    }

    /// All items, in no order.
    pub(super) fn batches(&self) -> impl Iterator<Item = Vec<Write>> {
        let item = |n: u64| Write::Put(self.key(n), self.value(n));
        let step = 7_919;
        (0..self.items.div_ceil(FILL_BATCH_ITEMS)).map(move |batch| {
            let range = batch * FILL_BATCH_ITEMS..self.items.min((batch + 1) * FILL_BATCH_ITEMS);
            range.map(|n| item(n * step % self.items)).collect()
        })
    }

    /// One commit of a client: an entity replaced, a change recorded, a count kept.
    pub(super) fn commit(&self, client: usize, number: u64) -> Vec<Write> {
        let value = self.value(number);
        vec![
            Write::Put(self.key(number), value.clone()),
            Write::Put(format!("feed-{number:020}").into(), value),
            Write::Put(format!("count-{client}").into(), number.to_be_bytes().to_vec().into()),
        ]
    }
}
