//! Creates the container that the program works in: the one thing that the client cannot do by itself.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::{SystemTime, UNIX_EPOCH};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use crate::{ACCOUNT, KEY, Result};

pub(crate) fn create(url: &str, name: &str) -> Result {
    let address = url.trim_start_matches("http://").trim_end_matches('/');
    let date = rfc1123(SystemTime::now().duration_since(UNIX_EPOCH)?.as_secs());
    let path = format!("/{ACCOUNT}/{name}");
    let headers = format!("x-ms-date:{date}\nx-ms-version:2021-12-02\n");
    let key = ring::hmac::Key::new(ring::hmac::HMAC_SHA256, &STANDARD.decode(KEY)?);
    // None of the eleven headers that are signed by their place is there.
    let text = format!("PUT\n{}{headers}/{ACCOUNT}{path}\nrestype:container", "\n".repeat(11));
    let signature = STANDARD.encode(ring::hmac::sign(&key, text.as_bytes()));
    let request = format!(
        "PUT {path}?restype=container HTTP/1.1\r\nhost: {address}\r\nx-ms-date: {date}\r\n\
         x-ms-version: 2021-12-02\r\nauthorization: SharedKey {ACCOUNT}:{signature}\r\n\
         content-length: 0\r\nconnection: close\r\n\r\n"
    );
    let mut stream = TcpStream::connect(address)?;
    stream.write_all(request.as_bytes())?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer)?;
    if answer.starts_with("HTTP/1.1 201") {
        return Ok(());
    }
    Err(format!("the container was not created: {answer}").into())
}

/// A time as HTTP has it. Days are counted from the first of March, so that leap days come last.
fn rfc1123(seconds: u64) -> String {
    const MONTHS: [&str; 12] =
        ["Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec", "Jan", "Feb"];
    const WEEKDAYS: [&str; 7] = ["Thu", "Fri", "Sat", "Sun", "Mon", "Tue", "Wed"];
    let days = seconds / 86_400;
    let shifted = days + 719_468;
    let (era, of_era) = (shifted / 146_097, shifted % 146_097);
    let year = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year + year / 4 - year / 100);
    let month = (5 * of_year + 2) / 153;
    let day = of_year - (153 * month + 2) / 5 + 1;
    let year = year + era * 400 + u64::from(month >= 10);
    let (hour, minute, second) = (seconds / 3600 % 24, seconds / 60 % 60, seconds % 60);
    let (weekday, month) = (WEEKDAYS[days as usize % 7], MONTHS[month as usize]);
    format!("{weekday}, {day:02} {month} {year} {hour:02}:{minute:02}:{second:02} GMT")
}
