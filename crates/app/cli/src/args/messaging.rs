//! `lazuli bus …` and `lazuli hub …` as they are typed.

use clap::{Args as ClapArgs, Subcommand, ValueEnum};

use super::Target;

/// The account that a command is for, on a running server.
#[derive(Clone, Debug, ClapArgs)]
pub(crate) struct Owner {
    /// The account, which is the namespace [default: the server's first one]
    #[arg(long, value_name = "NAME")]
    pub(crate) account: Option<String>,
    #[command(flatten)]
    pub(crate) target: Target,
}

const NAMES_HELP: &str = "A subscription is named TOPIC/Subscriptions/NAME, the dead letters of \
    anything ENTITY/$DeadLetterQueue. More: docs/bus.md";

#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum Kind {
    Queue,
    Topic,
    Subscription,
}

impl Kind {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Queue => "queue",
            Self::Topic => "topic",
            Self::Subscription => "subscription",
        }
    }
}

/// What a new queue, topic or subscription is like.
#[derive(Debug, ClapArgs)]
pub(crate) struct NewEntity {
    pub(crate) kind: Kind,
    pub(crate) name: String,
    /// The fragments that it is spread over
    #[arg(long, value_name = "N")]
    pub(crate) partitions: Option<u32>,
    /// Every message belongs to a session
    #[arg(long)]
    pub(crate) sessions: bool,
    /// Drop messages whose id came within so many seconds before
    #[arg(long, value_name = "SECONDS")]
    pub(crate) duplicate_window: Option<u64>,
    /// For how long a receiver holds a message
    #[arg(long, value_name = "SECONDS")]
    pub(crate) lock: Option<u64>,
    /// How long messages live that do not say so themselves
    #[arg(long, value_name = "SECONDS")]
    pub(crate) lives: Option<u64>,
    /// After so many deliveries a message is a dead letter
    #[arg(long, value_name = "N")]
    pub(crate) max_deliveries: Option<u32>,
    /// Send everything on to another queue or topic
    #[arg(long, value_name = "NAME")]
    pub(crate) forward_to: Option<String>,
}

/// A message that is typed.
#[derive(Debug, ClapArgs)]
pub(crate) struct NewMessage {
    pub(crate) name: String,
    /// What it says; `-` reads standard input
    pub(crate) text: String,
    #[arg(long)]
    pub(crate) id: Option<String>,
    #[arg(long)]
    pub(crate) label: Option<String>,
    #[arg(long, value_name = "ID")]
    pub(crate) session: Option<String>,
    /// The partition key
    #[arg(long)]
    pub(crate) key: Option<String>,
    /// A property of the application; may be given more than once
    #[arg(long = "property", value_name = "NAME=VALUE")]
    pub(crate) properties: Vec<String>,
    /// Enqueue it after so many seconds
    #[arg(long, value_name = "SECONDS")]
    pub(crate) after: Option<u64>,
}

#[derive(Debug, Subcommand)]
pub(crate) enum BusCommand {
    /// List queues and topics with their counts
    List(#[command(flatten)] Owner),
    /// Show a queue, topic or subscription
    #[command(after_help = NAMES_HELP)]
    Show {
        name: String,
        #[command(flatten)]
        owner: Owner,
    },
    /// Create a queue, topic or subscription
    #[command(after_help = NAMES_HELP)]
    Create {
        #[command(flatten)]
        new: NewEntity,
        #[command(flatten)]
        owner: Owner,
    },
    /// Delete a queue, topic or subscription with its messages
    #[command(after_help = NAMES_HELP)]
    Delete {
        name: String,
        #[command(flatten)]
        owner: Owner,
    },
    /// Delete the messages that nobody holds
    #[command(after_help = NAMES_HELP)]
    Purge {
        name: String,
        #[command(flatten)]
        owner: Owner,
    },
    /// Print messages, which stay where they are
    #[command(after_help = NAMES_HELP)]
    Peek {
        name: String,
        /// Those of the dead-letter queue
        #[arg(long)]
        dead_letters: bool,
        /// From this sequence number on
        #[arg(long, value_name = "NUMBER", default_value_t = 0)]
        from: u64,
        /// How many
        #[arg(long, default_value_t = 20, value_parser = clap::value_parser!(u64).range(1..=250))]
        limit: u64,
        #[command(flatten)]
        owner: Owner,
    },
    /// Send a message
    Send {
        #[command(flatten)]
        message: NewMessage,
        #[command(flatten)]
        owner: Owner,
    },
    /// Send dead letters back to the queue or topic that they came from
    #[command(after_help = NAMES_HELP)]
    Resubmit {
        name: String,
        /// Only the one of this sequence number; may be given more than once
        #[arg(long = "number", value_name = "NUMBER")]
        numbers: Vec<u64>,
        #[command(flatten)]
        owner: Owner,
    },
    /// List the rules of the whole namespace beside RootManageSharedAccessKey
    Rules(#[command(flatten)] Owner),
    /// Make a rule of the whole namespace, or change it, and print its new keys
    SetRule {
        name: String,
        /// What it allows: Send, Listen, Manage
        #[arg(long, value_name = "RIGHTS", value_delimiter = ',', required = true)]
        rights: Vec<String>,
        #[command(flatten)]
        owner: Owner,
    },
    /// Delete a rule of the whole namespace
    DeleteRule {
        name: String,
        #[command(flatten)]
        owner: Owner,
    },
}

#[derive(Debug, Subcommand)]
pub(crate) enum HubCommand {
    /// List hubs
    List(#[command(flatten)] Owner),
    /// Show the partitions of a hub, and how far its consumer groups are behind
    Show {
        name: String,
        #[command(flatten)]
        owner: Owner,
    },
    /// Create a hub
    Create {
        name: String,
        #[arg(long, value_name = "N", default_value_t = 4)]
        partitions: u32,
        /// How long events stay; 0 is for ever [default: 168]
        #[arg(long, value_name = "HOURS")]
        retention: Option<u32>,
        /// How many bytes of events a partition keeps
        #[arg(long, value_name = "BYTES")]
        retention_bytes: Option<u64>,
        /// What may go: delete, compact (all events of a key but its newest), or compact,delete
        #[arg(long, value_name = "POLICY")]
        cleanup: Option<String>,
        #[command(flatten)]
        owner: Owner,
    },
    /// Delete a hub with its events
    Delete {
        name: String,
        #[command(flatten)]
        owner: Owner,
    },
    /// Give a hub more partitions while it is in use
    Partitions {
        name: String,
        /// How many it is to have; partitions are never taken away
        #[arg(long, value_name = "N")]
        count: u32,
        #[command(flatten)]
        owner: Owner,
    },
    /// Send an event
    Send {
        name: String,
        /// What it says; `-` reads standard input
        text: String,
        #[arg(long, conflicts_with = "partition")]
        key: Option<String>,
        #[arg(long, value_name = "NUMBER")]
        partition: Option<u32>,
        #[command(flatten)]
        owner: Owner,
    },
    /// Print events of a hub as they come, until interrupted
    Tail {
        name: String,
        /// Only this partition
        #[arg(long, value_name = "NUMBER")]
        partition: Option<u32>,
        /// Begin with the first event that is there, not with the next one
        #[arg(long)]
        from_start: bool,
        /// End when there is nothing more, instead of waiting
        #[arg(long)]
        once: bool,
        #[command(flatten)]
        owner: Owner,
    },
    /// Write the events of a hub to Avro files in a container of blobs from now on
    Capture {
        name: String,
        /// The container of blobs, in the same account
        #[arg(long, required_unless_present = "off")]
        container: Option<String>,
        /// After how long a file is ended [default: 300]
        #[arg(long)]
        seconds: Option<u32>,
        /// After how many bytes of events a file is ended [default: 64 MiB]
        #[arg(long)]
        bytes: Option<u64>,
        /// Write no more files
        #[arg(long, conflicts_with_all = ["container", "seconds", "bytes"])]
        off: bool,
        #[command(flatten)]
        owner: Owner,
    },
    /// Add a consumer group for readers over AMQP
    AddGroup {
        name: String,
        group: String,
        #[command(flatten)]
        owner: Owner,
    },
    /// Delete a consumer group
    DeleteGroup {
        name: String,
        group: String,
        #[command(flatten)]
        owner: Owner,
    },
}
