//! Functions over the wire: libraries are loaded, called, listed, replaced and deleted.

use super::harness::{Client, Setup};

const LIBRARY: &str = "#!lua name=counters\n\
    redis.register_function('bump', function(keys, args) \
      return redis.call('INCRBY', keys[1], args[1]) end)\n\
    redis.register_function{function_name='show', flags={'no-writes'}, \
      callback=function(keys) return redis.call('GET', keys[1]) end}";

#[tokio::test]
async fn a_library_is_loaded_called_listed_and_deleted() {
    let mut client = Client::connect(Setup::default().serve().await.address).await;
    assert_eq!(client.text(&["FUNCTION", "LOAD", LIBRARY]).await, "counters");
    let twice = "-ERR Library 'counters' already exists";
    assert_eq!(client.text(&["FUNCTION", "LOAD", LIBRARY]).await, twice);
    assert_eq!(client.text(&["FUNCTION", "LOAD", "REPLACE", LIBRARY]).await, "counters");
    assert_eq!(client.text(&["FCALL", "bump", "1", "n", "5"]).await, "5");
    assert_eq!(client.text(&["FCALL", "bump", "1", "n", "5"]).await, "10");
    assert_eq!(client.text(&["FCALL_RO", "show", "1", "n"]).await, "10");
    let refused = "-ERR Can not execute a script with write flag using *_ro command.";
    assert_eq!(client.text(&["FCALL_RO", "bump", "1", "n", "5"]).await, refused);
    assert_eq!(client.text(&["FCALL", "none", "0"]).await, "-ERR Function not found");
    let list = client.text(&["FUNCTION", "LIST", "LIBRARYNAME", "counters"]).await;
    assert!(list.contains("library_name counters") && list.contains("no-writes"), "{list}");
    assert_eq!(client.text(&["FUNCTION", "DELETE", "counters"]).await, "OK");
    assert_eq!(client.text(&["FCALL", "bump", "1", "n", "5"]).await, "-ERR Function not found");
    let none = "-ERR Missing library metadata";
    assert_eq!(client.text(&["FUNCTION", "LOAD", "return 1"]).await, none);
}
