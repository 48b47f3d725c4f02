//! Messages on the wire.

use expect_test::expect;

use crate::raw::{Server, elements};
use crate::{check, put, with_queue};

/// Receives one message, and answers its path with its receipt.
fn receive(server: &Server) -> (String, String) {
    let answer = server.whole("GET /dev/orders/messages");
    let one = |name| elements(&answer, name).pop().unwrap();
    (format!("/dev/orders/messages/{}", one("MessageId")), one("PopReceipt"))
}

#[test]
fn put_peek_get() {
    let server = with_queue();
    check(
        &server,
        &put("a &lt;b&gt;"),
        expect![[r#"
        201 Created
        cache-control: no-cache

        <?xml version="1.0" encoding="utf-8"?><QueueMessagesList><QueueMessage><MessageId><id></MessageId><InsertionTime><time></InsertionTime><ExpirationTime><time></ExpirationTime><PopReceipt><receipt></PopReceipt><TimeNextVisible><time></TimeNextVisible></QueueMessage></QueueMessagesList>
    "#]],
    );
    check(
        &server,
        "GET /dev/orders/messages?peekonly=true",
        expect![[r#"
        200 OK
        cache-control: no-cache

        <?xml version="1.0" encoding="utf-8"?><QueueMessagesList><QueueMessage><MessageId><id></MessageId><InsertionTime><time></InsertionTime><ExpirationTime><time></ExpirationTime><DequeueCount>0</DequeueCount><MessageText>a &lt;b&gt;</MessageText></QueueMessage></QueueMessagesList>
    "#]],
    );
    check(
        &server,
        "GET /dev/orders/messages?numofmessages=32",
        expect![[r#"
        200 OK
        cache-control: no-cache

        <?xml version="1.0" encoding="utf-8"?><QueueMessagesList><QueueMessage><MessageId><id></MessageId><InsertionTime><time></InsertionTime><ExpirationTime><time></ExpirationTime><PopReceipt><receipt></PopReceipt><TimeNextVisible><time></TimeNextVisible><DequeueCount>1</DequeueCount><MessageText>a &lt;b&gt;</MessageText></QueueMessage></QueueMessagesList>
    "#]],
    );
    check(
        &server,
        "GET /dev/orders/messages",
        expect![[r#"
        200 OK
        cache-control: no-cache

        <?xml version="1.0" encoding="utf-8"?><QueueMessagesList></QueueMessagesList>
    "#]],
    );
}

#[test]
fn a_message_may_live_forever_and_hide_at_first() {
    let server = with_queue();
    let forever = put("a").replace("messages\n", "messages?messagettl=-1\n");
    check(
        &server,
        &forever,
        expect![[r#"
        201 Created
        cache-control: no-cache

        <?xml version="1.0" encoding="utf-8"?><QueueMessagesList><QueueMessage><MessageId><id></MessageId><InsertionTime><time></InsertionTime><ExpirationTime>Fri, 31 Dec 9999 23:59:59 GMT</ExpirationTime><PopReceipt><receipt></PopReceipt><TimeNextVisible><time></TimeNextVisible></QueueMessage></QueueMessagesList>
    "#]],
    );
    let hidden = put("b").replace("messages\n", "messages?visibilitytimeout=60\n");
    assert!(server.send(&hidden).starts_with("201"));
    let seen = server.send("GET /dev/orders/messages?peekonly=true&numofmessages=32");
    assert_eq!(elements(&seen, "MessageText"), ["a"]);
}

#[test]
fn a_message_is_settled_by_who_holds_it() {
    let server = with_queue();
    server.send(&put("first"));
    let (path, receipt) = receive(&server);
    let text = "<QueueMessage><MessageText>second</MessageText></QueueMessage>";
    let update = format!("PUT {path}?popreceipt={receipt}&visibilitytimeout=0\n\n{text}");
    check(
        &server,
        &update,
        expect![[r#"
        204 No Content
        x-ms-popreceipt: <masked>
        x-ms-time-next-visible: <masked>
    "#]],
    );
    assert_eq!(server.refusal(&update), "400 PopReceiptMismatch", "the old receipt is gone");
    let (path, newer) = receive(&server);
    let delete = |receipt: &str| format!("DELETE {path}?popreceipt={receipt}");
    assert_eq!(server.refusal(&delete(&receipt)), "400 PopReceiptMismatch");
    assert_eq!(server.refusal(&delete("none")), "400 InvalidQueryParameterValue");
    check(
        &server,
        &delete(&newer),
        expect![[r#"
        204 No Content
    "#]],
    );
    assert_eq!(server.refusal(&delete(&newer)), "404 MessageNotFound");
    let seen = server.send("GET /dev/orders/messages?peekonly=true");
    assert!(elements(&seen, "MessageText").is_empty());
}

#[test]
fn an_update_without_a_body_keeps_what_the_message_says() {
    let server = with_queue();
    server.send(&put("kept"));
    let (path, receipt) = receive(&server);
    let update = format!("PUT {path}?popreceipt={receipt}&visibilitytimeout=0");
    assert!(server.send(&update).starts_with("204"));
    let seen = server.send("GET /dev/orders/messages");
    assert_eq!(elements(&seen, "MessageText"), ["kept"]);
    assert_eq!(elements(&seen, "DequeueCount"), ["2"]);
}

#[test]
fn who_puts_a_message_may_delete_it() {
    let server = with_queue();
    let answer = server.whole(&put("mine"));
    let one = |name| elements(&answer, name).pop().unwrap();
    let (id, receipt) = (one("MessageId"), one("PopReceipt"));
    let delete = format!("DELETE /dev/orders/messages/{id}?popreceipt={receipt}");
    assert!(server.send(&delete).starts_with("204"));
}

#[test]
fn clear_messages() {
    let server = with_queue();
    for text in ["a", "b", "c"] {
        server.send(&put(text));
    }
    check(
        &server,
        "DELETE /dev/orders/messages",
        expect![[r#"
        204 No Content
    "#]],
    );
    let seen = server.send("GET /dev/orders/messages?peekonly=true");
    assert!(elements(&seen, "MessageText").is_empty());
    assert_eq!(server.refusal("DELETE /dev/others/messages"), "404 QueueNotFound");
}

#[test]
fn what_a_message_says_comes_back_as_it_was() {
    let server = with_queue();
    let text = " \t line&#xD;\n\u{e9}\u{1f600} ]]&gt; &amp;amp; ";
    server.send(&put(text));
    let seen = server.whole("GET /dev/orders/messages");
    assert_eq!(elements(&seen, "MessageText"), [text]);
}

#[test]
fn messages_of_queues_that_are_not_there() {
    let server = Server::start();
    assert_eq!(server.refusal(&put("a")), "404 QueueNotFound");
    assert_eq!(server.refusal("GET /dev/orders/messages"), "404 QueueNotFound");
    assert_eq!(server.refusal("GET /dev/orders/messages?peekonly=true"), "404 QueueNotFound");
}
