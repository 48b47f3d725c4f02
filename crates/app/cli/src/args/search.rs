//! `lazuli search …`: the arguments.

use std::path::PathBuf;

use clap::{Args as ClapArgs, Subcommand};

use super::Target;

#[derive(Debug, Subcommand)]
pub(crate) enum SearchCommand {
    /// List the indexes with their documents
    List(#[command(flatten)] Account),
    /// Create an index from its definition in a JSON file, as the service takes it
    Create {
        file: PathBuf,
        #[command(flatten)]
        account: Account,
    },
    /// Write the documents of a file of JSON lines, or of standard input, to an index
    Load {
        index: String,
        /// One JSON object a line; - reads standard input
        file: PathBuf,
        /// Keep the fields that a document has already and the file does not name
        #[arg(long)]
        merge: bool,
        #[command(flatten)]
        account: Account,
    },
    /// Search an index and print what is found
    Query(#[command(flatten)] Query),
    /// Delete an index with everything in it
    Delete {
        index: String,
        #[command(flatten)]
        account: Account,
    },
    /// Spread an index that is in use over another number of shards, or say how many replicas it has
    Scale {
        index: String,
        /// 1, 2, 3, 4, 6 or 12
        #[arg(long, value_name = "COUNT")]
        partitions: Option<u32>,
        #[arg(long, value_name = "COUNT")]
        replicas: Option<u32>,
        #[command(flatten)]
        account: Account,
    },
    /// Print the admin keys and the query keys; add or delete a query key
    Keys {
        /// Make a query key of this name
        #[arg(long, value_name = "NAME")]
        add: Option<String>,
        /// Delete the query key of this name
        #[arg(long, value_name = "NAME", conflicts_with = "add")]
        delete: Option<String>,
        #[command(flatten)]
        account: Account,
    },
}

#[derive(Debug, ClapArgs)]
pub(crate) struct Query {
    pub(crate) index: String,
    /// What to look for; without it everything
    pub(crate) text: Option<String>,
    /// An OData filter, such as "rating gt 4"
    #[arg(long)]
    pub(crate) filter: Option<String>,
    /// Fields to order by, such as "rating desc"
    #[arg(long, value_name = "FIELDS")]
    pub(crate) order_by: Option<String>,
    /// Fields to print, separated by commas
    #[arg(long, value_name = "FIELDS")]
    pub(crate) select: Option<String>,
    /// How many results
    #[arg(long, default_value_t = 10)]
    pub(crate) top: u32,
    /// Read the text as full Lucene syntax
    #[arg(long)]
    pub(crate) full: bool,
    /// Wait until everything that was answered before can be found
    #[arg(long)]
    pub(crate) wait: bool,
    #[command(flatten)]
    pub(crate) account: Account,
}

/// One account of the running server.
#[derive(Clone, Debug, ClapArgs)]
pub(crate) struct Account {
    /// The account [default: the first one]
    #[arg(long = "account", value_name = "NAME")]
    pub(crate) name: Option<String>,
    #[command(flatten)]
    pub(crate) target: Target,
}
