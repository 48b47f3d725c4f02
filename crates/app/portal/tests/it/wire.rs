//! The portal by its answers: who is let in, what a change needs, what browsers are told, and that nothing that users
//! stored becomes markup. A small admin API stands in for the real one.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use crate::stand_in::{COOKIE, Site, TOKEN};
use lazuli_http::{Method, StatusCode};
use serde_json::json;

#[tokio::test]
async fn without_a_session_every_page_leads_to_the_login_and_nothing_is_told() {
    let site = Site::new();
    for path in
        ["/portal", "/portal/", "/portal/jobs", "/portal/containers", "/portal/live?of=/portal/"]
    {
        let answer = site.get(path, "").await;
        assert_eq!(answer.status, StatusCode::SEE_OTHER, "{path}");
        assert!(answer.header("location").starts_with("/portal/login?next="), "{path}");
    }
    let answer = site.post("/portal/jobs/7/cancel", "", "csrf=").await;
    assert_eq!(answer.status, StatusCode::SEE_OTHER);
    assert_eq!(site.asked(), 0, "the admin API is not asked for strangers");
}

#[tokio::test]
async fn only_the_token_begins_a_session_and_its_cookie_is_kept_from_scripts_and_sites() {
    let site = Site::new();
    for wrong in ["", "token=", "token=guess", "token=admin"] {
        let answer = site.post("/portal/login", "", wrong).await;
        assert_eq!(answer.status, StatusCode::FORBIDDEN, "{wrong}");
        assert_eq!(answer.header("set-cookie"), "");
    }
    let answer = site.post("/portal/login", "", &format!("token={TOKEN}&next=//evil")).await;
    assert_eq!(answer.status, StatusCode::SEE_OTHER);
    assert_eq!(answer.header("location"), "/portal");
    let cookie = answer.header("set-cookie");
    assert!(cookie.starts_with(COOKIE), "{cookie}");
    assert!(cookie.ends_with("; Path=/portal; HttpOnly; SameSite=Strict"), "{cookie}");
}

#[tokio::test]
async fn after_too_many_wrong_tokens_the_right_one_has_to_wait_too() {
    let site = Site::new();
    let mut refused = 0;
    for _ in 0..20 {
        let answer = site.post("/portal/login", "", "token=guess").await;
        refused += u32::from(answer.status == StatusCode::TOO_MANY_REQUESTS);
    }
    assert_eq!(refused, 10);
    let answer = site.post("/portal/login", "", &format!("token={TOKEN}")).await;
    assert_eq!(answer.status, StatusCode::TOO_MANY_REQUESTS);
    assert!(answer.header("retry-after").parse::<u64>().unwrap() <= 60);
}

#[tokio::test]
async fn every_answer_carries_the_headers_that_keep_others_out() {
    let site = Site::new();
    let (cookie, _) = site.log_in().await;
    for path in ["/", "/portal/login", "/portal/", "/portal/nothing", "/portal/static/portal.css"] {
        for cookie in ["", &cookie] {
            let answer = site.get(path, cookie).await;
            assert_eq!(
                answer.header("content-security-policy"),
                "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; \
                 connect-src 'self'; form-action 'self'; frame-ancestors 'none'; base-uri 'none'"
            );
            assert_eq!(answer.header("x-content-type-options"), "nosniff");
            assert_eq!(answer.header("referrer-policy"), "no-referrer");
            assert_eq!(answer.header("x-frame-options"), "DENY");
            let kept = answer.header("cache-control");
            assert_eq!(kept == "no-store", !path.contains("/static/"), "{path}: {kept}");
            assert!(!answer.body.contains("style=\""), "{path} has a style that would be blocked");
        }
    }
}

#[tokio::test]
async fn a_name_of_another_site_that_points_here_gets_nothing() {
    let site = Site::new();
    let (cookie, _) = site.log_in().await;
    for host in ["evil.example", "127.0.0.1.evil.example:10010", "localhost.evil:1", "", "[::2]"] {
        let answer = site.get_as("/portal/", &cookie, host).await;
        assert_eq!(answer.status, StatusCode::MISDIRECTED_REQUEST, "{host}");
    }
    for host in ["localhost", "LOCALHOST:9", "127.0.0.1:10010", "[::1]:10010", "[::1]"] {
        assert_eq!(site.get_as("/portal/", &cookie, host).await.status, StatusCode::OK, "{host}");
    }
}

#[tokio::test]
async fn a_change_needs_the_secret_of_its_own_session() {
    let site = Site::new();
    let (cookie, secret) = site.log_in().await;
    let (_, other) = site.log_in().await;
    let asked = site.asked();
    for body in ["", "csrf=", "csrf=guess", &format!("csrf={other}"), &format!("CSRF={secret}")] {
        let answer = site.post("/portal/jobs/7/pause", &cookie, body).await;
        assert_eq!(answer.status, StatusCode::FORBIDDEN, "{body}");
    }
    assert_eq!(site.asked(), asked, "nothing was asked of the admin API");
    let answer = site.post("/portal/jobs/7/pause", &cookie, &format!("csrf={secret}")).await;
    assert_eq!(answer.status, StatusCode::SEE_OTHER, "{}", answer.body);
    let page = site.get(answer.header("location"), &cookie).await;
    assert!(page.body.contains("Job 7 is paused."), "{}", page.body);
    let again = site.get("/portal/jobs", &cookie).await;
    assert!(!again.body.contains("Job 7 is paused."), "it is told once");
}

#[tokio::test]
async fn keys_are_masked_until_they_are_asked_for() {
    let site = Site::new();
    let (cookie, secret) = site.log_in().await;
    let page = site.get("/portal/", &cookie).await;
    assert!(page.body.contains("AccountKey=********;") && !page.body.contains("SECRET"));
    assert_eq!(site.get("/portal/accounts/mine/keys", &cookie).await.status.as_u16(), 405);
    let body = format!("csrf={secret}");
    let page = site.post("/portal/accounts/mine/keys", &cookie, &body).await;
    assert!(page.body.contains("AccountKey=SECRET1;") && page.body.contains("SECRET2"));
}

#[tokio::test]
async fn what_users_stored_is_shown_and_never_becomes_markup() {
    let site = Site::new();
    let (cookie, _) = site.log_in().await;
    let page = site.get("/portal/containers", &cookie).await;
    assert!(page.body.contains("tables/mine/&lt;script&gt;alert(1)&lt;/script&gt;&quot;'&amp;"));
    assert!(!page.body.contains("<script>alert"), "{}", page.body);
    let search = "/portal/containers?name=%22%3E%3Cscript%3Ealert(2)%3C/script%3E";
    let page = site.get(search, &cookie).await;
    assert!(!page.body.contains("<script>alert"), "{}", page.body);
}

/// A partition between hostile keys, and what is asked of it: previews look, and only the button changes.
fn steerable(changes: Arc<Mutex<Vec<String>>>) -> Site {
    Site::with(move |ask| {
        let path = ask.path.as_str();
        if ask.method == Method::POST && path.starts_with("/v1/partitions/") {
            changes.lock().unwrap().push(path.to_owned());
        }
        Some(match path {
            "/v1/partitions/7" => json!({
                "id": 7, "map": crate::stand_in::HOSTILE, "from": "<b>", "to": null, "shard": "<i>one</i>",
                "state": "online", "items": 3, "bytes": 99, "right": null,
                "hottest": [{ "key": "<script>alert(1)</script>", "at_least": 5, "at_most": 8 }],
            }),
            "/v1/partitions/7/history" => json!({ "step_ms": 10_000, "points": [] }),
            "/v1/partitions/7/middle" => {
                json!({ "partition": 7, "at": "<script>alert(3)</script>" })
            }
            "/v1/shards" => json!({ "shards": [
                { "name": "<i>one</i>", "region": "here", "partitions": 1 },
                { "name": "two", "region": "<u>", "partitions": 0 },
            ] }),
            "/v1/partitions/7/split" => json!({ "partitions": [
                { "id": 8, "map": crate::stand_in::HOSTILE }, { "id": 9, "map": crate::stand_in::HOSTILE },
            ] }),
            "/v1/partitions/7/move" => json!({ "job": 11, "partition": 7, "to": "two" }),
            "/v1/partitions/7/state" => json!({ "partition": { "id": 7, "state": "offline" } }),
            _ => return None,
        })
    })
}

#[tokio::test]
async fn a_preview_changes_nothing_and_its_button_names_what_it_does() {
    let changes = Arc::default();
    let site = steerable(Arc::clone(&changes));
    let (cookie, secret) = site.log_in().await;
    for (path, button) in [
        ("split?by=load", "Split partition 7 at &lt;script&gt;alert(3)&lt;/script&gt;"),
        ("split?at=k", "Split partition 7 at k"),
        ("move?to=two", "Move partition 7 to two"),
        ("offline", "Set offline partition 7"),
    ] {
        let page = site.get(&format!("/portal/partitions/7/{path}"), &cookie).await;
        assert!(page.body.contains(&format!(">{button}</button>")), "{path}: {}", page.body);
        assert!(!page.body.contains("<script>alert") && !page.body.contains("<b>"), "{path}");
    }
    assert_eq!(*changes.lock().unwrap(), Vec::<String>::new());
    for (path, form, change) in [
        ("split", "by=load", "/v1/partitions/7/split"),
        ("move", "to=two", "/v1/partitions/7/move"),
        ("offline", "", "/v1/partitions/7/state"),
    ] {
        let path = format!("/portal/partitions/7/{path}");
        assert_eq!(site.post(&path, &cookie, form).await.status, StatusCode::FORBIDDEN);
        let done = site.post(&path, &cookie, &format!("csrf={secret}&{form}")).await;
        assert_eq!(done.status, StatusCode::SEE_OTHER, "{}", done.body);
        assert_eq!(std::mem::take(&mut *changes.lock().unwrap()), [change]);
    }
}

#[tokio::test]
async fn what_cannot_be_done_has_no_button() {
    let site = steerable(Arc::default());
    let (cookie, _) = site.log_in().await;
    let page = site.get("/portal/partitions/7/merge", &cookie).await;
    assert!(page.body.contains("there is no neighbour on its right"));
    for path in ["merge", "online", "move"] {
        let page = site.get(&format!("/portal/partitions/7/{path}"), &cookie).await;
        assert!(
            !page.body.contains(&format!("action=\"/portal/partitions/7/{path}\" method=\"post\""))
        );
        assert_eq!(page.body.matches("method=\"post\"").count(), 1, "only the log-out: {path}");
    }
    let page = site.get("/portal/partitions/7/move?to=nowhere", &cookie).await;
    assert_eq!(page.status, StatusCode::NOT_FOUND);
    assert_eq!(site.get("/portal/partitions/8", &cookie).await.status, StatusCode::NOT_FOUND);
}

#[tokio::test]
async fn a_live_page_is_sent_when_it_changes_and_ends_with_the_server() {
    let uptime = Arc::new(AtomicU64::new(61));
    let now = Arc::clone(&uptime);
    let site = Site::with(move |ask| {
        let status = json!({
            "uptime_s": now.load(Ordering::Relaxed), "endpoints": {}, "troubles": [],
        });
        (ask.path == "/v1/status").then_some(status)
    });
    let (cookie, _) = site.log_in().await;
    let mut stream = site.stream("/portal/live?of=%2Fportal%2F", &cookie).await;
    assert_eq!(stream.headers["content-type"], "text/event-stream");
    let first = stream.body.chunk().await.unwrap().unwrap();
    assert!(first.starts_with(b"data: \"") && first.ends_with(b"\n\n"), "{first:?}");
    assert!(String::from_utf8_lossy(&first).contains("1 min 1 s"));
    let quiet = stream.body.chunk().await.unwrap().unwrap();
    assert_eq!(&quiet[..], b": nothing new\n\n");
    uptime.store(62, Ordering::Relaxed);
    let second = stream.body.chunk().await.unwrap().unwrap();
    assert!(String::from_utf8_lossy(&second).contains("1 min 2 s"));
    site.stop();
    assert_eq!(stream.body.chunk().await.unwrap(), None);
}

#[tokio::test]
async fn a_live_page_ends_with_its_session_and_there_are_so_many_at_most() {
    let site = Site::new();
    let (cookie, secret) = site.log_in().await;
    let mut open = Vec::new();
    for _ in 0..24 {
        open.push(site.stream("/portal/live?of=%2Fportal%2F", &cookie).await);
    }
    let refused = site.stream("/portal/live?of=%2Fportal%2F", &cookie).await;
    assert_eq!(refused.status, StatusCode::SERVICE_UNAVAILABLE);
    site.post("/portal/logout", &cookie, &format!("csrf={secret}")).await;
    for mut stream in open {
        assert_eq!(stream.body.chunk().await.unwrap(), None);
    }
    let (cookie, _) = site.log_in().await;
    let again = site.stream("/portal/live?of=%2Fportal%2F", &cookie).await;
    assert_eq!(again.status, StatusCode::OK, "the room is free again");
}
