//! ATOM entries and feeds.

use lazuli_bus_shape::{Entity, EntityKind, MessageCounts, Rule, Subscription};
use lazuli_http::date::{Fraction, TICKS_PER_MILLI, format_iso8601};
use lazuli_http::{Response, StatusCode, xml};

use super::{Context, Page, description, rule};

const ATOM: &str = "http://www.w3.org/2005/Atom";
const SERVICE: &str = "http://schemas.microsoft.com/netservices/2010/10/servicebus/connect";
const INSTANCE: &str = "http://www.w3.org/2001/XMLSchema-instance";

/// A time as the service writes it.
pub(super) fn moment(millis: u64) -> String {
    let ticks = i64::try_from(millis).unwrap_or(i64::MAX).saturating_mul(TICKS_PER_MILLI);
    format_iso8601(ticks, Fraction::Seven)
}

/// One entity, subscription or rule.
pub(super) struct Entry(String);

/// What every entry has around its content.
struct Frame<'a> {
    path: &'a str,
    title: &'a str,
    published_ms: u64,
    updated_ms: u64,
    /// The name of the element, and what is inside of it.
    content: (&'a str, String),
}

fn address(context: &Context<'_>, path: &str) -> String {
    // Names have no characters that an address cannot have. Clients read the names of rules from it, dollar signs and all.
    format!("{}/{path}?api-version={}", context.base, context.version)
}

impl Entry {
    fn new(context: &Context<'_>, frame: Frame<'_>) -> Self {
        let id = address(context, frame.path);
        let mut out = format!("<entry xmlns=\"{ATOM}\">");
        xml::write(&mut out, "id", &id);
        out.push_str("<title type=\"text\">");
        xml::write_text(&mut out, frame.title);
        out.push_str("</title>");
        xml::write(&mut out, "published", &moment(frame.published_ms));
        xml::write(&mut out, "updated", &moment(frame.updated_ms));
        out.push_str("<author>");
        xml::write(&mut out, "name", &context.namespace);
        out.push_str("</author><link rel=\"self\" href=\"");
        xml::write_text(&mut out, &id);
        out.push_str("\"/><content type=\"application/xml\">");
        let (name, content) = frame.content;
        out.push_str(&format!("<{name} xmlns=\"{SERVICE}\" xmlns:i=\"{INSTANCE}\">{content}"));
        xml::close(&mut out, name);
        out.push_str("</content></entry>");
        Self(out)
    }

    /// What was never changed since it was made.
    pub(super) fn plain(
        context: &Context<'_>,
        path: &str,
        title: &str,
        made_ms: u64,
        kind: &str,
        inside: String,
    ) -> Self {
        let (published_ms, updated_ms, content) = (made_ms, made_ms, (kind, inside));
        Self::new(context, Frame { path, title, published_ms, updated_ms, content })
    }

    pub(super) fn entity(
        context: &Context<'_>,
        entity: &Entity,
        counts: &MessageCounts,
        subscriptions: usize,
    ) -> Self {
        let name = match entity.kind {
            EntityKind::Queue => "QueueDescription",
            EntityKind::Topic => "TopicDescription",
        };
        Self::new(
            context,
            Frame {
                path: &entity.name,
                title: &entity.name,
                published_ms: entity.created_ms,
                updated_ms: entity.updated_ms,
                content: (name, description::entity(entity, counts, subscriptions)),
            },
        )
    }

    pub(super) fn subscription(
        context: &Context<'_>,
        found: &Subscription,
        counts: &MessageCounts,
    ) -> Self {
        Self::new(
            context,
            Frame {
                path: &format!("{}/Subscriptions/{}", found.topic, found.name),
                title: &found.name,
                published_ms: found.created_ms,
                updated_ms: found.updated_ms,
                content: ("SubscriptionDescription", description::subscription(found, counts)),
            },
        )
    }

    pub(super) fn rule(
        context: &Context<'_>,
        topic: &str,
        subscription: &str,
        found: &Rule,
    ) -> Self {
        Self::new(
            context,
            Frame {
                path: &format!("{topic}/Subscriptions/{subscription}/Rules/{}", found.name),
                title: &found.name,
                published_ms: found.created_ms,
                updated_ms: found.created_ms,
                content: ("RuleDescription", rule::write(found)),
            },
        )
    }

    pub(super) fn namespace(context: &Context<'_>) -> Self {
        let mut out = String::new();
        let name = context.namespace.as_str();
        for (element, text) in [
            ("CreatedTime", moment(0).as_str()),
            ("MessagingSKU", "Standard"),
            ("MessagingUnits", "1"),
            ("ModifiedTime", moment(0).as_str()),
            ("Name", name),
            ("NamespaceType", "Messaging"),
        ] {
            xml::write(&mut out, element, text);
        }
        let content = ("NamespaceInfo", out);
        let (published_ms, updated_ms) = (0, 0);
        let frame =
            Frame { path: "$namespaceinfo", title: name, published_ms, updated_ms, content };
        Self::new(context, frame)
    }

    pub(super) fn response(self, status: StatusCode) -> Response {
        let kind = "application/atom+xml;type=entry;charset=utf-8";
        Response::new(status).with("content-type", kind).with_body(self.0)
    }
}

/// A list of entries.
pub(super) struct Feed(String);

impl Feed {
    pub(super) fn new(context: &Context<'_>, path: &str, page: Page, has_more: bool) -> Self {
        let id = address(context, path);
        let mut out = format!("<feed xmlns=\"{ATOM}\"><title type=\"text\">");
        xml::write_text(&mut out, path);
        out.push_str("</title>");
        xml::write(&mut out, "id", &id);
        xml::write(&mut out, "updated", &moment(crate::now_ms()));
        out.push_str("<link rel=\"self\" href=\"");
        xml::write_text(&mut out, &id);
        out.push_str("\"/>");
        if has_more {
            let next = page.skip + page.top;
            let link = format!("{id}&$skip={next}&$top={}", page.top);
            out.push_str("<link rel=\"next\" href=\"");
            xml::write_text(&mut out, &link);
            out.push_str("\"/>");
        }
        Self(out)
    }

    pub(super) fn push(&mut self, entry: Entry) {
        self.0.push_str(&entry.0);
    }

    pub(super) fn response(self) -> Response {
        let kind = "application/atom+xml;type=feed;charset=utf-8";
        let body = format!("{}</feed>", self.0);
        Response::new(StatusCode::OK).with("content-type", kind).with_body(body)
    }
}
