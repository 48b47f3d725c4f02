//! Stored procedures: the context, the operations on items, callbacks and errors.

use lazuli_scripts::{Call, IndexAction, Limits, Link, ScriptError};

use crate::container::{Container, procedure, response, run, run_with};

#[test]
fn a_procedure_gets_its_arguments_and_sets_the_body() {
    let mut container = Container::default();
    let hello = "function (prefix, n) { getContext().getResponse().setBody(prefix + ' ' + n); }";
    assert_eq!(response(&mut container, hello, "[\"Hello\", 5]"), "\"Hello 5\"");
    let body = "function () { __.response.setBody(__.request.getBody()); }";
    assert_eq!(response(&mut container, body, "[1,{\"a\":2}]"), "[1,{\"a\":2}]");
    assert_eq!(response(&mut container, "function () {}", "[]"), "undefined");
    let append = "function () { var r = __.response; r.appendBody('a'); r.appendBody(1); }";
    assert_eq!(response(&mut container, append, "[]"), "\"a1\"");
}

#[test]
fn items_are_created_read_replaced_and_deleted_with_callbacks() {
    let mut container = Container::default();
    let source = "function () {
        var c = getContext().getCollection(), seen = [];
        var ok = c.createDocument(c.getSelfLink(), {id: 'a', n: 1}, function (err, item) {
            if (err) throw err;
            seen.push(item.n);
            c.readDocument(item._self, function (err, item) {
                item.n = 2;
                c.replaceDocument(item._self, item, {etag: 'x'}, function (err, item) {
                    seen.push(item.n);
                    c.deleteDocument(c.getAltLink() + '/docs/a', {}, function (err, options) {
                        seen.push(err === undefined);
                        c.upsertDocument(c.getAltLink(), {id: 'b'}, {indexAction: 'exclude'});
                        getContext().getResponse().setBody(seen);
                    });
                });
            });
        });
        if (!ok) throw new Error('not accepted');
    }";
    assert_eq!(response(&mut container, source, "[]"), "[1,2,true]");
    assert_eq!(container.ids(), ["b"]);
    let calls = &container.calls;
    assert!(matches!(&calls[1], Call::Read { item: Link::Rid(rid), .. } if rid == "a"));
    assert!(matches!(&calls[2], Call::Replace { write, .. } if write.etag.as_deref() == Some("x")));
    assert!(matches!(&calls[3], Call::Delete { item: Link::Id(id), .. } if id == "a"));
    assert!(matches!(&calls[4], Call::Upsert(write) if write.index == IndexAction::Exclude));
}

#[test]
fn a_missing_id_is_generated_unless_the_script_says_no() {
    let mut container = Container::default();
    let create = "function (options) {
        __.createDocument(__.getSelfLink(), {n: 1}, options, function (err, item) {
            __.response.setBody(err ? err.number : item.id);
        });
    }";
    assert_eq!(response(&mut container, create, "[{}]"), "\"generated\"");
    let refused = "[{\"disableAutomaticIdGeneration\":true}]";
    assert_eq!(response(&mut container, create, refused), "400");
}

#[test]
fn an_error_goes_to_the_callback_and_without_one_ends_the_script() {
    let mut container = Container::with(&["{\"id\":\"a\"}"]);
    let told = "function () {
        __.createDocument(__.getSelfLink(), {id: 'a'}, function (err, item) {
            __.response.setBody([err.number === ErrorCodes.Conflict, JSON.parse(err.body).Errors.length, typeof item]);
        });
    }";
    assert_eq!(response(&mut container, told, "[]"), "[true,1,\"undefined\"]");
    let untold = "function () { __.createDocument(__.getSelfLink(), {id: 'a'}); }";
    let expected =
        "Error: {\"Errors\":[\"Resource with specified id or name already exists.\"]} (Some(409))";
    assert_eq!(response(&mut container, untold, "[]"), expected);
}

#[test]
fn throw_and_abort_end_the_script_with_their_reason() {
    let mut container = Container::default();
    let numbered = "function () { throw new Error(404, 'No item'); }";
    assert_eq!(response(&mut container, numbered, "[]"), "Error: No item (Some(404))");
    let plain = "function () { throw new Error('No item'); }";
    assert_eq!(response(&mut container, plain, "[]"), "Error: No item (None)");
    let aborted = "function () {
        Promise.resolve().then(function () { getContext().abort(new Error(409, 'late')); });
        __.response.setBody('never');
    }";
    assert_eq!(response(&mut container, aborted, "[]"), "Error: late (Some(409))");
    let caught = "function () { try { getContext().abort('now'); } catch (e) {} }";
    assert_eq!(response(&mut container, caught, "[]"), "now (None)");
}

#[test]
fn a_rejected_promise_is_not_an_exception_as_in_the_service() {
    let mut container = Container::default();
    let source = "() => { (async () => { throw new Error('foo'); })(); __.response.setBody(1); }";
    assert_eq!(response(&mut container, source, "[]"), "1");
}

#[test]
fn promises_and_callbacks_go_together() {
    let mut container = Container::default();
    let source = "async function (n) {
        const create = (id) => new Promise((done, fail) =>
            __.createDocument(__.getSelfLink(), {id}, (err, item) => err ? fail(err) : done(item)));
        for (let i = 0; i < n; i++) await create('i' + i);
        __.response.setBody('done');
    }";
    assert_eq!(response(&mut container, source, "[20]"), "\"done\"");
    assert_eq!(container.ids().len(), 20);
}

#[test]
fn links_outside_of_the_container_and_wrong_arguments_are_refused() {
    let mut container = Container::default();
    for (call, part) in [
        ("__.createDocument('dbs/d/colls/other', {})", "does not belong"),
        ("__.readDocument('dbs/d/colls/other/docs/a')", "is not one of a document"),
        ("__.readDocument('dbs/d/colls/c/docs/')", "is not one of a document"),
        ("__.readDocument('dbs/d/colls/c/docs/a/attachments/b')", "is not one of a document"),
        ("__.readDocument(5)", "not valid"),
        ("__.createDocument(__.getSelfLink())", "at least 2"),
        ("__.createDocument(__.getSelfLink(), 5)", "must be an object"),
        ("__.createDocument(__.getSelfLink(), [])", "must be an object"),
        ("__.createDocument(__.getSelfLink(), {}, 5)", "options must be"),
        ("__.createDocument(__.getSelfLink(), {}, {}, 5)", "callback must be"),
        ("__.createDocument(__.getSelfLink(), {}, {indexAction: 'maybe'})", "not valid"),
        ("__.queryDocuments(__.getSelfLink(), 5)", "not valid"),
        ("__.createAttachment(__.getSelfLink(), {})", "not supported"),
        ("__.request.setBody(1)", "Not a writable property"),
        ("__.response.setValue('x-new', 1)", "Cannot set new values"),
    ] {
        let answer = response(&mut container, &format!("function () {{ {call}; }}"), "[]");
        assert!(answer.contains(part), "{call}: {answer}");
    }
    assert!(container.calls.is_empty());
}

#[test]
fn the_log_is_kept_when_it_is_asked_for() {
    let mut container = Container::default();
    let source = "function () { console.log('a %s of %d', 'b', 2, {c: 3}); console.log('end'); }";
    let outcome = run(&mut container, source, "[]").unwrap();
    assert_eq!(outcome.log, "a b of 2 {\"c\":3}\nend\n");
    let mut silent = procedure("[]");
    silent.logging = false;
    let outcome = run_with(&mut container, source, silent, Limits::default()).unwrap();
    assert_eq!(outcome.log, "");
}

#[test]
fn headers_of_the_request_can_be_read() {
    let mut container = Container::default();
    let source = "function () { __.response.setBody(__.request.getValue('x-ms-version')); }";
    assert_eq!(response(&mut container, source, "[]"), "\"2020-07-15\"");
}

#[test]
fn a_script_leaves_nothing_behind_for_the_next_one() {
    let mut container = Container::default();
    let leave = "function () { globalThis.left = 1; Array.prototype.left = 2; Error = null; }";
    run(&mut container, leave, "[]").unwrap();
    let look = "function () { __.response.setBody([typeof left, typeof [].left, typeof Error]); }";
    let expected = "[\"undefined\",\"undefined\",\"function\"]";
    assert_eq!(response(&mut container, look, "[]"), expected);
}

#[test]
fn own_classes_of_errors_work() {
    let mut container = Container::default();
    let source = "function () {
        class Mine extends Error { constructor(text) { super(text); this.name = 'Mine'; } }
        var e = new Mine('m');
        __.response.setBody([e instanceof Mine, e instanceof Error, new TypeError('t') instanceof Error, String(e)]);
    }";
    assert_eq!(response(&mut container, source, "[]"), "[true,true,true,\"Mine: m\"]");
}

#[test]
fn a_syntax_error_is_one_of_the_source() {
    let failed = run(&mut Container::default(), "function () { return", "[]");
    assert!(matches!(failed, Err(ScriptError::Source(_))), "{failed:?}");
    assert_eq!(failed.unwrap_err().status(), 400);
}

#[test]
fn a_body_that_cannot_be_json_is_an_exception() {
    let mut container = Container::default();
    let source = "function () { var a = []; a.push(a); __.response.setBody(a); }";
    let failed = run(&mut container, source, "[]");
    assert!(matches!(failed, Err(ScriptError::Thrown(_))), "{failed:?}");
}
