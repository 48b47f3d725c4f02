//! When two replies count as the same: byte by byte, except where a server is free to choose.

use super::reply::Reply;

/// What a command's replies may differ in.
enum Freedom {
    None,
    /// The order of elements.
    Order,
    /// The order of pairs of a field and its value, also where RESP2 shows them flat.
    PairOrder,
    /// Which elements were picked: only their number and kinds count.
    Pick,
    /// The cursor, and the order of what a scan brings.
    Scan,
    /// Members and scores in pairs behind a cursor.
    PairScan,
    /// The sign of zero.
    Sign,
    /// The form in which a string is kept: ours depends on the string, that of Redis also on the commands that made it.
    Integer,
    /// Numbers of milliseconds, and what streams tell of their insides.
    Times,
}

fn freedom(command: &[Vec<u8>]) -> Freedom {
    let name = command[0].to_ascii_uppercase();
    let has = |word: &str| command.iter().any(|it| it.eq_ignore_ascii_case(word.as_bytes()));
    match name.as_slice() {
        b"SMEMBERS" | b"SINTER" | b"SUNION" | b"SDIFF" | b"HKEYS" | b"HVALS" | b"KEYS" => {
            Freedom::Order
        }
        b"SPOP" => Freedom::Order,
        b"SORT" | b"SORT_RO" if has("nosort") => Freedom::Order,
        b"HGETALL" => Freedom::PairOrder,
        b"SRANDMEMBER" | b"HRANDFIELD" | b"ZRANDMEMBER" | b"RANDOMKEY" => Freedom::Pick,
        b"SSCAN" | b"SCAN" => Freedom::Scan,
        b"HSCAN" | b"ZSCAN" => Freedom::PairScan,
        b"XPENDING" | b"XINFO" => Freedom::Times,
        b"ZUNION" | b"ZINTER" | b"ZDIFF" => Freedom::Sign,
        b"OBJECT" => Freedom::Integer,
        b"GEORADIUS"
        | b"GEORADIUSBYMEMBER"
        | b"GEOSEARCH"
        | b"GEORADIUS_RO"
        | b"GEORADIUSBYMEMBER_RO" => Freedom::Order,
        _ => Freedom::None,
    }
}

pub(crate) fn is_same(command: &[Vec<u8>], ours: &Reply, theirs: &Reply) -> bool {
    if ours == theirs {
        return true;
    }
    match freedom(command) {
        Freedom::None => false,
        Freedom::Order => sorted(ours, 1) == sorted(theirs, 1),
        Freedom::PairOrder => sorted(ours, 2) == sorted(theirs, 2),
        Freedom::Pick => shape(ours) == shape(theirs),
        Freedom::Scan => scanned(ours, 1) == scanned(theirs, 1),
        Freedom::PairScan => scanned(ours, 2) == scanned(theirs, 2),
        Freedom::Sign => unsigned(ours) == unsigned(theirs),
        Freedom::Integer => embedded(ours) == embedded(theirs),
        Freedom::Times => timeless(ours) == timeless(theirs),
    }
}

/// The elements in groups of a size, sorted.
fn sorted(reply: &Reply, size: usize) -> Reply {
    let Reply::Many(kind, items) = reply else { return reply.clone() };
    let mut groups: Vec<Vec<Reply>> = items.chunks(size).map(<[Reply]>::to_vec).collect();
    groups.sort();
    Reply::Many(*kind, groups.concat())
}

/// Kinds and numbers of elements without their texts.
fn shape(reply: &Reply) -> Reply {
    match reply {
        Reply::Bulk(kind, _) => Reply::Bulk(*kind, Vec::new()),
        Reply::Line(kind @ (b',' | b':'), _) => Reply::Line(*kind, Vec::new()),
        Reply::Many(kind, items) => Reply::Many(*kind, items.iter().map(shape).collect()),
        other => other.clone(),
    }
}

/// What a scan brought, without its cursor: collections that fit one call are compared whole.
fn scanned(reply: &Reply, size: usize) -> Reply {
    match reply {
        Reply::Many(kind, items) if items.len() == 2 => {
            Reply::Many(*kind, vec![sorted(&items[1], size)])
        }
        other => other.clone(),
    }
}

fn unsigned(reply: &Reply) -> Reply {
    match reply {
        Reply::Line(b',', text) if text == b"-0" => Reply::Line(b',', b"0".to_vec()),
        Reply::Bulk(kind, text) if text == b"-0" => Reply::Bulk(*kind, b"0".to_vec()),
        Reply::Many(kind, items) => Reply::Many(*kind, items.iter().map(unsigned).collect()),
        other => other.clone(),
    }
}

fn embedded(reply: &Reply) -> Reply {
    match reply {
        Reply::Bulk(kind, text) if text == b"int" || text == b"raw" => {
            Reply::Bulk(*kind, b"embstr".to_vec())
        }
        other => other.clone(),
    }
}

/// Times since the epoch and idle times depend on the moment, and the insides of streams on the server.
fn timeless(reply: &Reply) -> Reply {
    let Reply::Many(kind, items) = reply else { return reply.clone() };
    let mut items: Vec<Reply> = items.iter().map(timeless).collect();
    for at in 1..items.len() {
        let is_time = match &items[at - 1] {
            Reply::Bulk(_, name) => matches!(
                name.as_slice(),
                b"idle" | b"seen-time" | b"radix-tree-nodes" | b"radix-tree-keys"
            ),
            _ => false,
        };
        // An id, a consumer, milliseconds, a count; or the same without a consumer.
        let is_pending = (items.len() == 4 && at == 2) || (items.len() == 3 && at == 1);
        if (is_time || is_pending) && matches!(items[at], Reply::Line(b':', _)) {
            items[at] = Reply::Line(b':', b"time".to_vec());
        }
    }
    Reply::Many(*kind, items)
}
