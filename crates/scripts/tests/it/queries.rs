//! Feeds, queries by text and queries by functions.

use lazuli_scripts::Call;

use crate::container::{Container, json, response};

fn ten() -> Container {
    let items: Vec<String> =
        (0..10).map(|n| format!("{{\"id\":\"i{n}\",\"n\":{n},\"tags\":[[{n}],\"t\"]}}")).collect();
    Container::with(&items.iter().map(String::as_str).collect::<Vec<_>>())
}

#[test]
fn a_query_has_text_parameters_and_pages() {
    let mut container = ten();
    let source = "function () {
        var ids = [], q = {query: 'SELECT * FROM c WHERE c.n > @n', parameters: [{name: '@n', value: [1]}]};
        function next(continuation) {
            var options = {pageSize: 4, continuation: continuation};
            return __.queryDocuments(__.getSelfLink(), q, options, function (err, items, options) {
                ids.push(items.length);
                if (options.continuation) next(options.continuation); else __.response.setBody(ids);
            });
        }
        next();
    }";
    assert_eq!(response(&mut container, source, "[]"), "[4,4,2]");
    let Call::Query { text, parameters, page } = &container.calls[1] else { panic!() };
    assert_eq!(text, "SELECT * FROM c WHERE c.n > @n");
    assert_eq!(parameters, &[("@n".to_owned(), json("[1]"))]);
    assert_eq!((page.size, page.continuation.as_deref()), (4, Some("4")));
}

#[test]
fn read_documents_gives_pages_of_a_hundred() {
    let mut container = ten();
    let source = "function () { __.readDocuments(__.getAltLink(), function (err, items) {
        __.response.setBody(items.length); }); }";
    assert_eq!(response(&mut container, source, "[]"), "10");
    assert!(matches!(&container.calls[0], Call::ReadFeed(page) if page.size == 100));
}

#[test]
fn functions_filter_project_sort_and_flatten() {
    let cases = [
        ("__.filter(x => x.n > 7)", None),
        ("__.map(x => x.n > 7 ? x.n : undefined)", Some("[8,9]")),
        ("__.pluck('n')", Some("[0,1,2,3,4,5,6,7,8,9]")),
        (
            "__.chain().filter(x => x.n < 3).sortByDescending(x => x.n).pluck('n').value()",
            Some("[2,1,0]"),
        ),
        ("__.chain().filter(x => x.n < 3).sortBy(x => -x.n).pluck('n').value()", Some("[2,1,0]")),
        (
            "__.chain().filter(x => x.n < 2).pluck('tags').flatten().value()",
            Some("[0,\"t\",1,\"t\"]"),
        ),
        (
            "__.chain().filter(x => x.n < 1).pluck('tags').flatten(true).value()",
            Some("[[0],\"t\"]"),
        ),
        ("__.chain().filter(x => x.n < 1).unwind(x => x.tags).value()", Some("[[0],\"t\"]")),
        (
            "__.chain().filter(x => x.n < 1).unwind(x => x.tags, (x, t) => x.n).value()",
            Some("[0,0]"),
        ),
        ("__.filter(__, x => false)", Some("[]")),
    ];
    for (text, expected) in cases {
        let answer = response(&mut ten(), &format!("function () {{ {text}; }}"), "[]");
        if let Some(expected) = expected {
            assert_eq!(answer, expected, "{text}");
        } else {
            assert!(answer.contains("\"i8\"") && answer.contains("\"i9\""), "{text}: {answer}");
            assert!(!answer.contains("\"i7\""), "{text}: {answer}");
        }
    }
}

#[test]
fn a_filter_reads_on_until_its_page_is_full() {
    let mut container = ten();
    let source = "function () {
        var sizes = [];
        function next(continuation) {
            var result = __.filter(x => x.n % 2, {pageSize: 2, continuation: continuation}, function (err, items, o) {
                sizes.push(items.length);
                if (o.continuation) next(o.continuation); else __.response.setBody(sizes);
            });
            if (!result.isAccepted) throw 'not accepted';
        }
        next();
    }";
    assert_eq!(response(&mut container, source, "[]"), "[2,2,1]");
}

#[test]
fn an_exception_of_a_predicate_goes_to_the_callback() {
    let source =
        "function () { __.filter(x => x.a.b, function (err) { __.response.setBody(err.name); }); }";
    assert_eq!(response(&mut ten(), source, "[]"), "\"TypeError\"");
    let misplaced = "function () { __.chain().filter(x => x, {}).value(); }";
    assert!(response(&mut ten(), misplaced, "[]").contains("given to \"value\""));
}
