//! Jobs: running moves with buttons to pause, resume and cancel them, and finished ones.

use maud::{Markup, html};
use serde_json::Value;

use crate::figure;
use crate::layout::{csrf, fact, list, live, number_table, text};
use crate::page::{Outcome, Part, Result, Visit};

pub(crate) const PATH: &str = "/portal/jobs";

/// The actions on a running job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Steer {
    Pause,
    Resume,
    Cancel,
}

impl Steer {
    const ALL: [Self; 3] = [Self::Pause, Self::Resume, Self::Cancel];

    pub(crate) fn parse(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|steer| steer.word() == word)
    }

    fn word(self) -> &'static str {
        match self {
            Self::Pause => "pause",
            Self::Resume => "resume",
            Self::Cancel => "cancel",
        }
    }

    fn title(self) -> &'static str {
        match self {
            Self::Pause => "Pause",
            Self::Resume => "Resume",
            Self::Cancel => "Cancel",
        }
    }

    fn done(self) -> &'static str {
        match self {
            Self::Pause => "is paused",
            Self::Resume => "continues",
            Self::Cancel => "is being cancelled",
        }
    }
}

pub(crate) async fn show(visit: &Visit<'_>) -> Result {
    let jobs = visit.api.get(&["v1", "jobs"]).await?;
    let (open, over): (Vec<&Value>, Vec<&Value>) =
        list(&jobs["jobs"]).iter().partition(|job| job["ended_ms"].is_null());
    let body = html! {
        h1 { "Jobs" }
        section.card aria-labelledby="open" {
            h2 #open { "Under way" }
            (live("open", html! {
                @if open.is_empty() { p.muted { "No job is under way." } }
                @for job in &open { (under_way(visit, job)) }
            }))
        }
        section.card aria-labelledby="over" {
            h2 #over { "Over" }
            (live("over", finished(&over)))
        }
    };
    Outcome::page("Jobs", Part::Jobs, body)
}

pub(crate) async fn steer(visit: &Visit<'_>, number: u64, steer: Steer) -> Result {
    let body = serde_json::json!({});
    visit.api.post(&["v1", "jobs", &number.to_string(), steer.word()], &body).await?;
    Outcome::done(PATH, format!("Job {number} {}.", steer.done()))
}

fn under_way(visit: &Visit<'_>, job: &Value) -> Markup {
    let number = job["job"].as_u64().unwrap_or(0);
    let figure = |name: &str| job[name].as_u64();
    let (bytes, expected) = (figure("bytes").unwrap_or(0), figure("bytes_expected").unwrap_or(0));
    let paused = job["phase"] == "paused";
    html! {
        article.job aria-labelledby={ "job-" (number) } {
            h3 id={ "job-" (number) } {
                "Job " (number) ": " a href={ "/portal/partitions/" (job["partition"]) } {
                    "partition " (job["partition"])
                }
                " from " (text(&job["from"])) " to " (text(&job["to"]))
            }
            progress max=(expected.max(bytes).max(1)) value=(bytes)
                aria-label={ "Bytes copied by job " (number) } {}
            dl.facts {
                (fact("Phase", html! { span.state { (text(&job["phase"])) } }))
                (fact("Copied", html! { (figure::bytes(bytes)) " of " (figure::bytes(expected)) }))
                (fact("Rate", html! { (figure::bytes(figure("bytes_per_second").unwrap_or(0))) "/s" }))
                (fact("Lag", html! { (figure::count(figure("lag").unwrap_or(0))) " changes" }))
                (fact("Left", html! { (figure("eta_seconds").map_or("–".to_owned(), figure::seconds)) }))
                @if let Some(pause) = figure("pause_predicted_us") {
                    (fact("Pause expected", html! { (figure::micros(pause)) }))
                }
            }
            @if let Some(trouble) = job["trouble"].as_str() { p.notice.bad { (trouble) } }
            div.actions {
                (button(visit, number, if paused { Steer::Resume } else { Steer::Pause }))
                (button(visit, number, Steer::Cancel))
            }
        }
    }
}

fn button(visit: &Visit<'_>, number: u64, steer: Steer) -> Markup {
    html! {
        form method="post" action={ (PATH) "/" (number) "/" (steer.word()) } {
            (csrf(visit.session))
            button.quiet type="submit" { (steer.title()) " job " (number) }
        }
    }
}

fn finished(jobs: &[&Value]) -> Markup {
    if jobs.is_empty() {
        return html! { p.muted { "No job is over yet." } };
    }
    let took = |job: &Value| {
        let (begun, ended) = (job["begun_ms"].as_u64()?, job["ended_ms"].as_u64()?);
        Some(figure::micros(ended.saturating_sub(begun).saturating_mul(1_000)))
    };
    let rows = html! {
        @for job in jobs {
            tr data-job=(job["job"]) {
                th scope="row" { (job["job"]) }
                td { a href={ "/portal/partitions/" (job["partition"]) } { (job["partition"]) } }
                td { (text(&job["from"])) }
                td { (text(&job["to"])) }
                td { span.state { (text(&job["phase"])) } }
                td.number { (figure::bytes(job["bytes"].as_u64().unwrap_or(0))) }
                td.number { (took(job).unwrap_or_default()) }
                td.number { (job["pause_us"].as_u64().map_or("–".to_owned(), figure::micros)) }
            }
        }
    };
    let heads = ["Job", "Partition", "From", "To", "Outcome"];
    number_table("Jobs that are over", &heads, &["Copied", "Took", "Writes paused"], rows)
}
