//! Requests to Tables as users send them, one after another, and what must be there afterwards.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use serde_json::Value;

use crate::program::{PUBLISHED_KEY, Server};

pub(crate) fn create_table(server: &Server, name: &str) -> u16 {
    let body = format!(r#"{{"TableName":"{name}"}}"#);
    server.tables(PUBLISHED_KEY, "POST", "/devstoreaccount1/Tables", &body).0
}

pub(crate) fn delete_table(server: &Server, name: &str) -> u16 {
    let path = format!("/devstoreaccount1/Tables('{name}')");
    server.tables(PUBLISHED_KEY, "DELETE", &path, "").0
}

pub(crate) fn insert(server: &Server, table: &str, key: &str, row: &str) -> (u16, String) {
    let entity = format!(r#"{{"PartitionKey":"{key}","RowKey":"{row}","Text":"{key} {row}"}}"#);
    server.tables(PUBLISHED_KEY, "POST", &format!("/devstoreaccount1/{table}"), &entity)
}

pub(crate) fn get(server: &Server, table: &str, key: &str, row: &str) -> (u16, String) {
    let path = format!("/devstoreaccount1/{table}(PartitionKey='{key}',RowKey='{row}')");
    server.tables(PUBLISHED_KEY, "GET", &path, "")
}

/// All entities of a table, as key and row.
pub(crate) fn entities(server: &Server, table: &str) -> BTreeSet<(String, String)> {
    let mut found = BTreeSet::new();
    let mut from = String::new();
    loop {
        let path = format!("/devstoreaccount1/{table}()?$select=PartitionKey,RowKey{from}");
        let (status, body) = server.tables(PUBLISHED_KEY, "GET", &path, "");
        assert_eq!(status, 200, "{body}");
        let page: Value = serde_json::from_str(&body).unwrap();
        let rows = page["value"].as_array().unwrap();
        let text = |row: &Value, name: &str| row[name].as_str().unwrap().to_owned();
        let Some(last) = rows.last() else { return found };
        let (key, row) = (text(last, "PartitionKey"), text(last, "RowKey"));
        from = format!(
            "&$filter=PartitionKey%20gt%20'{key}'%20or%20\
             (PartitionKey%20eq%20'{key}'%20and%20RowKey%20gt%20'{row}')"
        );
        found.extend(rows.iter().map(|row| (text(row, "PartitionKey"), text(row, "RowKey"))));
    }
}

/// The partition of a table that has one, and the shard that it is on.
pub(crate) fn partition_of(server: &Server, table: &str) -> (String, String) {
    let map = format!("tables/devstoreaccount1/{table}");
    let list = server.json(&["partition", "list", "--map", &map]);
    let partition = &list["partitions"][0];
    (partition["id"].to_string(), partition["shard"].as_str().unwrap().to_owned())
}

/// Writers that insert until they are told to stop. What was answered with 201 must be there in the end.
pub(crate) struct Writers {
    stop: AtomicBool,
    pub(crate) answered: AtomicUsize,
}

impl Writers {
    /// Runs writers on these servers, one each, while `work` is done, and answers what they wrote.
    pub(crate) fn during(
        servers: &[&Server],
        table: &str,
        work: impl FnOnce(&Self),
    ) -> BTreeSet<(String, String)> {
        let writers = Self { stop: AtomicBool::new(false), answered: AtomicUsize::new(0) };
        std::thread::scope(|scope| {
            let spawn = |(n, server)| {
                scope.spawn({
                    let writers = &writers;
                    move || writers.write(n, server, table)
                })
            };
            let tasks: Vec<_> = servers.iter().copied().enumerate().map(spawn).collect();
            // A panic of the work must not leave the writers at it.
            let done = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| work(&writers)));
            writers.stop.store(true, Ordering::Release);
            let written = tasks.into_iter().flat_map(|task| task.join().unwrap()).collect();
            if let Err(panic) = done {
                std::panic::resume_unwind(panic);
            }
            written
        })
    }

    fn write(&self, n: usize, server: &Server, table: &str) -> BTreeSet<(String, String)> {
        let mut written = BTreeSet::new();
        for count in 0.. {
            if self.stop.load(Ordering::Acquire) {
                break;
            }
            let (key, row) = (format!("key{:02}", count % 10), format!("writer{n}-{count:06}"));
            let (status, body) = insert(server, table, &key, &row);
            assert_eq!(status, 201, "writer {n}, {count}: {body}");
            written.insert((key, row));
            self.answered.fetch_add(1, Ordering::Release);
        }
        written
    }

    /// Lets the writers write so many more.
    pub(crate) fn pass(&self, more: usize) {
        let before = self.answered.load(Ordering::Acquire);
        crate::fleet::until("the writers go on", || {
            self.answered.load(Ordering::Acquire) >= before + more
        });
    }
}
