//! What happened to keys, for clients that asked to be told (keyspace notifications).

/// A class of events, one bit each.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Class(pub u16);

impl Class {
    pub const KEYSPACE: Self = Self(1);
    pub const KEYEVENT: Self = Self(1 << 1);
    pub const GENERIC: Self = Self(1 << 2);
    pub const STRING: Self = Self(1 << 3);
    pub const LIST: Self = Self(1 << 4);
    pub const SET: Self = Self(1 << 5);
    pub const HASH: Self = Self(1 << 6);
    pub const SORTED: Self = Self(1 << 7);
    pub const STREAM: Self = Self(1 << 8);
    pub const EXPIRED: Self = Self(1 << 9);
    pub const EVICTED: Self = Self(1 << 10);
    pub const MISS: Self = Self(1 << 11);
    pub const NEW: Self = Self(1 << 12);
    pub const MODULE: Self = Self(1 << 13);
    /// What `A` stands for: all but misses and new keys.
    pub const ALL: Self = Self(0b10_0111_1111_1100);

    const LETTERS: [(u8, Self); 14] = [
        (b'g', Self::GENERIC),
        (b'$', Self::STRING),
        (b'l', Self::LIST),
        (b's', Self::SET),
        (b'h', Self::HASH),
        (b'z', Self::SORTED),
        (b'x', Self::EXPIRED),
        (b'e', Self::EVICTED),
        (b't', Self::STREAM),
        (b'd', Self::MODULE),
        (b'K', Self::KEYSPACE),
        (b'E', Self::KEYEVENT),
        (b'm', Self::MISS),
        (b'n', Self::NEW),
    ];

    /// From the letters of `notify-keyspace-events`; none if one is unknown.
    pub fn parse(letters: &[u8]) -> Option<Self> {
        letters.iter().try_fold(Self(0), |classes, letter| {
            let found = Self::LETTERS.iter().find(|(it, _)| it == letter).map(|(_, class)| *class);
            let class = if *letter == b'A' { Some(Self::ALL) } else { found };
            class.map(|class| Self(classes.0 | class.0))
        })
    }

    /// The letters, as CONFIG GET shows them.
    pub fn letters(self) -> String {
        let is_all = self.0 & Self::ALL.0 == Self::ALL.0;
        let shown = |class: Self| self.0 & class.0 != 0 && !(is_all && Self::ALL.0 & class.0 != 0);
        let head = if is_all { "A" } else { "" };
        let rest = Self::LETTERS.iter().filter(|(_, class)| shown(*class));
        head.chars().chain(rest.map(|(letter, _)| *letter as char)).collect()
    }
}

/// One event of one key.
#[derive(Clone, Debug)]
pub struct Event {
    pub class: Class,
    pub name: &'static str,
    pub database: usize,
    pub key: Box<[u8]>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn letters_are_read_and_shown() {
        assert_eq!(Class::parse(b"KEA").unwrap().letters(), "AKE");
        assert_eq!(Class::parse(b"Kg$x").unwrap().letters(), "g$xK");
        assert_eq!(Class::parse(b"").unwrap().letters(), "");
        assert_eq!(Class::parse(b"Q"), None);
    }
}
