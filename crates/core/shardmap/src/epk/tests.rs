//! Effective keys against those of the official clients, and against what a map needs of its routes.

use super::Component::{self, Bool, Null, Number, Text, Undefined};
use super::*;
use crate::MapKind::{self, EpkMulti, EpkV1, EpkV2};
use crate::draw::Draw;
use crate::key::{KeySchema, KeyType};

fn text(text: &str) -> Component {
    Text(text.to_owned())
}

fn parts(components: &[Component]) -> Vec<KeyPart> {
    components.iter().map(Component::part).collect()
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02X}")).collect()
}

fn check(kind: MapKind, components: &[Component], epk: &str) {
    let found = kind.epk(&parts(components)).unwrap();
    assert_eq!(hex(&found), epk, "{kind:?} of {components:?}");
}

#[test]
#[rustfmt::skip]
fn effective_keys_are_those_of_the_official_clients() {
    check(EpkV1, &[text("")], "05C1CF33970FF80800");
    check(EpkV1, &[text("partitionKey")], "05C1E1B3D9CD2608716273756A756A706F4C667A00");
    check(EpkV1, &[Text("a".repeat(1024))], &format!("05C1EB5921F70608{}00", "62".repeat(100)));
    check(EpkV1, &[Null], "05C1ED45D7475601");
    check(EpkV1, &[Undefined], "05C1D529E345DC00");
    check(EpkV1, &[Bool(true)], "05C1D7C5A903D803");
    check(EpkV1, &[Bool(false)], "05C1DB857D857C02");
    check(EpkV1, &[Number(-128.0)], "05C1D73349F54C053FA0");
    check(EpkV1, &[Number(127.0)], "05C1DD539DDFCC05C05FE0");
    check(EpkV1, &[Number(-9.223372036854776e+18)], "05C1DB35F33D1C053C20");
    check(EpkV1, &[Number(9.223372036854776e+18)], "05C1B799AB2DD005C3E0");
    check(EpkV1, &[Number(-2147483648.0)], "05C1DFBF252BCC053E20");
    check(EpkV1, &[Number(2147483647.0)], "05C1E1F503DFB205C1DFFFFFFFFC");
    check(EpkV1, &[Number(5e-324)], "05C1E5C91F4D3005800101010101010102");
    check(EpkV1, &[Number(f64::MAX)], "05C1CBE367C53005FFEFFFFFFFFFFFFFFE");
    check(EpkV1, &[text("quote\"backslash\\slash/newline\n")], "05C1E739E3AD88087276707566236362646C746D6274695D746D627469306F66786D6A6F660B00");
    check(EpkV1, &[text("café 東京 🚀")], "05C1DF0501C73008646267C4AA21E79EB2E5BBAD21F1A09B8100");
    check(EpkV1, &[Text("a".repeat(100))], &format!("05C1EB5921F70608{}00", "62".repeat(100)));
    check(EpkV1, &[Text("a".repeat(101))], &format!("05C1EB5921F70608{}00", "62".repeat(100)));
    check(EpkV2, &[text("")], "32E9366E637A71B4E710384B2F4970A0");
    check(EpkV2, &[text("partitionKey")], "013AEFCF77FA271571CF665A58C933F1");
    check(EpkV2, &[Text("a".repeat(1024))], "332BDF5512AE49615F32C7D98C2DB86C");
    check(EpkV2, &[Null], "378867E4430E67857ACE5C908374FE16");
    check(EpkV2, &[Undefined], "11622DAA78F835834610ABE56EFF5CB5");
    check(EpkV2, &[Bool(true)], "0E711127C5B5A8E4726AC6DD306A3E59");
    check(EpkV2, &[Bool(false)], "2FE1BE91E90A3439635E0E9E37361EF2");
    check(EpkV2, &[Number(-128.0)], "01DAEDABF913540367FE219B2AD06148");
    check(EpkV2, &[Number(127.0)], "0C507ACAC853ECA7977BF4CEFB562A25");
    check(EpkV2, &[Number(-9.223372036854776e+18)], "23D5C6395512BDFEAFADAD15328AD2BB");
    check(EpkV2, &[Number(9.223372036854776e+18)], "2EDB959178DFCCA18983F89384D1629B");
    check(EpkV2, &[Number(-2147483648.0)], "0B1660D5233C3171725B30D4A5F4CC1F");
    check(EpkV2, &[Number(2147483647.0)], "2D9349D64712AEB5EB1406E2F0BE2725");
    check(EpkV2, &[Number(5e-324)], "0E6CBA63A280927DE485DEF865800139");
    check(EpkV2, &[Number(f64::MAX)], "31424D996457102634591FF245DBCC4D");
    check(EpkV2, &[text("quote\"backslash\\slash/newline\n")], "0A75245A5A77FB1C92F7AB9E0FD5E73F");
    check(EpkV2, &[text("café 東京 🚀")], "389ED563F219577470F42691A5234A68");
    check(EpkV2, &[Text("a".repeat(100))], "0DBD7D229437BB665DE6417747994D57");
    check(EpkV2, &[Text("a".repeat(101))], "08042541D30C8BF90D7092B1519AE0BC");
    check(EpkMulti, &[text("partitionKey")], "013AEFCF77FA271571CF665A58C933F1");
    check(EpkMulti, &[text(""), Bool(true)], "32E9366E637A71B4E710384B2F4970A00E711127C5B5A8E4726AC6DD306A3E59");
    check(EpkMulti, &[text("partitionKey"), Null, Bool(false)], "013AEFCF77FA271571CF665A58C933F1378867E4430E67857ACE5C908374FE162FE1BE91E90A3439635E0E9E37361EF2");
}

fn drawn(draw: &mut Draw) -> Component {
    match draw.below(7) {
        0 => Undefined,
        1 => Null,
        2 => Bool(draw.below(2) == 0),
        3 => Number(draw.below(1_000) as f64 - 500.0),
        4 => Number(f64::from_bits(draw.below(usize::MAX) as u64)),
        5 => Text("ä".repeat(draw.below(120))),
        _ => Text(String::from_utf8_lossy(&draw.bytes()).into_owned()),
    }
}

fn schema(levels: usize) -> KeySchema {
    KeySchema::new(vec![KeyType::Bytes; levels]).unwrap()
}

#[test]
fn every_route_tells_its_key_and_splits_from_what_follows_it() {
    let mut draw = Draw::new(7);
    for _ in 0..5_000 {
        let kind = draw.of(&[EpkV1, EpkV2, EpkMulti]);
        let levels = if kind == EpkMulti { 1 + draw.below(3) } else { 1 };
        let schema = schema(levels);
        let mut key = parts(&(0..levels).map(|_| drawn(&mut draw)).collect::<Vec<_>>());
        if levels == 1 && draw.below(20) == 0 {
            key = vec![KeyPart::Bytes(Bytes::new())];
        }
        let route = kind.route(&schema, &key).unwrap();
        assert_eq!(kind.key(&schema, &route).unwrap(), key);
        let rest = draw.bytes();
        let whole = [&route[..], &rest].concat();
        assert_eq!(kind.split(&schema, &whole).unwrap(), (&route[..], &rest[..]));
        assert_eq!(kind.unit(&schema, &whole).unwrap(), kind.epk(&key).unwrap());
    }
}

#[test]
fn bytes_from_anywhere_are_a_route_or_are_refused() {
    let mut draw = Draw::new(8);
    for _ in 0..20_000 {
        let kind = draw.of(&[EpkV1, EpkV2, EpkMulti]);
        let schema = schema(if kind == EpkMulti { 2 } else { 1 });
        let mut bytes: Vec<u8> = (0..draw.below(6)).flat_map(|_| draw.bytes()).collect();
        if draw.below(2) == 0 {
            bytes.insert(0, NUMBER);
        }
        if let Ok((route, rest)) = kind.split(&schema, &bytes) {
            assert_eq!([route, rest].concat(), bytes);
        }
        if let Ok(key) = kind.key(&schema, &bytes) {
            assert_eq!(kind.route(&schema, &key).unwrap(), bytes);
        }
        kind.print(&schema, &bytes);
    }
}

#[test]
fn the_first_components_are_a_range() {
    let whole = parts(&[text("tenant"), Number(7.0), Null]);
    let route = EpkMulti.route(&schema(3), &whole).unwrap();
    for levels in 1..=3 {
        let prefix = EpkMulti.epk(&whole[..levels]).unwrap();
        assert!(KeyRange::prefix(prefix).contains(&route));
    }
    let other = EpkMulti.epk(&parts(&[text("other")])).unwrap();
    assert!(!KeyRange::prefix(other).contains(&route));
}

#[test]
fn even_parts_have_the_bounds_that_clients_expect() {
    let bounds = |parts, is_v1| -> Vec<String> {
        let ranges = cut(parts, is_v1).unwrap();
        assert_eq!(ranges.last().unwrap().end, None);
        ranges.windows(2).for_each(|pair| assert_eq!(pair[0].end.as_ref(), Some(&pair[1].start)));
        ranges.iter().map(|range| hex(&range.start)).collect()
    };
    assert_eq!(bounds(1, false), [""]);
    assert_eq!(bounds(2, false), ["".to_owned(), format!("1F{}", "FF".repeat(15))]);
    assert_eq!(bounds(2, true), ["", "05C1DFFFFFFFFC"]);
    let five = ["", "05C1C9CD673398", "05C1D9CD673398", "05C1E399CD6732", "05C1E9CD673398"];
    assert_eq!(bounds(5, true), five);
    assert!(cut(0, false).is_err());
}
