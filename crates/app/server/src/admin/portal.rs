//! The portal beside the admin API: one port for both, and the API as the portal asks it, without a round trip.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Instant;

use lazuli_http::{Request, RequestId, Response};
use lazuli_net::Outcome;
use lazuli_portal::{AdminApi, Ask, BoxFuture, Portal, Tried};

use super::Admin;
use crate::audit::Via;

impl Admin {
    /// Answers one request on the admin port: a page of the portal, or the API.
    pub(crate) async fn route(self: Arc<Self>, portal: Arc<Portal>, request: Request) -> Response {
        if !Portal::has(&request.path) {
            return self.handle(request).await;
        }
        let began = Instant::now();
        let response = portal.handle(request).await;
        let outcome = Outcome::Status(response.status.as_u16());
        self.running.portal.observe("page", outcome, began.elapsed());
        response
    }
}

impl AdminApi for Admin {
    fn try_token(&self, text: &str, now: Instant) -> Tried {
        Admin::try_token(self, text, now)
    }

    fn ask(&self, ask: Ask) -> BoxFuture<'_, Response> {
        let clock = &self.running.engine.env().clock;
        let request = Request {
            method: ask.method,
            path: ask.path,
            query: ask.query,
            headers: ask.headers,
            body: ask.body,
            peer: SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 0),
            secure: false,
            received_ms: clock.now_ms(),
            id: RequestId(0),
        };
        Box::pin(self.counted(request, Some(Via::Portal)))
    }
}
