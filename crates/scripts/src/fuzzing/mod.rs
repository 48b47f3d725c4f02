//! What must hold for any text of a script. Called by the fuzz target and by the tests on its seeds.

use std::time::Duration;

use lazuli_value::{Object, Value};

use crate::{Answer, Call, Input, Limits, Message, Role, Run, Step, Udf};

/// Limits so small that a fuzzer gets on.
fn limits() -> Limits {
    Limits {
        time: Duration::from_millis(50),
        accept_time: Duration::from_millis(40),
        memory_bytes: 4 * 1024 * 1024,
        result_bytes: 64 * 1024,
        calls: 50,
        ..Limits::default()
    }
}

/// Any text is refused as a script, or runs to an end within its limits.
pub fn script(data: &[u8]) {
    let Ok(source) = std::str::from_utf8(data) else { return };
    let limits = limits();
    if let Ok(mut function) = Udf::compile(source, &limits) {
        let _ = function.call(&[Some(Value::Int64(1)), None, Some(Value::from("text"))]);
    }
    let arguments = vec![Value::Int64(1), Value::from("text")];
    let input = Input {
        role: Role::Procedure { arguments },
        self_link: "dbs/AAAAAA==/colls/AAAAAIAAAAA=/".to_owned(),
        alt_link: "dbs/d/colls/c".to_owned(),
        request: Message::default(),
        logging: true,
    };
    let Ok((mut run, mut step)) = Run::start(source, input, &limits) else { return };
    let mut calls = 0;
    while let Step::Call(call) = step {
        calls += 1;
        assert!(calls <= limits.calls, "more calls than are allowed");
        let answer = match call {
            Call::ReadFeed(_) | Call::Query { .. } => {
                Answer::Feed { items: vec![Value::Object(Object::new())], continuation: None }
            }
            Call::Delete { .. } => Answer::Deleted,
            _ => Answer::Item(Value::Object(Object::new())),
        };
        step = match run.resume(answer) {
            Ok(step) => step,
            Err(_) => return,
        };
    }
}

#[cfg(test)]
mod tests;
