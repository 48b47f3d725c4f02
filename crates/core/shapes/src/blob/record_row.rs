//! Records as rows: a few fields that are always there, then those that are, each behind its tag.

use lazuli_engine::{Lsn, Result};

use super::codec::{Reader, Writer, damaged};
use super::lease::Lease;
use super::record::{
    BlobKind, BlobRecord, ChosenTier, ContentRef, CopyState, CopyStatus, Deleted, Form,
    Immutability, Rehydration, Tier,
};

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
#[path = "record_tests.rs"]
mod tests;
