//! The values of settings: text to number of bytes, time, address and so on. Errors say what is expected.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::time::Duration;

use lazuli_balance::{Weights, Window};
use lazuli_net::AddressRange;

pub(super) type Parsed<T> = Result<T, String>;

/// The longest name of a node.
const NAME_CHARS_MAX: usize = 63;

pub(super) fn host(text: &str) -> Parsed<IpAddr> {
    if text == "localhost" {
        return Ok(IpAddr::V4(Ipv4Addr::LOCALHOST));
    }
    let bare = text.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')).unwrap_or(text);
    bare.parse().map_err(|_| "an IP address such as 127.0.0.1, 0.0.0.0 or ::1".to_owned())
}

pub(super) fn port(text: &str) -> Parsed<u16> {
    text.parse().map_err(|_| "a port from 0 to 65535".to_owned())
}

pub(super) fn socket(text: &str) -> Parsed<SocketAddr> {
    text.parse()
        .map_err(|_| "an address with a port, such as 0.0.0.0:10011 or [::]:10011".to_owned())
}

/// A port, or `off` for none.
pub(super) fn port_or_off(text: &str) -> Parsed<Option<u16>> {
    if text == "off" {
        return Ok(None);
    }
    port(text).map(Some).map_err(|expected| format!("{expected}, or off"))
}

/// Addresses and networks, with commas between them.
pub(super) fn addresses(text: &str) -> Parsed<Vec<AddressRange>> {
    let parsed = text.split(',').map(|one| one.trim().parse()).collect::<Result<_, _>>();
    parsed.map_err(|_| "addresses such as 127.0.0.1 or 10.0.0.0/8, with commas".to_owned())
}

/// Names of accounts, with commas between them.
pub(super) fn names(text: &str) -> Parsed<Vec<String>> {
    let names: Vec<_> = text.split(',').map(|name| name.trim().to_owned()).collect();
    let all = names.iter().all(|name| !name.is_empty());
    all.then_some(names).ok_or_else(|| "names of accounts with commas between them".to_owned())
}

/// What a node or the like is called.
pub(super) fn name(text: &str) -> Parsed<String> {
    let is_plain = text.bytes().all(|byte| byte.is_ascii_graphic());
    let is_name = is_plain && (1..=NAME_CHARS_MAX).contains(&text.len());
    is_name.then(|| text.to_owned()).ok_or_else(|| "1 to 63 visible ASCII characters".to_owned())
}

pub(super) fn count(text: &str) -> Parsed<usize> {
    match text.parse() {
        Ok(0) | Err(_) => Err("a whole number above zero".to_owned()),
        Ok(number) => Ok(number),
    }
}

pub(super) fn count_or_off(text: &str) -> Parsed<Option<u32>> {
    if text == "off" {
        return Ok(None);
    }
    match count(text).ok().and_then(|number| u32::try_from(number).ok()) {
        Some(number) => Ok(Some(number)),
        None => Err("a whole number above zero, or off".to_owned()),
    }
}

/// `4096`, `64KiB`, `8MiB`, `1GiB`.
pub fn bytes(text: &str) -> Parsed<u64> {
    let expected = || "a number of bytes such as 65536, 64KiB, 8MiB or 1GiB".to_owned();
    let units = [("KiB", 1 << 10), ("MiB", 1 << 20), ("GiB", 1 << 30), ("B", 1), ("", 1)];
    let (number, unit) = with_unit(text, &units).ok_or_else(expected)?;
    number.checked_mul(unit).filter(|bytes| *bytes > 0).ok_or_else(expected)
}

/// The same, and `0` for none.
pub(super) fn bytes_or_none(text: &str) -> Parsed<u64> {
    if text == "0" { Ok(0) } else { bytes(text) }
}

/// `0.5`, `2000`.
pub fn number(text: &str) -> Parsed<f64> {
    let number = text.parse().ok().filter(|it: &f64| it.is_finite() && *it >= 0.0);
    number.ok_or_else(|| "a number from 0 up".to_owned())
}

/// `10%` as a part of one.
pub(super) fn percent(text: &str) -> Parsed<f64> {
    let percent = text.strip_suffix('%').and_then(|digits| number(digits.trim_end()).ok());
    percent.map(|percent| percent / 100.0).ok_or_else(|| "a part such as 10%".to_owned())
}

/// `bytes=1,requests=2`: what is spread evenly, and how much each counts. What is not named does not count.
pub fn goals(text: &str) -> Parsed<Weights> {
    let mut weights = Weights { bytes: 0.0, requests: 0.0, items: 0.0 };
    for part in text.split(',') {
        let (name, weight) = part.split_once('=').unwrap_or((part, "1"));
        let weight = number(weight)?;
        match name {
            "bytes" => weights.bytes = weight,
            "requests" => weights.requests = weight,
            "items" => weights.items = weight,
            _ => return Err("bytes, requests and items, such as bytes=1,requests=2".to_owned()),
        }
    }
    Ok(weights)
}

/// `22:00-04:00`.
pub fn window(text: &str) -> Parsed<Window> {
    let minute = |time: &str| {
        let (hour, minute) = time.split_once(':')?;
        let (hour, minute): (u32, u32) = (hour.parse().ok()?, minute.parse().ok()?);
        (hour < 24 && minute < 60).then_some(hour * 60 + minute)
    };
    let times = text.split_once('-').and_then(|(from, to)| minute(from).zip(minute(to)));
    let times = times.filter(|(from, to)| from != to);
    times
        .map(|(from_minute, to_minute)| Window { from_minute, to_minute })
        .ok_or_else(|| "two times of the day, such as 22:00-04:00".to_owned())
}

/// `500ms`, `15s`, `2m`.
pub fn time(text: &str) -> Parsed<Duration> {
    let expected = || "a time such as 500ms, 15s or 2m, up to 24h".to_owned();
    let units = [("ms", 1), ("s", 1_000), ("m", 60_000), ("h", 3_600_000)];
    let (number, unit) = with_unit(text, &units).ok_or_else(expected)?;
    let millis = number.checked_mul(unit).ok_or_else(expected)?;
    (1..=TIME_MS_MAX).contains(&millis).then(|| Duration::from_millis(millis)).ok_or_else(expected)
}

const TIME_MS_MAX: u64 = 24 * 3_600_000;

fn with_unit(text: &str, units: &[(&str, u64)]) -> Option<(u64, u64)> {
    let digits = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let (number, unit) = text.split_at(digits);
    let factor = units.iter().find(|(name, _)| *name == unit.trim_start())?.1;
    Some((number.parse().ok()?, factor))
}

/// Names or addresses of hosts, with commas between them.
pub(super) fn hosts(text: &str) -> Parsed<Vec<String>> {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._:[]".contains(&byte);
    let is_host = |host: &str| !host.is_empty() && host.bytes().all(plain);
    let hosts: Vec<_> = text.split(',').map(|host| host.trim().to_ascii_lowercase()).collect();
    let all = hosts.iter().all(|host| is_host(host));
    all.then_some(hosts).ok_or_else(|| "names of hosts with commas between them".to_owned())
}

/// The value that a word stands for.
pub(super) fn choice<T: Copy>(text: &str, words: &[(&str, T)]) -> Parsed<T> {
    words.iter().find(|(word, _)| *word == text).map(|(_, value)| *value).ok_or_else(|| {
        let all: Vec<_> = words.iter().map(|(word, _)| *word).collect();
        format!("one of {}", all.join(", "))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_take_binary_units() {
        for (text, value) in
            [("1", 1), ("10B", 10), ("64KiB", 65_536), ("8 MiB", 8 << 20), ("2GiB", 2 << 30)]
        {
            assert_eq!(bytes(text), Ok(value), "{text}");
        }
        for text in ["", "0", "-1", "MiB", "1kb", "1.5MiB", "99999999999GiB", "1MiB2"] {
            assert!(bytes(text).is_err(), "{text}");
        }
    }

    #[test]
    fn goals_windows_and_parts_are_read() {
        let weights = Weights { bytes: 2.0, requests: 0.0, items: 1.0 };
        assert_eq!(goals("bytes=2,items"), Ok(weights));
        assert!(["", "size=1", "bytes=x"].iter().all(|it| goals(it).is_err()));
        let night = Window { from_minute: 22 * 60, to_minute: 4 * 60 + 30 };
        assert_eq!(window("22:00-04:30"), Ok(night));
        assert!(["22-4", "24:00-04:00", "1:00-1:00", "x"].iter().all(|it| window(it).is_err()));
        assert_eq!((percent("25%"), percent("150 %")), (Ok(0.25), Ok(1.5)));
        assert!(["", "%", "25", "x%", "-1%", "NaN%"].iter().all(|it| percent(it).is_err()));
        assert_eq!((bytes_or_none("0"), bytes_or_none("1KiB")), (Ok(0), Ok(1_024)));
    }

    #[test]
    fn times_need_a_unit_and_stay_below_a_day() {
        assert_eq!(time("500ms"), Ok(Duration::from_millis(500)));
        assert_eq!(time("2m"), Ok(Duration::from_secs(120)));
        assert_eq!(time("24h"), Ok(Duration::from_secs(86_400)));
        for text in ["15", "0s", "25h", "s", "99999999999999999999s", "18446744073709551615h"] {
            assert!(time(text).is_err(), "{text}");
        }
    }

    #[test]
    fn hosts_are_addresses_or_localhost() {
        assert_eq!(host("localhost"), host("127.0.0.1"));
        assert_eq!(host("[::1]"), host("::1"));
        assert!(host("example.com").is_err());
    }

    #[test]
    fn lists_of_hosts_are_names_or_addresses() {
        let both = vec!["a.example".to_owned(), "[::1]".to_owned()];
        assert_eq!(hosts("A.example, [::1]"), Ok(both));
        assert!(hosts("").is_err() && hosts("a,,b").is_err() && hosts("http://a/b").is_err());
    }

    #[test]
    fn counts_and_ports_are_bounded() {
        assert_eq!(count("7"), Ok(7));
        assert!(count("0").is_err() && count("x").is_err());
        assert_eq!(port("0"), Ok(0));
        assert!(port("65536").is_err());
        assert_eq!((port_or_off("off"), port_or_off("0")), (Ok(None), Ok(Some(0))));
        assert!(port_or_off("none").is_err());
        assert!(addresses("127.0.0.1, 10.0.0.0/8").is_ok() && addresses("a").is_err());
        assert!(names("one, two").is_ok() && names("one,").is_err());
    }
}
