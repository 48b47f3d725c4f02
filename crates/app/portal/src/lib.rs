//! The portal: web pages on which operators see their partitions, change them and browse the data. It knows nothing but the
//! admin API ([`AdminApi`]): a page that needs something else means that the API lacks an operation.
//!
//! One request: the host name it was sent to, `route` (path to page), the session, the form and its CSRF token, one visible
//! `match`, the page, the frame. Pages are rendered on the server. Templates escape everything, because names of tables,
//! blobs and keys are untrusted.

mod api;
mod attempts;
mod chart;
mod figure;
mod form;
mod guard;
mod layout;
mod live;
mod page;
mod pages;
mod partitions;
mod route;
mod session;
mod shards;
mod upload;

use std::sync::Arc;
use std::time::{Duration, Instant};

use lazuli_http::uri::{Query, percent_encode};
use lazuli_http::{Method, Request, Response, StatusCode};
use lazuli_net::Stop;
use maud::Markup;
use tokio::sync::Semaphore;

pub use api::{AdminApi, Ask, BoxFuture};
pub use attempts::{Attempts, Tried};
pub use route::ROOT;

use api::Api;
use form::Form;
use page::{Fault, Outcome, Page, Part, Result, Visit};
use route::{NoRoute, Route};
use session::{Session, Sessions};

/// The portal of one server.
pub struct Portal {
    api: Api,
    sessions: Sessions,
    /// The cookie's name has the port, because cookies are shared by all ports of a host.
    cookie: String,
    /// What browsers may call it, beside the names of loopback.
    names: Vec<String>,
    streams: Arc<Semaphore>,
    /// How often a live page is rendered again.
    refresh: Duration,
    stop: Stop,
}

impl Portal {
    /// How often a server renders live pages again.
    pub const REFRESH: Duration = Duration::from_secs(1);

    /// The portal of the server whose admin API listens on this port. Other machines call it by these names. `stop` ends what
    /// would go on by itself.
    pub fn new(
        api: Arc<dyn AdminApi>,
        port: u16,
        names: Vec<String>,
        refresh: Duration,
        stop: Stop,
    ) -> Arc<Self> {
        Arc::new(Self {
            api: Api::new(api),
            sessions: Sessions::default(),
            cookie: format!("lazuli-portal-{port}"),
            names,
            streams: Arc::new(Semaphore::new(live::STREAMS_MAX)),
            refresh,
            stop,
        })
    }

    /// Whether the portal answers at this path.
    pub fn has(path: &str) -> bool {
        path == "/" || path == ROOT || path.strip_prefix(ROOT).is_some_and(|it| it.starts_with('/'))
    }

    /// Answers one request.
    pub async fn handle(self: Arc<Self>, request: Request) -> Response {
        guard::shield(self.answer(request).await)
    }

    async fn answer(self: Arc<Self>, request: Request) -> Response {
        if !guard::is_for_us(&request, &self.names) {
            let message = "this is not a name of the portal; use localhost or 127.0.0.1, \
                           or list the name in the setting admin-names\n";
            return Response::text(StatusCode::MISDIRECTED_REQUEST, message);
        }
        if request.path == "/" {
            return redirect(Part::Overview.path());
        }
        let session = self.session_of(&request);
        let route = match Route::parse(request.method.as_str(), &request.path) {
            Ok(route) => route,
            Err(none) => return self.show_fault(session.as_ref(), &none.into()),
        };
        match route {
            Route::Style => pages::asset("text/css; charset=utf-8", pages::STYLE),
            Route::Script => pages::asset("text/javascript; charset=utf-8", pages::SCRIPT),
            Route::Icon => pages::asset("image/svg+xml", pages::ICON),
            Route::Login => self.login(request, session).await,
            route => match session {
                Some(session) => self.visit(route, request, session).await,
                None if request.method == Method::GET => {
                    redirect(&format!("{}?next={}", pages::login::PATH, return_to(&request)))
                }
                None => redirect(pages::login::PATH),
            },
        }
    }

    /// A request of a logged-in visitor.
    async fn visit(self: Arc<Self>, route: Route, request: Request, session: Session) -> Response {
        if route == Route::Live {
            return self.stream(&request, session);
        }
        let (changes, is_secure) = (request.method == Method::POST, request.secure);
        let from_us = guard::is_from_us(&request);
        let query = request.query.clone();
        let form = match read_form(request, changes).await {
            Ok(form) => form,
            Err(fault) => return self.show_fault(Some(&session), &fault),
        };
        let Ok(query) = Query::parse(&query) else {
            let fault = Fault::new(StatusCode::BAD_REQUEST, "the query cannot be read");
            return self.show_fault(Some(&session), &fault);
        };
        let visit = Visit { api: &self.api, session: &session, query, form };
        if changes && !(from_us && visit.is_vouched()) {
            visit.form.discard_file().await;
            let message = "this form is not one of this session; load the page again and repeat it";
            let fault = Fault::new(StatusCode::FORBIDDEN, message);
            return self.show_fault(Some(&session), &fault);
        }
        if route == Route::Logout {
            self.sessions.end(&session.id, Instant::now());
            let cookie = self.set_cookie(is_secure, "", "; Max-Age=0");
            return redirect(pages::login::PATH).with("set-cookie", cookie);
        }
        let outcome = show(&route, &visit, changes).await;
        visit.form.discard_file().await;
        match outcome {
            Ok(Outcome::Page(page)) => self.show_page(StatusCode::OK, &page, &session),
            Ok(Outcome::Moved { to, notice }) => {
                self.sessions.leave_notice(&session.id, notice, Instant::now());
                redirect(&to)
            }
            Ok(Outcome::File(response)) => response,
            Err(fault) => self.show_fault(Some(&session), &fault),
        }
    }

    /// The content of a page as it is now, for its live stream. None if the page is gone.
    pub(crate) async fn body_of(&self, session: &Session, of: &str) -> Option<String> {
        let (path, query) = of.split_once('?').unwrap_or((of, ""));
        let route = Route::parse("GET", path).ok()?;
        let query = Query::parse(query).ok()?;
        let visit = Visit { api: &self.api, session, query, form: Form::default() };
        match show(&route, &visit, false).await {
            Ok(Outcome::Page(page)) => Some(page.body.into_string()),
            _ => None,
        }
    }

    fn stream(self: Arc<Self>, request: &Request, session: Session) -> Response {
        let of = Query::parse(&request.query).ok();
        let of = of.and_then(|query| query.get("of").map(str::to_owned)).unwrap_or_default();
        let Ok(room) = self.streams.clone().try_acquire_owned() else {
            return Response::text(StatusCode::SERVICE_UNAVAILABLE, "too many live pages\n");
        };
        let stop = self.stop.clone();
        live::Stream { portal: self, session, of, stop, _room: room }.response()
    }

    fn session_of(&self, request: &Request) -> Option<Session> {
        let cookies = request.header("cookie")?;
        let mine = |pair: &str| {
            let (name, value) = pair.trim().split_once('=')?;
            (name == self.cookie).then(|| value.to_owned())
        };
        let id = cookies.split(';').find_map(mine)?;
        self.sessions.find(&id, Instant::now())
    }

    /// A cookie that was set over TLS is never sent without.
    fn set_cookie(&self, is_secure: bool, value: &str, more: &str) -> String {
        let more = if is_secure { format!("; Secure{more}") } else { more.to_owned() };
        format!("{}={value}; Path={ROOT}; HttpOnly; SameSite=Strict{more}", self.cookie)
    }

    fn show_page(&self, status: StatusCode, page: &Page, session: &Session) -> Response {
        let notice = self.sessions.take_notice(&session.id, Instant::now());
        html(status, layout::page(page, session, notice.as_ref()))
    }

    fn show_fault(&self, session: Option<&Session>, fault: &Fault) -> Response {
        let (title, body) = ("That did not work".to_owned(), layout::fault(fault));
        match session {
            Some(session) => {
                let page = Page { title, part: Part::Overview, body };
                self.show_page(fault.status, &page, session)
            }
            None => html(fault.status, layout::outside(&title, body)),
        }
    }
}

/// The one table of pages. Some show with GET what they do with POST, when a form was sent.
async fn show(route: &Route, visit: &Visit<'_>, sent: bool) -> Result {
    match route {
        Route::Overview => pages::overview::show(visit).await,
        Route::Containers => pages::containers::show(visit).await,
        Route::Shards(page) => pages::shards::show(visit, page, sent).await,
        Route::Accounts(page) => pages::accounts::show(visit, page, sent).await,
        Route::Services => pages::services::index(visit).await,
        Route::Service { name } => pages::services::show(visit, name).await,
        Route::Sql(page) => pages::sql::show(visit, page, sent).await,
        Route::Rebalance => pages::rebalance::show(visit).await,
        Route::Balance(balance) => pages::rebalance::make(visit, *balance).await,
        Route::Backups if sent => pages::backups::restore(visit).await,
        Route::Backups => pages::backups::show(visit).await,
        Route::Backup { id } => pages::backups::take(visit, *id).await,
        Route::Audit => pages::audit::show(visit).await,
        Route::Settings => pages::settings::show(visit).await,
        Route::Container { name } => pages::container::show(visit, name).await,
        Route::Partition { id } => pages::partition::show(visit, *id).await,
        Route::PreviewChange { id, change } => pages::change::preview(visit, *id, *change).await,
        Route::MakeChange { id, change } => pages::change::make(visit, *id, *change).await,
        Route::Advice => pages::advice::show(visit).await,
        Route::Jobs => pages::jobs::show(visit).await,
        Route::SteerJob { number, steer } => pages::jobs::steer(visit, *number, *steer).await,
        Route::Explorer(place) => pages::explorer::show(visit, place).await,
        Route::Messaging(page) => pages::messaging::show(visit, page).await,
        Route::Style | Route::Script | Route::Icon | Route::Login | Route::Logout | Route::Live => {
            Err(NoRoute::Path.into())
        }
    }
}

async fn read_form(request: Request, changes: bool) -> Result<Form> {
    if !changes {
        return Ok(Form::default());
    }
    let unreadable = |error| Fault::new(StatusCode::BAD_REQUEST, format!("the form: {error}"));
    let read = match request.header("content-type").and_then(upload::boundary) {
        Some(boundary) => upload::read(request.body, &boundary).await,
        None => Form::read(request.body).await,
    };
    read.map_err(unreadable)
}

/// The page that was asked for, to come back to after the login.
fn return_to(request: &Request) -> String {
    match request.query.as_str() {
        "" => percent_encode(&request.path),
        query => percent_encode(&format!("{}?{query}", request.path)),
    }
}

fn html(status: StatusCode, page: Markup) -> Response {
    Response::new(status)
        .with("content-type", "text/html; charset=utf-8")
        .with_body(page.into_string())
}

fn redirect(to: &str) -> Response {
    Response::new(StatusCode::SEE_OTHER).with("location", to)
}

impl From<NoRoute> for Fault {
    fn from(none: NoRoute) -> Self {
        match none {
            NoRoute::Path => Self::new(StatusCode::NOT_FOUND, "there is no such page"),
            NoRoute::Method => {
                Self::new(StatusCode::METHOD_NOT_ALLOWED, "this page does not take this method")
            }
        }
    }
}

/// One parameter of a query; empty if there is none, or the query cannot be read.
fn uri_query(query: &str, name: &str) -> String {
    let query = Query::parse(query).unwrap_or_default();
    query.get(name).unwrap_or_default().to_owned()
}
