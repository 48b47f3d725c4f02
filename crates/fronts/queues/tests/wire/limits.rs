//! Limits of the service, and those that can be lifted.

use lazuli_azure::auth::bearer::Tokens;
use lazuli_queues::Limits;

use crate::raw::Server;
use crate::{put, with_queue};

#[test]
fn a_message_has_a_size() {
    let server = with_queue();
    assert_eq!(server.refusal(&put(&"x".repeat(64 * 1024))), "201 without a code");
    let large = put(&"x".repeat(64 * 1024 + 1));
    assert_eq!(server.refusal(&large), "413 RequestBodyTooLarge");
    let lifted = Limits { message_bytes_max: 1024 * 1024, ..Limits::default() };
    let server = Server::with(lifted, Tokens::Off);
    server.send("PUT /dev/orders");
    assert_eq!(server.refusal(&large), "201 without a code");
    let huge = put(&"x".repeat(5 * 1024 * 1024));
    assert_eq!(server.refusal(&huge), "413 RequestBodyTooLarge");
}

#[test]
fn what_is_no_message_is_refused() {
    let server = with_queue();
    let put = |body: &str| server.refusal(&format!("POST /dev/orders/messages\n\n{body}"));
    assert_eq!(put("hello"), "400 InvalidXmlDocument");
    assert_eq!(put("<QueueMessage/>"), "400 MissingRequiredXmlNode");
    assert_eq!(put(""), "400 InvalidXmlDocument");
}

#[test]
fn a_queue_can_be_slowed_down_for_rehearsals() {
    let limits = Limits { messages_per_second_max: Some(3), ..Limits::default() };
    let server = Server::with(limits, Tokens::Off);
    server.send("PUT /dev/orders");
    for _ in 0..3 {
        assert_eq!(server.refusal(&put("a")), "201 without a code");
    }
    let busy = server.send(&put("a"));
    assert!(
        busy.starts_with("503 Service Unavailable\nx-ms-error-code: ServerBusy\nretry-after: 1\n")
    );
    assert_eq!(server.refusal("GET /dev/orders/messages"), "503 ServerBusy");
    assert!(server.send("GET /dev/orders?comp=metadata").starts_with("200"), "messages only");
    server.send("PUT /dev/others");
    let other = put("a").replace("orders", "others");
    assert_eq!(server.refusal(&other), "201 without a code", "each queue by itself");
}
