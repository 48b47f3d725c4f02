//! A server that all tests of this program share. Each test has a database of its own there.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use lazuli_postgres_server::Server;
use lazuli_store_postgres::Settings;

/// The shared server; none if PostgreSQL is not installed.
pub(crate) fn server() -> Option<&'static Server> {
    static SERVER: OnceLock<Option<Server>> = OnceLock::new();
    SERVER.get_or_init(|| Server::start().unwrap()).as_ref()
}

/// The settings of a store in a new database.
pub(crate) fn settings() -> Option<Settings> {
    let server = server()?;
    static LAST: AtomicU32 = AtomicU32::new(0);
    let database = format!("test_{}", LAST.fetch_add(1, Ordering::Relaxed));
    server.psql("postgres", &format!("CREATE DATABASE {database}")).unwrap();
    let mut settings = Settings::parse(&server.address(&database)).unwrap();
    // Machines that run many tests at once are slow.
    settings.snapshot_life = Duration::from_secs(20);
    Some(settings)
}
