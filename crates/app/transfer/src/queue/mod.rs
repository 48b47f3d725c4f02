//! Queues of an account and their messages, as people look at them: list, create, delete, put, peek, get and clear.

mod message;

use std::io::BufRead;
use std::sync::Arc;

use clap::Args;
use lazuli_console::{Failure, Result, output};
use lazuli_http::uri::percent_encode;
use lazuli_http::xml;
use serde_json::{Value, json};

use crate::account::Account;
use crate::pages::{each, marker};
use crate::session::{Call, Session};
use message::{Message, read_messages};

/// The most messages that the service gives at once.
pub const COUNT_MAX: u64 = 32;
/// The longest time for which the service hides a message: seven days.
pub const HIDDEN_SECONDS_MAX: u64 = 7 * 24 * 60 * 60;
/// The most queues of a list, since it is kept in memory.
const QUEUES_MAX: usize = 1_000_000;
const PAGE_NAMES_MAX: usize = 5_000;
const COUNT_HEADER: &str = "x-ms-approximate-messages-count";

#[derive(Clone, Debug, Args)]
pub struct Put {
    /// The queue
    #[arg(value_parser = queue_name)]
    pub queue: String,
    /// The texts of the messages; `-` reads one message from each line of standard input
    #[arg(required = true, value_name = "TEXT")]
    pub texts: Vec<String>,
    /// How long a message lives [default: the service's, seven days]
    #[arg(long, value_name = "SECONDS", conflicts_with = "forever")]
    pub ttl: Option<u32>,
    /// Messages that live until they are deleted
    #[arg(long)]
    pub forever: bool,
    /// How long a message stays hidden first
    #[arg(long, value_name = "SECONDS", default_value_t = 0,
          value_parser = clap::value_parser!(u64).range(0..=HIDDEN_SECONDS_MAX))]
    pub delay: u64,
    /// Encode the texts in base64, as many programs expect it
    #[arg(long)]
    pub base64: bool,
}

#[derive(Clone, Debug, Args)]
pub struct Peek {
    /// The queue
    #[arg(value_parser = queue_name)]
    pub queue: String,
    /// How many messages
    #[arg(long, value_name = "N", default_value_t = 10,
          value_parser = clap::value_parser!(u64).range(1..=COUNT_MAX))]
    pub count: u64,
    /// Decode texts that are base64
    #[arg(long)]
    pub base64: bool,
}

#[derive(Clone, Debug, Args)]
pub struct Get {
    #[command(flatten)]
    pub peek: Peek,
    /// How long the messages are hidden from others
    #[arg(long, value_name = "SECONDS", default_value_t = 30,
          value_parser = clap::value_parser!(u64).range(1..=HIDDEN_SECONDS_MAX))]
    pub visibility: u64,
    /// Delete the messages once they are printed
    #[arg(long)]
    pub delete: bool,
}

/// Reads the name of a queue. Refuses names that would change the path of a request.
pub fn queue_name(name: &str) -> std::result::Result<String, &'static str> {
    let fits = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    if (3..=63).contains(&name.len()) && name.bytes().all(fits) {
        return Ok(name.to_owned());
    }
    Err("the name of a queue has 3 to 63 lower-case letters, digits and hyphens")
}

/// Prints all queues, with the number of their messages if that is asked for: it takes a request for each queue.
pub fn list(account: Arc<Account>, counts: bool, json: bool) -> Result<()> {
    let mut session = Session::new(account)?;
    let mut names: Vec<String> = Vec::new();
    each(&mut session, "/", &format!("comp=list&maxresults={PAGE_NAMES_MAX}"), |root| {
        let list = root.child("Queues").map_or(&[][..], |list| &list.children);
        names.extend(list.iter().filter_map(|one| one.child_text("Name").map(str::to_owned)));
        if names.len() > QUEUES_MAX {
            return Err(Failure::failed(format!("there are over {QUEUES_MAX} queues")));
        }
        Ok(marker(root))
    })?;
    let mut queues = Vec::with_capacity(names.len());
    for name in names {
        let mut queue = json!({ "queue": name });
        if counts {
            queue["messages"] = json!(count(&mut session, &name)?);
        }
        queues.push(queue);
    }
    let queues = Value::Array(queues);
    if json {
        output::json(&json!({ "queues": queues }));
    } else {
        let columns: &[&str] = if counts { &["queue", "messages"] } else { &["queue"] };
        output::table(columns, &output::rows(&queues, columns));
    }
    Ok(())
}

/// How many messages a queue has, hidden ones included.
fn count(session: &mut Session, queue: &str) -> Result<u64> {
    let path = format!("/{queue}");
    let answer = session.expect(Call { query: "comp=metadata", ..Call::new("GET", &path) })?;
    let count = answer.header(COUNT_HEADER).and_then(|text| text.parse().ok());
    count.ok_or_else(|| Failure::failed("the service does not say how many messages there are"))
}

pub fn create(account: Arc<Account>, name: &str, json: bool) -> Result<()> {
    let path = format!("/{name}");
    Session::new(account)?.expect(Call::new("PUT", &path))?;
    output::changed(json, &json!({ "queue": name }), || format!("created queue {name}"));
    Ok(())
}

pub fn delete(account: Arc<Account>, name: &str, json: bool) -> Result<()> {
    let path = format!("/{name}");
    Session::new(account)?.expect(Call::new("DELETE", &path))?;
    output::changed(json, &json!({ "queue": name }), || format!("deleted queue {name}"));
    Ok(())
}

/// Puts messages in the order of their texts. What was put before a failure stays, and the failure says how many.
pub fn put(account: Arc<Account>, options: &Put, json: bool) -> Result<()> {
    let mut session = Session::new(account)?;
    let path = format!("/{}/messages", options.queue);
    let query = put_query(options);
    let mut put = 0_u64;
    let mut send = |text: &str| -> Result<()> {
        let body = message::body(text, options.base64)?;
        let call = Call { query: &query, body: body.as_bytes(), ..Call::new("POST", &path) };
        session.expect(call)?;
        put += 1;
        Ok(())
    };
    let sent: Result<()> = options.texts.iter().try_for_each(|text| match text.as_str() {
        "-" => std::io::stdin().lock().lines().try_for_each(|line| {
            let line = line.map_err(|error| {
                Failure::failed(format!("standard input cannot be read: {error}"))
            })?;
            send(&line)
        }),
        text => send(text),
    });
    let queue = &options.queue;
    sent.map_err(|failure| match put {
        0 => failure,
        _ => failure.hint(format!("{put} messages before it were put into {queue}")),
    })?;
    output::changed(json, &json!({ "queue": queue, "put": put }), || {
        let messages = if put == 1 { "message" } else { "messages" };
        format!("put {put} {messages} into {queue}")
    });
    Ok(())
}

fn put_query(options: &Put) -> String {
    let mut query = format!("visibilitytimeout={}", options.delay);
    match (options.forever, options.ttl) {
        (true, _) => query.push_str("&messagettl=-1"),
        (false, Some(seconds)) => query.push_str(&format!("&messagettl={seconds}")),
        (false, None) => {}
    }
    query
}

/// Prints the messages at the front and leaves them as they are.
pub fn peek(account: Arc<Account>, options: &Peek, json: bool) -> Result<()> {
    let mut session = Session::new(account)?;
    let query = format!("peekonly=true&numofmessages={}", options.count);
    let messages = fetch(&mut session, &options.queue, &query, options.base64)?;
    print(&messages, json, &["inserted", "dequeued", "text"]);
    Ok(())
}

/// Prints the messages at the front, and hides them from others for a while or deletes them.
pub fn get(account: Arc<Account>, options: &Get, json: bool) -> Result<()> {
    let mut session = Session::new(account)?;
    let Peek { queue, count, base64 } = &options.peek;
    let query = format!("numofmessages={count}&visibilitytimeout={}", options.visibility);
    let messages = fetch(&mut session, queue, &query, *base64)?;
    print(&messages, json, &["id", "receipt", "dequeued", "text"]);
    if options.delete {
        for message in &messages {
            let (id, receipt) = (percent_encode(&message.id), percent_encode(&message.receipt));
            let path = format!("/{queue}/messages/{id}");
            let query = format!("popreceipt={receipt}");
            session.expect(Call { query: &query, ..Call::new("DELETE", &path) })?;
        }
    }
    Ok(())
}

fn fetch(session: &mut Session, queue: &str, query: &str, base64: bool) -> Result<Vec<Message>> {
    let path = format!("/{queue}/messages");
    let answer = session.expect(Call { query, ..Call::new("GET", &path) })?;
    let read = xml::parse(&answer.body).ok().and_then(|root| read_messages(&root, base64));
    read.ok_or_else(|| Failure::failed("the answer of the service is not a list of messages"))
}

fn print(messages: &[Message], json: bool, columns: &[&str]) {
    let messages = Value::Array(messages.iter().map(Message::json).collect());
    if json {
        output::json(&json!({ "messages": messages }));
    } else {
        output::table(columns, &output::rows(&messages, columns));
    }
}

/// Deletes all messages of a queue.
pub fn clear(account: Arc<Account>, name: &str, json: bool) -> Result<()> {
    let path = format!("/{name}/messages");
    Session::new(account)?.expect(Call::new("DELETE", &path))?;
    output::changed(json, &json!({ "queue": name }), || format!("cleared queue {name}"));
    Ok(())
}
