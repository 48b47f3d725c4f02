//! Requests to Queues. Messages are hidden for an hour once they were received, so that time decides nothing.

use super::{Asked, Chance, Front};

const HIDDEN: &str = "visibilitytimeout=3600";

fn asked(method: &'static str, path: String) -> Asked {
    Asked::new(Front::Queues, method, format!("/devstoreaccount1/{path}"))
}

pub(super) fn next(chance: &mut Chance, seed: u64) -> Asked {
    let queue = chance.name(&format!("q{seed}n"), 2);
    let messages = format!("{queue}/messages");
    let slot = chance.below(4);
    let (id, receipt) = (format!("id {queue} {slot}"), format!("receipt {queue} {slot}"));
    let text = format!("message {} of {queue} &amp; more", chance.below(1000));
    let body = format!("<QueueMessage><MessageText>{text}</MessageText></QueueMessage>");
    match chance.below(100) {
        0..12 => asked("PUT", queue).with("x-ms-meta-colour", chance.name("colour", 2)),
        12..13 => asked("DELETE", queue),
        13..16 => asked("GET", format!("{queue}?comp=metadata")),
        16..18 => asked("PUT", format!("{queue}?comp=metadata"))
            .with("x-ms-meta-colour", chance.name("colour", 5)),
        18..20 => asked("GET", format!("?comp=list&prefix=q{seed}n&include=metadata")),
        20..50 => {
            let good = ["", "", "", "?messagettl=604800", "?messagettl=-1"];
            let more = [&good[..], &["?messagettl=0", "?visibilitytimeout=9999999"]].concat();
            asked("POST", format!("{messages}{}", chance.pick(&more))).body(body)
        }
        50..58 => {
            let count = ["1", "4", "32", "33"];
            asked("GET", format!("{messages}?peekonly=true&numofmessages={}", chance.pick(&count)))
        }
        58..75 => asked("GET", format!("{messages}?{HIDDEN}"))
            .keep(id, "MessageId")
            .keep(receipt, "PopReceipt"),
        75..82 => asked("PUT", format!("{messages}/<{id}>?popreceipt=<{receipt}>&{HIDDEN}"))
            .body(body)
            .keep(receipt, "x-ms-popreceipt"),
        82..96 => asked("DELETE", format!("{messages}/<{id}>?popreceipt=<{receipt}>")),
        96..97 => asked("DELETE", messages),
        _ => asked("GET", format!("{messages}?numofmessages=3&{HIDDEN}")),
    }
}
