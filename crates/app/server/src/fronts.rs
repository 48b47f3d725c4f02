//! The fronts of a server: one entry for each, with its port and what answers its requests.

use std::sync::Arc;
use std::time::{Duration, Instant};

use lazuli_env::BoxFuture;
use lazuli_http::auth::Accounts;
use lazuli_http::{Request, Response};
use lazuli_shapes::queue::Queues;
use lazuli_shapes::record::Records;

use crate::core::Core;
use crate::metrics::Requests;
use crate::settings::Settings;

pub(crate) struct Front {
    pub(crate) name: &'static str,
    pub(crate) port: u16,
    /// How long a request may take altogether.
    pub(crate) request_timeout: Duration,
    pub(crate) handler: Handler,
}

pub(crate) type Handler = Arc<dyn Fn(Request) -> BoxFuture<'static, Response> + Send + Sync>;

/// All fronts, in the order in which they are listed to users.
pub(crate) fn all(settings: &Settings, core: &Core, accounts: &Arc<Accounts>) -> Vec<Front> {
    let blobs = lazuli_blobs::handler(
        core.blobs.clone(),
        accounts.clone(),
        settings.tokens,
        settings.blobs.clone(),
    );
    let tables = lazuli_tables::handler(
        Records::new(core.engine.clone()),
        accounts.clone(),
        settings.tokens,
        settings.tables.clone(),
    );
    let queues = lazuli_queues::handler(
        Queues::new(core.engine.clone()),
        accounts.clone(),
        settings.tokens,
        settings.queues.clone(),
    );
    vec![
        Front {
            name: "blobs",
            port: settings.blob_port,
            request_timeout: settings.blob_request_timeout,
            handler: Arc::new(blobs),
        },
        Front {
            name: "queues",
            port: settings.queue_port,
            request_timeout: settings.limits.request_timeout,
            handler: Arc::new(queues),
        },
        Front {
            name: "tables",
            port: settings.table_port,
            request_timeout: settings.limits.request_timeout,
            handler: Arc::new(tables),
        },
    ]
}

impl Front {
    /// The same front, with every answer counted.
    pub(crate) fn counted(self, requests: Arc<Requests>) -> Handler {
        let Self { name, handler, .. } = self;
        Arc::new(move |request| {
            let (began, answer) = (Instant::now(), handler(request));
            let requests = requests.clone();
            Box::pin(async move {
                let response = answer.await;
                let operation = response.operation.unwrap_or("unknown");
                requests.observe(name, operation, response.status.as_u16(), began.elapsed());
                response
            })
        })
    }
}
