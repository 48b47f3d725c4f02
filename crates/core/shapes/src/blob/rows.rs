//! How rows of blobs are written: bytes, varints and texts one after another, and the record of a blob as a row: the fields
//! that every record has, then the optional ones, each behind its tag (`docs/formats/blobs.md`).

use bytes::{Buf, BufMut, Bytes, BytesMut};
use lazuli_engine::{Error, Lsn, Result};

use super::lease::Lease;
use super::record::{
    BlobKind, BlobRecord, ChosenTier, ContentRef, CopyState, CopyStatus, Deleted, Form,
    Immutability, Rehydration, Tier,
};

/// Writes a row.
#[derive(Default)]
pub(super) struct Writer(BytesMut);

impl Writer {
    pub(super) fn new() -> Self {
        Self::default()
    }

    pub(super) fn u8(&mut self, value: u8) {
        self.0.put_u8(value);
    }

    pub(super) fn u64(&mut self, value: u64) {
        self.0.put_u64(value);
    }

    /// Seven bits per byte, lowest first, the top bit set on all but the last.
    pub(super) fn number(&mut self, mut value: u64) {
        while value >= 0x80 {
            self.0.put_u8(value as u8 | 0x80);
            value >>= 7;
        }
        self.0.put_u8(value as u8);
    }

    pub(super) fn raw(&mut self, bytes: &[u8]) {
        self.0.put_slice(bytes);
    }

    pub(super) fn bytes(&mut self, bytes: &[u8]) {
        self.number(bytes.len() as u64);
        self.0.put_slice(bytes);
    }

    pub(super) fn text(&mut self, text: &str) {
        self.bytes(text.as_bytes());
    }

    pub(super) fn pairs(&mut self, pairs: &[(String, String)]) {
        self.number(pairs.len() as u64);
        for (name, value) in pairs {
            self.text(name);
            self.text(value);
        }
    }

    /// A field that is written only if it is there: its tag, then what the function writes.
    pub(super) fn field<T>(
        &mut self,
        tag: u8,
        value: Option<&T>,
        write: impl FnOnce(&mut Self, &T),
    ) {
        if let Some(value) = value {
            self.u8(tag);
            write(self, value);
        }
    }

    pub(super) fn finish(self) -> Bytes {
        self.0.freeze()
    }
}

/// Reads a row. Damaged bytes give an error, never a panic.
pub(super) struct Reader(Bytes);

impl Reader {
    pub(super) fn new(bytes: Bytes) -> Self {
        Self(bytes)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(super) fn u8(&mut self) -> Result<u8> {
        self.0.try_get_u8().map_err(|_| damaged())
    }

    pub(super) fn u64(&mut self) -> Result<u64> {
        self.0.try_get_u64().map_err(|_| damaged())
    }

    pub(super) fn number(&mut self) -> Result<u64> {
        let mut value = 0u64;
        for shift in (0..64).step_by(7) {
            let byte = self.u8()?;
            value |= u64::from(byte & 0x7f) << shift;
            if byte & 0x80 == 0 {
                return Ok(value);
            }
        }
        Err(damaged())
    }

    pub(super) fn small(&mut self) -> Result<u32> {
        u32::try_from(self.number()?).map_err(|_| damaged())
    }

    pub(super) fn raw(&mut self, length: usize) -> Result<Bytes> {
        if length > self.0.len() {
            return Err(damaged());
        }
        Ok(self.0.split_to(length))
    }

    pub(super) fn array<const N: usize>(&mut self) -> Result<[u8; N]> {
        let bytes = self.raw(N)?;
        <[u8; N]>::try_from(&bytes[..]).map_err(|_| damaged())
    }

    pub(super) fn bytes(&mut self) -> Result<Bytes> {
        let length = usize::try_from(self.number()?).map_err(|_| damaged())?;
        self.raw(length)
    }

    pub(super) fn text(&mut self) -> Result<String> {
        let bytes = self.bytes()?;
        std::str::from_utf8(&bytes).map(str::to_owned).map_err(|_| damaged())
    }

    pub(super) fn pairs(&mut self) -> Result<Vec<(String, String)>> {
        let count = self.number()?;
        let mut pairs = Vec::new();
        for _ in 0..count {
            pairs.push((self.text()?, self.text()?));
        }
        Ok(pairs)
    }
}

pub(super) fn damaged() -> Error {
    Error::corrupt("bad-blob-row", "a row of a blob does not decode")
}

const FORMAT: u8 = 1;

const COMMITTED: u8 = 1;
const SEALED: u8 = 2;
const LEGAL_HOLD: u8 = 4;
const FLAGS_KNOWN: u8 = COMMITTED | SEALED | LEGAL_HOLD;

/// The tags of fields that are not always there, in the order in which they are written.
mod field {
    pub(super) const VERSION: u8 = 1;
    pub(super) const TYPE: u8 = 2;
    pub(super) const ENCODING: u8 = 3;
    pub(super) const LANGUAGE: u8 = 4;
    pub(super) const DISPOSITION: u8 = 5;
    pub(super) const CACHE_CONTROL: u8 = 6;
    pub(super) const MD5: u8 = 7;
    pub(super) const METADATA: u8 = 8;
    pub(super) const TAGS: u8 = 9;
    pub(super) const TIER: u8 = 10;
    pub(super) const REHYDRATION: u8 = 11;
    pub(super) const LEASE: u8 = 12;
    pub(super) const COPY: u8 = 13;
    pub(super) const IMMUTABILITY: u8 = 14;
    pub(super) const EXPIRES: u8 = 15;
    pub(super) const KEY: u8 = 16;
    pub(super) const SCOPE: u8 = 17;
    pub(super) const DELETED: u8 = 18;
    pub(super) const SEQUENCE: u8 = 19;
    pub(super) const KEPT: u8 = 20;
    pub(super) const APPENDS: u8 = 21;
    pub(super) const WAITING: u8 = 22;
    pub(super) const CHANGED_MS: u8 = 23;
}

impl BlobRecord {
    pub(super) fn encode(&self) -> bytes::Bytes {
        let mut to = Writer::new();
        to.u8(FORMAT);
        to.u8(match self.kind {
            BlobKind::Block => 0,
            BlobKind::Append => 1,
            BlobKind::Page => 2,
        });
        let flag = |is: bool, flag: u8| if is { flag } else { 0 };
        to.u8(flag(self.is_committed, COMMITTED)
            | flag(self.is_sealed, SEALED)
            | flag(self.has_legal_hold, LEGAL_HOLD));
        to.u64(self.created_ms);
        to.u64(self.changed.0);
        to.u8(self.content.form as u8);
        to.u64(self.content.id);
        to.number(self.content.length);
        self.encode_headers(&mut to);
        self.encode_fields(&mut to);
        to.finish()
    }

    fn encode_headers(&self, to: &mut Writer) {
        let headers = &self.headers;
        for (tag, value) in [
            (field::TYPE, &headers.content_type),
            (field::ENCODING, &headers.content_encoding),
            (field::LANGUAGE, &headers.content_language),
            (field::DISPOSITION, &headers.content_disposition),
            (field::CACHE_CONTROL, &headers.cache_control),
        ] {
            to.field(tag, value.as_ref(), |to, text| to.text(text));
        }
        to.field(field::MD5, headers.content_md5.as_ref(), |to, md5| to.raw(md5));
    }

    fn encode_fields(&self, to: &mut Writer) {
        let some = |pairs: &[(String, String)]| (!pairs.is_empty()).then(|| pairs.to_vec());
        to.field(field::VERSION, self.version.as_ref(), |to, version| to.u64(version.0));
        to.field(field::METADATA, some(&self.metadata).as_ref(), |to, pairs| to.pairs(pairs));
        to.field(field::TAGS, some(&self.tags).as_ref(), |to, pairs| to.pairs(pairs));
        to.field(field::TIER, self.tier.as_ref(), |to, chosen| {
            to.u8(tier_code(chosen.tier));
            to.u64(chosen.changed_ms);
        });
        let way = self.tier.and_then(|chosen| chosen.rehydration);
        to.field(field::REHYDRATION, way.as_ref(), |to, way| {
            to.u8(tier_code(way.to));
            to.u8(u8::from(way.is_urgent));
            to.u64(way.ready_ms);
        });
        let lease = self.lease.id.is_some().then_some(&self.lease);
        to.field(field::LEASE, lease, |to, lease| lease.write(to));
        to.field(field::COPY, self.copy.as_ref(), encode_copy);
        to.field(field::IMMUTABILITY, self.immutability.as_ref(), |to, policy| {
            to.u64(policy.until_ms);
            to.u8(u8::from(policy.is_locked));
        });
        to.field(field::EXPIRES, self.expires_ms.as_ref(), |to, expires| to.u64(*expires));
        to.field(field::KEY, self.key_sha256.as_ref(), |to, sum| to.raw(sum));
        to.field(field::SCOPE, self.scope.as_ref(), |to, scope| to.text(scope));
        to.field(field::DELETED, self.deleted.as_ref(), |to, deleted| {
            to.u64(deleted.at_ms);
            to.u64(deleted.until_ms);
        });
        let number = |number: u64| (number > 0).then_some(number);
        to.field(field::SEQUENCE, number(self.sequence_number).as_ref(), |to, it| to.number(*it));
        to.field(field::KEPT, number(self.kept_until.0).as_ref(), |to, it| to.u64(*it));
        let appends = number(u64::from(self.append_blocks));
        to.field(field::APPENDS, appends.as_ref(), |to, it| to.number(*it));
        to.field(field::WAITING, number(self.waiting).as_ref(), |to, it| to.u64(*it));
        to.field(field::CHANGED_MS, self.changed_ms.as_ref(), |to, it| to.u64(*it));
    }

    pub(super) fn decode(bytes: bytes::Bytes) -> Result<Self> {
        let mut from = Reader::new(bytes);
        if from.u8()? != FORMAT {
            return Err(damaged());
        }
        let kind = match from.u8()? {
            0 => BlobKind::Block,
            1 => BlobKind::Append,
            2 => BlobKind::Page,
            _ => return Err(damaged()),
        };
        let flags = from.u8()?;
        if flags & !FLAGS_KNOWN != 0 {
            return Err(damaged());
        }
        let created_ms = from.u64()?;
        let mut record = Self::new(kind, Lsn(from.u64()?));
        record.created_ms = created_ms;
        record.is_committed = flags & COMMITTED != 0;
        record.is_sealed = flags & SEALED != 0;
        record.has_legal_hold = flags & LEGAL_HOLD != 0;
        let form = match from.u8()? {
            0 => Form::Empty,
            1 => Form::Inline,
            2 => Form::Pieces,
            _ => return Err(damaged()),
        };
        record.content = ContentRef { id: from.u64()?, length: from.number()?, form };
        while !from.is_empty() {
            let tag = from.u8()?;
            record.decode_field(tag, &mut from)?;
        }
        Ok(record)
    }

    fn decode_field(&mut self, tag: u8, from: &mut Reader) -> Result<()> {
        match tag {
            field::VERSION => self.version = Some(Lsn(from.u64()?)),
            field::TYPE => self.headers.content_type = Some(from.text()?),
            field::ENCODING => self.headers.content_encoding = Some(from.text()?),
            field::LANGUAGE => self.headers.content_language = Some(from.text()?),
            field::DISPOSITION => self.headers.content_disposition = Some(from.text()?),
            field::CACHE_CONTROL => self.headers.cache_control = Some(from.text()?),
            field::MD5 => self.headers.content_md5 = Some(from.array()?),
            field::METADATA => self.metadata = from.pairs()?,
            field::TAGS => self.tags = from.pairs()?,
            field::TIER => {
                let tier = tier_of(from.u8()?)?;
                self.tier = Some(ChosenTier { tier, changed_ms: from.u64()?, rehydration: None });
            }
            field::REHYDRATION => {
                let (to, is_urgent) = (tier_of(from.u8()?)?, from.u8()? != 0);
                let way = Rehydration { to, is_urgent, ready_ms: from.u64()? };
                self.tier.as_mut().ok_or_else(damaged)?.rehydration = Some(way);
            }
            field::LEASE => self.lease = Lease::read(from)?,
            field::COPY => self.copy = Some(decode_copy(from)?),
            field::IMMUTABILITY => {
                let until_ms = from.u64()?;
                self.immutability = Some(Immutability { until_ms, is_locked: from.u8()? != 0 });
            }
            field::EXPIRES => self.expires_ms = Some(from.u64()?),
            field::KEY => self.key_sha256 = Some(from.array()?),
            field::SCOPE => self.scope = Some(from.text()?),
            field::DELETED => {
                self.deleted = Some(Deleted { at_ms: from.u64()?, until_ms: from.u64()? });
            }
            field::SEQUENCE => self.sequence_number = from.number()?,
            field::KEPT => self.kept_until = Lsn(from.u64()?),
            field::APPENDS => self.append_blocks = from.small()?,
            field::WAITING => self.waiting = from.u64()?,
            field::CHANGED_MS => self.changed_ms = Some(from.u64()?),
            _ => return Err(damaged()),
        }
        Ok(())
    }
}

fn tier_code(tier: Tier) -> u8 {
    match tier {
        Tier::Hot => 1,
        Tier::Cool => 2,
        Tier::Cold => 3,
        Tier::Archive => 4,
        Tier::Premium(number) => 0x80 | number,
    }
}

fn tier_of(code: u8) -> Result<Tier> {
    Ok(match code {
        1 => Tier::Hot,
        2 => Tier::Cool,
        3 => Tier::Cold,
        4 => Tier::Archive,
        code if code & 0x80 != 0 => Tier::Premium(code & 0x7f),
        _ => return Err(damaged()),
    })
}

fn encode_copy(to: &mut Writer, copy: &CopyState) {
    to.text(&copy.id);
    to.text(&copy.source);
    to.u8(copy.status as u8);
    to.number(copy.done);
    to.number(copy.total);
    to.number(copy.completed_ms.unwrap_or(0));
    to.text(copy.description.as_deref().unwrap_or_default());
}

fn decode_copy(from: &mut Reader) -> Result<CopyState> {
    let (id, source) = (from.text()?, from.text()?);
    let status = match from.u8()? {
        0 => CopyStatus::Pending,
        1 => CopyStatus::Success,
        2 => CopyStatus::Aborted,
        3 => CopyStatus::Failed,
        _ => return Err(damaged()),
    };
    let (done, total, completed) = (from.number()?, from.number()?, from.number()?);
    let description = from.text()?;
    let completed_ms = (completed > 0).then_some(completed);
    let description = (!description.is_empty()).then_some(description);
    Ok(CopyState { id, source, status, done, total, completed_ms, description })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::blob::record::Headers;

    // Records survive their rows, whole and damaged.

    fn full() -> BlobRecord {
        let text = |text: &str| Some(text.to_owned());
        let pairs = |name: &str| vec![(name.to_owned(), "value".to_owned())];
        BlobRecord {
            kind: BlobKind::Page,
            created_ms: 7,
            changed: Lsn(8),
            changed_ms: Some(7),
            content: ContentRef { id: 9, length: 1 << 40, form: Form::Pieces },
            is_committed: true,
            is_current_version: false,
            version: Some(Lsn(10)),
            headers: Headers {
                content_type: text("type"),
                content_encoding: text("encoding"),
                content_language: text("language"),
                content_disposition: text("disposition"),
                cache_control: text("cache"),
                content_md5: Some([3; 16]),
            },
            metadata: pairs("meta"),
            tags: pairs("tag"),
            tier: Some(ChosenTier {
                tier: Tier::Archive,
                changed_ms: 11,
                rehydration: Some(Rehydration {
                    to: Tier::Premium(30),
                    is_urgent: true,
                    ready_ms: 12,
                }),
            }),
            lease: Lease { id: text("id"), seconds: None, expires_ms: None, broken_ms: Some(1) },
            copy: Some(CopyState {
                id: "copy".into(),
                source: "http://there".into(),
                status: CopyStatus::Failed,
                done: 5,
                total: 6,
                completed_ms: Some(13),
                description: text("why"),
            }),
            immutability: Some(Immutability { until_ms: 14, is_locked: true }),
            has_legal_hold: true,
            expires_ms: Some(15),
            key_sha256: Some([4; 32]),
            scope: text("scope"),
            deleted: Some(Deleted { at_ms: 16, until_ms: 17 }),
            sequence_number: 18,
            kept_until: Lsn(19),
            append_blocks: 20,
            is_sealed: true,
            waiting: 21,
        }
    }

    #[test]
    fn a_record_survives_its_row() {
        for record in [full(), BlobRecord::new(BlobKind::Append, Lsn(5))] {
            assert_eq!(BlobRecord::decode(record.encode()).unwrap(), record);
        }
    }

    #[test]
    fn a_damaged_row_is_an_error_and_never_a_panic() {
        let row = full().encode();
        for length in 0..row.len() {
            // A row that ends between two fields lacks the rest, and nothing else can be said of it.
            let _ = BlobRecord::decode(row.slice(..length));
        }
        for at in 0..row.len() {
            for bit in 0..8 {
                let mut bytes = row.to_vec();
                bytes[at] ^= 1 << bit;
                let _ = BlobRecord::decode(bytes.into());
            }
        }
        assert!(BlobRecord::decode(row.slice(..10)).is_err());
    }

    #[test]
    fn a_blob_leaves_the_archive_when_its_time_has_come() {
        let record = full();
        assert!(record.is_archived(11));
        assert!(!record.is_archived(12));
        assert_eq!(record.tier_at(12).unwrap().tier, Tier::Premium(30));
        assert_eq!(record.tier_at(12).unwrap().rehydration, None);
    }
}
