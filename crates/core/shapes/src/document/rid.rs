//! Resource ids: the bytes by which clients link resources to each other, a child's beginning with its parent's.

use std::fmt;

/// What a resource is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ResourceKind {
    Database,
    Collection,
    User,
    Permission,
    Procedure,
    Trigger,
    Function,
    Offer,
    EncryptionKey,
}

impl ResourceKind {
    pub const ALL: [Self; 9] = [
        Self::Database,
        Self::Collection,
        Self::User,
        Self::Permission,
        Self::Procedure,
        Self::Trigger,
        Self::Function,
        Self::Offer,
        Self::EncryptionKey,
    ];

    /// Its number in keys of the directory.
    pub(super) fn number(self) -> u8 {
        match self {
            Self::Database => 1,
            Self::Collection => 2,
            Self::User => 3,
            Self::Permission => 4,
            Self::Procedure => 5,
            Self::Trigger => 6,
            Self::Function => 7,
            Self::Offer => 8,
            Self::EncryptionKey => 9,
        }
    }

    pub(super) fn numbered(number: u8) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.number() == number)
    }

    /// What its parent is; none for those of the account itself.
    pub fn parent(self) -> Option<Self> {
        match self {
            Self::Database | Self::Offer => None,
            Self::Collection | Self::User | Self::EncryptionKey => Some(Self::Database),
            Self::Permission => Some(Self::User),
            Self::Procedure | Self::Trigger | Self::Function => Some(Self::Collection),
        }
    }
}

/// The id of a resource. Documents have ids of the same form, made from their container's.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Rid(Vec<u8>);

/// The letters of base 64 as these ids are written: a slash would end a segment of a path.
const LETTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+-";
/// The longest of all ids.
const RID_BYTES_MAX: usize = 20;

impl Rid {
    /// The id of the nth resource of a kind, under its parent.
    pub(super) fn new(kind: ResourceKind, parent: Option<&Rid>, number: u64) -> Self {
        let mut bytes = parent.map(|parent| parent.0.clone()).unwrap_or_default();
        let short = number as u32;
        match kind {
            ResourceKind::Database => bytes.extend(short.to_be_bytes()),
            // The highest bit tells collections from users.
            ResourceKind::Collection => bytes.extend((short | 1 << 31).to_be_bytes()),
            ResourceKind::User => bytes.extend((short & !(1 << 31)).to_be_bytes()),
            ResourceKind::Offer => bytes.extend(&short.to_be_bytes()[1..]),
            ResourceKind::Permission | ResourceKind::EncryptionKey => {
                bytes.extend(number.to_be_bytes());
            }
            ResourceKind::Procedure => bytes.extend(child(number, 8)),
            ResourceKind::Trigger => bytes.extend(child(number, 7)),
            ResourceKind::Function => bytes.extend(child(number, 6)),
        }
        Self(bytes)
    }

    /// The id of a document in this container.
    pub fn document(&self, number: u64) -> Self {
        Self([&self.0[..], &child(number, 0)].concat())
    }

    /// The id of a range of this container.
    pub fn range(&self, number: u64) -> Self {
        Self([&self.0[..], &child(number, 5)].concat())
    }

    pub fn bytes(&self) -> &[u8] {
        &self.0
    }

    pub fn from_bytes(bytes: &[u8]) -> Self {
        Self(bytes.to_vec())
    }

    /// The id of the database that a resource is in.
    pub fn database(&self) -> Self {
        Self(self.0[..self.0.len().min(4)].to_vec())
    }

    /// The id of the container that a document, script or range is in.
    pub fn collection(&self) -> Option<Self> {
        self.0.get(..8).map(|bytes| Self(bytes.to_vec()))
    }

    /// Reads what [`fmt::Display`] writes; none for anything else.
    pub fn parse(text: &str) -> Option<Self> {
        let text = text.as_bytes();
        if text.is_empty() || !text.len().is_multiple_of(4) || text.len() > RID_BYTES_MAX * 2 {
            return None;
        }
        let mut bytes = Vec::with_capacity(text.len() / 4 * 3);
        for group in text.chunks(4) {
            let given = group.iter().position(|letter| *letter == b'=').unwrap_or(4);
            if given < 2 || group[given..].iter().any(|letter| *letter != b'=') {
                return None;
            }
            let mut bits = 0_u32;
            for letter in &group[..given] {
                let place = LETTERS.iter().position(|one| one == letter)?;
                bits = bits << 6 | place as u32;
            }
            bits <<= 6 * (4 - given);
            bytes.extend(&bits.to_be_bytes()[1..given]);
        }
        let rid = Self(bytes);
        (rid.to_string().as_bytes() == text).then_some(rid)
    }
}

/// Eight bytes of which the upper half of the last tells the type.
fn child(number: u64, kind: u8) -> [u8; 8] {
    let mut bytes = (number << 4).to_be_bytes();
    bytes[7] = kind << 4 | (bytes[7] >> 4);
    bytes
}

impl Rid {
    /// Appends the text of an id: every item that is read has two of them.
    pub(super) fn write(&self, out: &mut String) {
        write_bytes(&self.0, out);
    }

    /// Appends the address, by ids, of a document with this id.
    pub(super) fn write_link(&self, out: &mut String) {
        let part = |length: usize| &self.0[..self.0.len().min(length)];
        out.push_str("dbs/");
        write_bytes(part(4), out);
        out.push_str("/colls/");
        write_bytes(part(8), out);
        out.push_str("/docs/");
        self.write(out);
        out.push('/');
    }
}

fn write_bytes(bytes: &[u8], out: &mut String) {
    for group in bytes.chunks(3) {
        let mut bits = [0; 4];
        bits[1..=group.len()].copy_from_slice(group);
        let bits = u32::from_be_bytes(bits);
        for place in 0..4 {
            out.push(match place <= group.len() {
                true => char::from(LETTERS[(bits >> (18 - 6 * place)) as usize & 63]),
                false => '=',
            });
        }
    }
}

impl fmt::Display for Rid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut text = String::with_capacity(RID_BYTES_MAX * 2);
        self.write(&mut text);
        f.write_str(&text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_have_the_forms_that_clients_know() {
        let database = Rid::new(ResourceKind::Database, None, 7);
        assert_eq!(database.to_string(), "AAAABw==");
        let collection = Rid::new(ResourceKind::Collection, Some(&database), 1);
        assert_eq!((collection.bytes().len(), collection.bytes()[4] >> 7), (8, 1));
        let user = Rid::new(ResourceKind::User, Some(&database), 1);
        assert_eq!((user.bytes().len(), user.bytes()[4] >> 7), (8, 0));
        assert_eq!(Rid::new(ResourceKind::Permission, Some(&user), 3).bytes().len(), 16);
        assert_eq!(Rid::new(ResourceKind::Offer, None, 3).bytes().len(), 3);
        let types = [ResourceKind::Procedure, ResourceKind::Trigger, ResourceKind::Function];
        for (kind, number) in types.into_iter().zip([8, 7, 6]) {
            let child = Rid::new(kind, Some(&collection), 9);
            assert_eq!((child.bytes().len(), child.bytes()[15] >> 4), (16, number));
            assert_eq!(child.collection(), Some(collection.clone()));
            assert_eq!(child.database(), database);
        }
        let document = collection.document(u64::MAX);
        assert_eq!((document.bytes().len(), document.bytes()[15] >> 4), (16, 0));
    }

    #[test]
    fn an_id_is_read_as_it_was_written_and_nothing_else_is() {
        for bytes in [&b"\0"[..], b"\xff\xfe\xfd", b"abcd", b"12345678", b"1234567890123456"] {
            let rid = Rid::from_bytes(bytes);
            assert_eq!(Rid::parse(&rid.to_string()), Some(rid));
        }
        for text in ["", "A", "AAAA=", "A===", "====", "AAA/", "AB==", "AAAAB===", "AAéA"] {
            assert_eq!(Rid::parse(text), None, "{text}");
        }
    }
}
