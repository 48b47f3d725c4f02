//! The service's limits hold by default and are lifted by whoever mounts the front.

use std::time::Duration;

use lazuli_tables::Limits;

use crate::raw::Server;
use crate::with_table;

fn create(limits: Limits) -> Server {
    let server = Server::with_limits(limits);
    server.send("POST /dev/Tables\n\n{\"TableName\":\"People\"}");
    server
}

fn transaction(operations: usize) -> String {
    let insert = |row: usize| {
        let entity = format!("{{\"PartitionKey\":\"p\",\"RowKey\":\"{row:04}\"}}");
        format!("--c\n\nPOST /dev/People HTTP/1.1\nPrefer: return-no-content\n\n{entity}\n")
    };
    let parts: String = (0..operations).map(insert).collect();
    format!(
        "POST /dev/$batch\ncontent-type: multipart/mixed; boundary=b\n\n--b\nContent-Type: \
         multipart/mixed; boundary=c\n\n{parts}--c--\n--b--\n"
    )
}

#[test]
fn a_transaction_of_any_size_is_a_matter_of_settings() {
    let made = |server: &Server, count| {
        server.send(&transaction(count)).matches("HTTP/1.1 204 No Content").count()
    };
    assert_eq!(made(&create(Limits::default()), 101), 0);
    let operations = Limits { transaction_operations_max: 2_000, ..Limits::default() };
    assert_eq!(made(&create(operations), 2_000), 2_000);
    let short = Limits { transaction_bytes_max: 1_000, ..Limits::default() };
    assert_eq!(create(short.clone()).refusal(&transaction(50)), "413 RequestBodyTooLarge");
    assert_eq!(made(&create(Limits { transaction_bytes_max: 100_000, ..short }), 50), 50);
}

#[test]
fn entities_of_any_size_are_a_matter_of_settings() {
    let large = format!(
        "POST /dev/People\n\n{{\"PartitionKey\":\"{}\",\"RowKey\":\"r\",{},\"T\":\"{}\"}}",
        "k".repeat(600),
        (0..240).map(|n| format!("\"P{n}\":{n}")).collect::<Vec<_>>().join(","),
        "x".repeat(700_000)
    );
    let lifted = Limits {
        key_units_max: 600,
        property_count_max: 241,
        value_bytes_max: 1_400_000,
        entity_bytes_max: 2_000_000,
        ..Limits::default()
    };
    assert_eq!(create(lifted.clone()).refusal(&large), "201 without a code");
    for (limits, expected) in [
        (Limits { key_units_max: 512, ..lifted.clone() }, "400 KeyValueTooLarge"),
        (Limits { property_count_max: 240, ..lifted.clone() }, "400 TooManyProperties"),
        (Limits { value_bytes_max: 65_536, ..lifted.clone() }, "400 PropertyValueTooLarge"),
        (Limits { entity_bytes_max: 1_048_576, ..lifted.clone() }, "400 EntityTooLarge"),
    ] {
        assert_eq!(create(limits).refusal(&large), expected);
    }
}

/// A query that finds nothing for long answers with where to go on.
#[test]
fn a_query_ends_its_page_when_its_time_is_over() {
    let scan = |limits: Limits| {
        let server = create(Limits { transaction_operations_max: 11_000, ..limits });
        server.send(&transaction(11_000));
        server.send("GET /dev/People()?$filter=Nothing%20eq%201")
    };
    assert!(!scan(Limits::default()).contains("x-ms-continuation-nextrowkey"));
    let hasty = Limits { scan_time_max: Duration::ZERO, ..Limits::default() };
    let page = scan(hasty);
    assert!(page.contains("x-ms-continuation-nextrowkey") && page.contains("\"value\":[]"));
}

/// Where the offset carries the moment out of the years that have four digits, no client could read it back.
#[test]
fn a_date_beyond_the_year_9999_is_refused() {
    let server = with_table();
    let insert = |date: &str| {
        let entity = format!(
            r#"{{"PartitionKey":"p","RowKey":"r","D@odata.type":"Edm.DateTime","D":"{date}"}}"#
        );
        server.refusal(&format!("POST /dev/People\n\n{entity}"))
    };
    assert_eq!(insert("9999-12-31T23:59:59-14:00"), "400 InvalidInput");
    assert_eq!(insert("9999-12-31T23:59:59.9999999Z"), "201 without a code");
}
