//! Libraries of functions that a durable cache has kept.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;

use lazuli_resp::{OwnedArgs, Reply};

use crate::server::Server;
use crate::session::Session;

impl Server {
    /// Loads the libraries that were found in the store. To be called once, before any client.
    pub(crate) fn load_libraries(self: &Arc<Self>) {
        let codes = self.keyspace.take_libraries();
        if codes.is_empty() {
            return;
        }
        let nobody = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
        let client = self.clients.add(nobody, nobody, self.keyspace.now_ms());
        let mut session = Session::new(client, nobody);
        session.is_source = true;
        for code in codes {
            let args: OwnedArgs =
                [&b"FUNCTION"[..], b"LOAD", b"REPLACE", &code].into_iter().collect();
            let mut out = Reply::default();
            self.execute(&mut session, args.args(), &mut out);
            if out.bytes.starts_with(b"-") {
                let refusal = String::from_utf8_lossy(&out.bytes).trim_end().to_owned();
                tracing::warn!(refusal, "a library of the cache cannot be loaded any more");
            }
        }
        self.forget(&mut session);
    }
}
