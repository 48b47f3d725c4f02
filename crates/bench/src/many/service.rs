//! The three services: how an item of each is created, and how its items are listed.

use lazuli_trial::client::{Answer, Request};
use lazuli_trial::{blobs, queues};
use serde_json::json;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Service {
    Tables,
    Containers,
    Queues,
}

impl Service {
    pub(super) const ALL: [Self; 3] = [Self::Tables, Self::Containers, Self::Queues];

    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Tables => "tables",
            Self::Containers => "containers",
            Self::Queues => "queues",
        }
    }

    /// The listener that serves it.
    pub(super) fn endpoint(self) -> &'static str {
        match self {
            Self::Tables => "tables",
            Self::Containers => "blobs",
            Self::Queues => "queues",
        }
    }

    /// Asks for a new item. Names are spread over the order of names, as those of people are.
    pub(super) fn create(self, number: usize) -> Request {
        let shuffled = (number * 7_919) % 1_000_003;
        match self {
            Self::Tables => {
                let body = json!({ "TableName": format!("item{shuffled:07}") }).to_string();
                Request::tables("POST", "/Tables", "", body)
            }
            Self::Containers => blobs::create_container(&format!("item-{shuffled:07}")),
            Self::Queues => queues::create(&format!("item-{shuffled:07}")),
        }
    }

    /// Asks for a page of the list.
    pub(super) fn list(self, marker: Option<&str>) -> Request {
        match self {
            Self::Tables => {
                let query = marker.map_or(String::new(), |next| format!("?NextTableName={next}"));
                Request::tables("GET", "/Tables", &query, "")
            }
            Self::Containers => {
                let next = marker.map_or(String::new(), |next| format!("&marker={next}"));
                Request::storage("GET", "/", &format!("?comp=list{next}"), "")
            }
            Self::Queues => {
                let marker = marker.map(|next| ("marker", next));
                let parameters: Vec<_> = [("comp", "list")].into_iter().chain(marker).collect();
                queues::request("GET", "/", &parameters, String::new())
            }
        }
    }

    /// How many items a page has.
    pub(super) fn items(self, answer: &Answer) -> usize {
        let each = match self {
            Self::Tables => "\"TableName\"",
            Self::Containers | Self::Queues => "<Name>",
        };
        answer.text().matches(each).count()
    }

    /// Where the next page begins; none behind the last one.
    pub(super) fn next(self, answer: &Answer) -> Option<String> {
        if self == Self::Tables {
            return answer.header("x-ms-continuation-nexttablename").map(str::to_owned);
        }
        let text = answer.text();
        let (_, rest) = text.split_once("<NextMarker>")?;
        let (next, _) = rest.split_once("</NextMarker>")?;
        Some(next.to_owned()).filter(|next| !next.is_empty())
    }
}
