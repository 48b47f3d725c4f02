//! One container: its map, how even its partitions are, its hottest keys, and all partitions in a table.

use maud::{Markup, html};
use serde_json::Value;

use crate::chart::{Bars, Piece, Wide, strip};
use crate::figure;
use crate::layout::{bar, fact, list, live, number_table, state, text};
use crate::page::{Outcome, Part, Result, Visit};
use crate::partitions::{HotKey, PARTITIONS_MAX, Partition, of_map};
use crate::shards::Colours;

/// How many partitions one page of the table has.
const ROWS: usize = 50;
/// How many of the hottest keys are shown.
const HOTTEST: usize = 10;

pub(crate) async fn show(visit: &Visit<'_>, name: &str) -> Result {
    let map = visit.api.get(&["v1", "maps", name]).await?;
    let (partitions, all) = of_map(visit.api, name).await?;
    let order = Order::parse(visit.query.get("sort").unwrap_or_default());
    let page = visit.query.get("page").and_then(|page| page.parse().ok()).unwrap_or(1);
    let wide = Wide::parse(visit.query.get("map").unwrap_or_default());
    let colours = Colours::of(visit.api).await?;
    let view = View { name, order, page, wide };
    let body = html! {
        p.crumbs { a href="/portal/containers" { "Containers" } }
        h1 { (name) }
        (live("facts", facts(&map, &partitions)))
        @if !all { p.notice.bad { "There are more partitions; these are the first " (PARTITIONS_MAX) "." } }
        section.card aria-labelledby="map" {
            h2 #map { "Map" }
            (view.widths())
            (live("map", drawn_map(&partitions, &colours, wide)))
        }
        div.columns {
            section.card aria-labelledby="storage" {
                h2 #storage { "Storage per partition" }
                (live("storage", bars("Storage per partition", &partitions, |one| one.bytes, figure::bytes)))
            }
            section.card aria-labelledby="requests" {
                h2 #requests { "Requests per partition" }
                (live("requests", bars("Requests per partition", &partitions, Partition::requests, figure::count)))
            }
        }
        section.card aria-labelledby="hottest" {
            h2 #hottest { "Hottest keys" }
            (live("hottest", hottest(&partitions)))
        }
        section.card aria-labelledby="partitions" {
            h2 #partitions { "Partitions" }
            (live("partitions", rows(&view, partitions, &colours)))
        }
    };
    Outcome::page(name, Part::Containers, body)
}

fn facts(map: &Value, partitions: &[Partition]) -> Markup {
    let sum = |figure: fn(&Partition) -> u64| partitions.iter().map(figure).sum::<u64>();
    let keys: Vec<&str> = list(&map["key"]).iter().map(text).collect();
    html! {
        dl.facts.card {
            (fact("Map", html! { (text(&map["kind"])) }))
            (fact("Key", html! { (keys.join(", ")) }))
            (fact("Partitions", html! { (figure::count(partitions.len() as u64)) }))
            (fact("Items", html! { (figure::count(sum(|one| one.items))) }))
            (fact("Stored", html! { (figure::bytes(sum(|one| one.bytes))) }))
            (fact("Reads", html! { (figure::count(sum(|one| one.reads))) }))
            (fact("Writes", html! { (figure::count(sum(|one| one.writes))) }))
            (fact("Throttled", html! { (figure::count(sum(|one| one.throttled))) }))
        }
    }
}

fn drawn_map(partitions: &[Partition], colours: &Colours, wide: Wide) -> Markup {
    let mut shards: Vec<(String, usize, usize)> = Vec::new();
    let mut piece = |one: &Partition| {
        let colour = colours.get(&one.shard);
        match shards.iter_mut().find(|(name, ..)| *name == one.shard) {
            Some((.., count)) => *count += 1,
            None => shards.push((one.shard.clone(), colour, 1)),
        }
        let weight = match wide {
            Wide::Equally => 1,
            Wide::BySize => one.bytes,
            Wide::ByLoad => one.requests(),
        };
        let held = (figure::bytes(one.bytes), figure::count(one.requests()));
        let title = format!(
            "Partition {} on {}: {}, {}, {} requests",
            one.id,
            one.shard,
            one.keys(),
            held.0,
            held.1
        );
        Piece { id: one.id, colour, weight, title }
    };
    let pieces: Vec<Piece> = partitions.iter().map(&mut piece).collect();
    shards.sort();
    strip(&pieces, &shards, wide)
}

fn bars(
    title: &str,
    partitions: &[Partition],
    figure: fn(&Partition) -> u64,
    print: fn(u64) -> String,
) -> Markup {
    let values: Vec<u64> = partitions.iter().map(figure).collect();
    let (total, most) = (values.iter().sum::<u64>(), values.iter().max().copied().unwrap_or(0));
    let even = total / values.len().max(1) as u64;
    let name = |one: &Partition| format!("Partition {}, {}", one.id, one.keys());
    let names: Vec<String> = partitions.iter().map(name).collect();
    html! {
        (Bars { title, axis: "partitions in the order of keys", values: &values, names: &names, colours: None, print }.draw())
        p.muted {
            span.key-even aria-hidden="true" {} " Even share " (print(even)) ". The largest has "
            (print(most)) ", " (figure::share(most, total)) " of all."
        }
    }
}

fn hottest(partitions: &[Partition]) -> Markup {
    let total: u64 = partitions.iter().map(Partition::requests).sum();
    let keys = |one: &'_ Partition| -> Vec<(HotKey, u64)> {
        one.hottest.iter().map(|hot| (hot.clone(), one.id)).collect()
    };
    let mut all: Vec<(HotKey, u64)> = partitions.iter().flat_map(keys).collect();
    let heat = |(hot, _): &(HotKey, u64)| (hot.at_least, hot.at_most);
    all.sort_by(|a, b| heat(b).cmp(&heat(a)).then_with(|| a.0.key.cmp(&b.0.key)));
    all.truncate(HOTTEST);
    if all.is_empty() {
        return html! { p.muted { "No key stands out." } };
    }
    let body = html! {
        @for (hot, partition) in &all {
            tr {
                th.key scope="row" { code { (hot.key) } }
                td { a href=(crate::partitions::path(*partition)) { (partition) } }
                td.number { (figure::count(hot.at_least)) }
                td.number { (figure::count(hot.at_most)) }
                td.number { (figure::share(hot.at_least, total)) }
            }
        }
    };
    let heads = ["Requests, at least", "At most", "Share of all, at least"];
    number_table("Hottest keys", &["Key", "Partition"], &heads, body)
}

/// By what the table is sorted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Order {
    Keys,
    Bytes,
    Requests,
}

impl Order {
    const ALL: [Self; 3] = [Self::Keys, Self::Bytes, Self::Requests];

    fn parse(word: &str) -> Self {
        Self::ALL.into_iter().find(|order| order.word() == word).unwrap_or(Self::Keys)
    }

    fn word(self) -> &'static str {
        match self {
            Self::Keys => "keys",
            Self::Bytes => "bytes",
            Self::Requests => "requests",
        }
    }

    fn title(self) -> &'static str {
        match self {
            Self::Keys => "Keys",
            Self::Bytes => "Storage",
            Self::Requests => "Requests",
        }
    }
}

/// What of the container is shown, and how.
struct View<'a> {
    name: &'a str,
    order: Order,
    page: usize,
    wide: Wide,
}

impl View<'_> {
    fn link(&self, order: Order, page: usize, wide: Wide, place: &str) -> String {
        let path = super::containers::path(self.name);
        format!("{path}?sort={}&page={page}&map={}#{place}", order.word(), wide.word())
    }

    /// The choice of what partitions on the map are as wide as.
    fn widths(&self) -> Markup {
        html! {
            p.actions {
                @for wide in Wide::ALL {
                    a.button.quiet href=(self.link(self.order, self.page, wide, "map"))
                        aria-current=[(wide == self.wide).then_some("true")] { (wide.title()) }
                }
            }
        }
    }
}

fn rows(view: &View<'_>, mut partitions: Vec<Partition>, colours: &Colours) -> Markup {
    let order = view.order;
    let bytes: u64 = partitions.iter().map(|one| one.bytes).sum();
    let requests: u64 = partitions.iter().map(Partition::requests).sum();
    match order {
        Order::Keys => {}
        Order::Bytes => partitions.sort_by_key(|one| std::cmp::Reverse(one.bytes)),
        Order::Requests => partitions.sort_by_key(|one| std::cmp::Reverse(one.requests())),
    }
    let pages = partitions.len().div_ceil(ROWS).max(1);
    let page = view.page.clamp(1, pages);
    let shown = partitions.iter().skip((page - 1) * ROWS).take(ROWS);
    let here = |order: Order, page: usize| view.link(order, page, view.wide, "partitions");
    let body = html! { @for one in shown { (row(one, bytes, requests, colours)) } };
    html! {
        p.actions {
            "Sorted by"
            @for other in Order::ALL {
                a.button.quiet href=(here(other, 1)) aria-current=[(other == order).then_some("true")] {
                    (other.title())
                }
            }
        }
        (number_table("Partitions", &["Partition", "Keys", "Shard", "State"],
            &["Items", "Storage", "Share", "Requests", "Share", "Throttled"], body))
        @if pages > 1 {
            nav.pages aria-label="Pages of partitions" {
                @if page > 1 { a.button.quiet href=(here(order, page - 1)) { "Before" } }
                span { "Page " (page) " of " (pages) }
                @if page < pages { a.button.quiet href=(here(order, page + 1)) { "Next" } }
            }
        }
    }
}

fn row(one: &Partition, bytes: u64, requests: u64, colours: &Colours) -> Markup {
    html! {
        tr data-partition=(one.id) {
            th scope="row" { a href=(one.path()) { (one.id) } }
            td.key { (one.keys()) }
            td.name { (colours.name(&one.shard)) }
            td { (state(&one.state)) }
            td.number { (figure::count(one.items)) }
            td.number { (figure::bytes(one.bytes)) }
            td.number data-storage-share {
                (figure::share(one.bytes, bytes)) (bar(one.bytes, bytes))
            }
            td.number { (figure::count(one.requests())) }
            td.number data-request-share {
                (figure::share(one.requests(), requests)) (bar(one.requests(), requests))
            }
            td.number { (figure::count(one.throttled)) }
        }
    }
}
