//! Triggers before and after an operation.

use lazuli_scripts::{Limits, Message, Outcome, Role, ScriptError, TriggerOperation};
use lazuli_value::Value;

use crate::container::{Container, input, json, run_with};

fn before(source: &str, item: &str) -> Result<Outcome, ScriptError> {
    let mut input = input(Role::PreTrigger { operation: TriggerOperation::Create });
    input.request.body = Some(json(item));
    run_with(&mut Container::default(), source, input, Limits::default())
}

#[test]
fn a_trigger_before_the_operation_changes_its_body() {
    let source = "function () {
        var request = getContext().getRequest(), item = request.getBody();
        item.kind = request.getOperationType();
        request.setBody(item);
    }";
    let outcome = before(source, "{\"id\":\"a\"}").unwrap();
    assert_eq!(outcome.request, Some(json("{\"id\":\"a\",\"kind\":\"Create\"}")));
    assert_eq!(outcome.response, None);
}

#[test]
fn a_trigger_before_the_operation_has_no_response() {
    let source =
        "function () { if (getContext().getResponse) throw 'has one'; __.filter(x => true); }";
    let failed = before(source, "{}").unwrap_err();
    let ScriptError::Thrown(exception) = failed else { panic!("{failed:?}") };
    assert!(exception.text.contains("A callback must be given"), "{}", exception.text);
}

#[test]
fn a_trigger_after_the_operation_reads_the_item_and_writes_others() {
    let source = "function () {
        var item = getContext().getResponse().getBody();
        __.upsertDocument(__.getSelfLink(), {id: 'meta', last: item.id}, function (err) {
            if (err) throw err;
        });
    }";
    let response = Message { body: Some(json("{\"id\":\"a\"}")), headers: Vec::new() };
    let role = Role::PostTrigger { operation: TriggerOperation::Replace, response };
    let mut container = Container::default();
    let outcome = run_with(&mut container, source, input(role), Limits::default()).unwrap();
    assert_eq!(outcome.calls, 1);
    assert_eq!(container.items["meta"].get("last"), Some(&Value::from("a")));
}

#[test]
fn a_trigger_that_throws_says_why() {
    let source = "function () { if (!getContext().getRequest().getBody().name) throw new Error(400, 'Name'); }";
    let failed = before(source, "{\"id\":\"a\"}").unwrap_err();
    assert_eq!((failed.status(), failed.substatus()), (400, Some(400)));
}
