//! `lazuli queue …`: the arguments. The options of each operation are `lazuli-transfer`'s.

use clap::Subcommand;
use lazuli_transfer::queue::{Get, Peek, Put, queue_name};

use super::service::{On, Service, keys_help};

#[derive(Debug, Subcommand)]
pub(crate) enum QueueCommand {
    /// List the queues of an account
    #[command(after_help = keys_help!())]
    List {
        /// Count the messages of each queue, hidden ones included
        #[arg(long)]
        counts: bool,
        #[command(flatten)]
        service: Service,
    },
    /// Create a queue
    Create {
        /// 3 to 63 lower-case letters, digits and hyphens
        #[arg(value_parser = queue_name)]
        name: String,
        #[command(flatten)]
        service: Service,
    },
    /// Delete a queue with everything in it
    Delete {
        #[arg(value_parser = queue_name)]
        name: String,
        #[command(flatten)]
        service: Service,
    },
    /// Put messages into a queue
    #[command(after_help = keys_help!())]
    Put(On<Put>),
    /// Print the messages at the front of a queue, and leave them there
    #[command(after_help = keys_help!())]
    Peek(On<Peek>),
    /// Print the messages at the front of a queue, and hide them from others for a while
    #[command(after_help = keys_help!())]
    Get(On<Get>),
    /// Delete all messages of a queue
    Clear {
        #[arg(value_parser = queue_name)]
        name: String,
        #[command(flatten)]
        service: Service,
    },
}
