//! A durable cache that starts again reads everything, however many rows a partition has.

use lazuli_keyspace::Persistence;

use super::harness::{Client, Setup, memory_stores};

/// More rows than one page of a scan has.
const COUNT: usize = 12_000;
const AT_ONCE: usize = 1_000;

#[tokio::test]
async fn keys_and_elements_on_many_pages_are_each_there_once() {
    let setup = || Setup { persistence: Persistence::Always, ..Setup::default() };
    let service = Setup { stores: memory_stores(1), ..setup() }.serve().await;
    let mut client = Client::connect(service.address).await;
    let write = async |client: &mut Client, words: &[String]| {
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        client.text(&words).await
    };
    for first in (0..COUNT).step_by(AT_ONCE) {
        // All in one slot, and so in one partition.
        let mut strings = vec!["MSET".to_owned()];
        let mut hash = vec!["HSET".to_owned(), "{t}hash".to_owned()];
        let mut list = vec!["RPUSH".to_owned(), "{t}list".to_owned()];
        for number in first..first + AT_ONCE {
            strings.extend([format!("{{t}}{number}"), number.to_string()]);
            hash.extend([format!("f{number}"), number.to_string()]);
            list.push(number.to_string());
        }
        assert_eq!(write(&mut client, &strings).await, "OK");
        assert_eq!(write(&mut client, &hash).await, AT_ONCE.to_string());
        assert_eq!(write(&mut client, &list).await, (first + AT_ONCE).to_string());
    }
    let restarted = setup().serve_on(service.engine.clone().unwrap()).await;
    let mut client = Client::connect(restarted.address).await;
    assert_eq!(client.text(&["DBSIZE"]).await, (COUNT + 2).to_string());
    assert_eq!(client.text(&["HLEN", "{t}hash"]).await, COUNT.to_string());
    assert_eq!(client.text(&["LLEN", "{t}list"]).await, COUNT.to_string());
    for number in [0, 1, 9_999, 10_000, 10_001, COUNT - 1] {
        let text = number.to_string();
        assert_eq!(client.text(&["GET", &format!("{{t}}{number}")]).await, text);
        assert_eq!(client.text(&["HGET", "{t}hash", &format!("f{number}")]).await, text);
        assert_eq!(client.text(&["LINDEX", "{t}list", &text]).await, text);
    }
}
