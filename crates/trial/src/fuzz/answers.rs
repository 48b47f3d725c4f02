//! The allowed answers to a fuzzed request: a success, or an error that the documentation knows.

use lazuli_trial::client::Answer;

use super::codes::{is_documented, is_no_request};

/// Says what is wrong with an answer, if anything.
pub(super) fn wrong(answer: &Answer) -> Option<String> {
    let served = answer.header("x-ms-request-id").is_some();
    match answer.status {
        200..=299 => wrong_inside(answer),
        status if !served && is_no_request(status) => None,
        status if !served => Some(format!("status {status} without a request id")),
        status => {
            let code = answer.header("x-ms-error-code").unwrap_or("none");
            if !is_documented(status, code) {
                return Some(format!("status {status} with the code {code}"));
            }
            wrong_body(answer, code)
        }
    }
}

/// Errors repeat their code in the body, in JSON or XML.
fn wrong_body(answer: &Answer, code: &str) -> Option<String> {
    if answer.body.is_empty() {
        return None;
    }
    let text = answer.text();
    let same = match answer.header("content-type").unwrap_or_default().contains("xml") {
        true => text.contains(&format!("<code>{code}</code>")),
        false => answer.json()["odata.error"]["code"] == code,
    };
    (!same).then(|| format!("the body does not say {code}: {text}"))
}

/// The answer to a transaction has errors of its own inside.
fn wrong_inside(answer: &Answer) -> Option<String> {
    if answer.status != 202 {
        return None;
    }
    let text = answer.text();
    let mut status = 0;
    for line in text.lines() {
        if let Some(rest) = line.strip_prefix("HTTP/1.1 ") {
            status = rest.get(..3).and_then(|word| word.parse().ok()).unwrap_or(0);
        }
        let code = line.strip_prefix("x-ms-error-code: ");
        if let Some(code) = code.filter(|code| !is_documented(status, code)) {
            return Some(format!("status {status} with the code {code} inside a transaction"));
        }
        if status >= 500 {
            return Some(format!("status {status} inside a transaction"));
        }
    }
    None
}
