//! Descriptions of queues, topics and subscriptions, as their XML has them. The order of elements is the service's.

use lazuli_bus_shape::{
    AuthorizationRule, Description, Entity, EntityKind, MessageCounts, Status, Subscription,
};
use lazuli_http::xml::{self, Element};

use super::{duration, entry};
use crate::error::Fault;

type Result<T> = std::result::Result<T, Fault>;

fn bad(name: &str, text: &str) -> Fault {
    Fault::argument(format!("The value '{text}' of {name} is invalid."))
}

/// Reads a description over another one: what the XML does not have stays as it is.
pub(super) fn read(element: &Element, before: Description) -> Result<Description> {
    let mut it = before;
    let text = |name: &str| element.child_text(name);
    let flag = |name: &str, value: &mut bool| -> Result<()> {
        if let Some(text) = text(name) {
            *value = match text.to_ascii_lowercase().as_str() {
                "true" | "1" => true,
                "false" | "0" => false,
                _ => return Err(bad(name, text)),
            };
        }
        Ok(())
    };
    let number = |name: &str| -> Result<Option<u64>> {
        text(name).map(|text| text.parse().map_err(|_| bad(name, text))).transpose()
    };
    let limit = |name: &str, value: &mut Option<u64>| -> Result<()> {
        if let Some(text) = text(name) {
            *value = duration::parse_limit(text).ok_or_else(|| bad(name, text))?;
        }
        Ok(())
    };
    let span = |name: &str, value: &mut u64| -> Result<()> {
        if let Some(text) = text(name) {
            *value = duration::parse(text).ok_or_else(|| bad(name, text))?;
        }
        Ok(())
    };
    span("LockDuration", &mut it.lock_duration_ms)?;
    it.max_size_megabytes = number("MaxSizeInMegabytes")?.unwrap_or(it.max_size_megabytes);
    flag("RequiresDuplicateDetection", &mut it.requires_duplicate_detection)?;
    flag("RequiresSession", &mut it.requires_session)?;
    limit("DefaultMessageTimeToLive", &mut it.default_ttl_ms)?;
    flag("DeadLetteringOnMessageExpiration", &mut it.dead_letter_on_expiration)?;
    flag("DeadLetteringOnFilterEvaluationExceptions", &mut it.dead_letter_on_filter_error)?;
    span("DuplicateDetectionHistoryTimeWindow", &mut it.duplicate_window_ms)?;
    if let Some(most) = number("MaxDeliveryCount")? {
        let too_many = |_| bad("MaxDeliveryCount", &most.to_string());
        it.max_delivery_count = u32::try_from(most).map_err(too_many)?;
    }
    flag("EnableBatchedOperations", &mut it.batched_operations)?;
    flag("IsAnonymousAccessible", &mut it.anonymous)?;
    flag("SupportOrdering", &mut it.support_ordering)?;
    flag("FilteringMessagesBeforePublishing", &mut it.filters_before_publishing)?;
    flag("EnableExpress", &mut it.express)?;
    limit("AutoDeleteOnIdle", &mut it.auto_delete_ms)?;
    let mut is_partitioned = it.fragments > 1;
    flag("EnablePartitioning", &mut is_partitioned)?;
    it.fragments = match (is_partitioned, it.fragments) {
        (true, 1) => Description::PARTITIONED,
        (true, fragments) => fragments,
        (false, _) => 1,
    };
    if let Some(text) = text("Status") {
        it.status = status(text).ok_or_else(|| bad("Status", text))?;
    }
    if let Some(most) = number("MaxMessageSizeInKilobytes")? {
        it.max_message_kilobytes = Some(most).filter(|most| *most > 0);
    }
    // These are taken away by leaving them out, also in an update.
    it.forward_to = text("ForwardTo").map(entity_name);
    it.forward_dead_letters_to = text("ForwardDeadLetteredMessagesTo").map(entity_name);
    it.user_metadata = text("UserMetadata").map(str::to_owned);
    if let Some(rules) = element.child("AuthorizationRules") {
        it.authorization_rules = rules.children.iter().map(authorization_rule).collect();
    }
    Ok(it)
}

/// The name of an entity, which some clients write as a whole address.
fn entity_name(text: &str) -> String {
    crate::address::path(text).to_owned()
}

fn status(text: &str) -> Option<Status> {
    [Status::Active, Status::Disabled, Status::SendDisabled, Status::ReceiveDisabled]
        .into_iter()
        .find(|status| status_name(*status).eq_ignore_ascii_case(text))
}

fn status_name(status: Status) -> &'static str {
    match status {
        Status::Active => "Active",
        Status::Disabled => "Disabled",
        Status::SendDisabled => "SendDisabled",
        Status::ReceiveDisabled => "ReceiveDisabled",
    }
}

fn authorization_rule(element: &Element) -> AuthorizationRule {
    let text = |name: &str| element.child_text(name).unwrap_or_default().to_owned();
    let rights = element.child("Rights").map(|rights| rights.children.as_slice());
    let rights = rights.unwrap_or_default().iter().map(|right| right.text.trim().to_owned());
    AuthorizationRule {
        name: text("KeyName"),
        rights: rights.collect(),
        primary_key: text("PrimaryKey"),
        secondary_key: text("SecondaryKey"),
        created_ms: crate::now_ms(),
        modified_ms: crate::now_ms(),
    }
}

fn write_rules(out: &mut String, rules: &[AuthorizationRule]) {
    xml::open(out, "AuthorizationRules");
    for rule in rules {
        out.push_str("<AuthorizationRule i:type=\"SharedAccessAuthorizationRule\">");
        xml::write(out, "ClaimType", "SharedAccessKey");
        xml::write(out, "ClaimValue", "None");
        xml::open(out, "Rights");
        rule.rights.iter().for_each(|right| xml::write(out, "AccessRights", right));
        xml::close(out, "Rights");
        xml::write(out, "CreatedTime", &entry::moment(rule.created_ms));
        xml::write(out, "ModifiedTime", &entry::moment(rule.modified_ms));
        xml::write(out, "KeyName", &rule.name);
        xml::write(out, "PrimaryKey", &rule.primary_key);
        xml::write(out, "SecondaryKey", &rule.secondary_key);
        xml::close(out, "AuthorizationRule");
    }
    xml::close(out, "AuthorizationRules");
}

fn write_counts(out: &mut String, counts: &MessageCounts) {
    let names = "http://schemas.microsoft.com/netservices/2011/06/servicebus";
    out.push_str(&format!("<CountDetails xmlns:d2p1=\"{names}\">"));
    for (name, count) in [
        ("d2p1:ActiveMessageCount", counts.active),
        ("d2p1:DeadLetterMessageCount", counts.dead_letter),
        ("d2p1:ScheduledMessageCount", counts.scheduled),
        ("d2p1:TransferMessageCount", counts.transfer),
        ("d2p1:TransferDeadLetterMessageCount", counts.transfer_dead_letter),
    ] {
        xml::write(out, name, &count.to_string());
    }
    xml::close(out, "CountDetails");
}

/// Elements in the service's order, those without a value left out.
struct Writer(String);

impl Writer {
    fn put(&mut self, name: &str, value: impl ToString) {
        xml::write(&mut self.0, name, &value.to_string());
    }

    fn maybe(&mut self, name: &str, value: Option<impl ToString>) {
        if let Some(value) = value {
            self.put(name, value);
        }
    }

    fn times(&mut self, created_ms: u64, updated_ms: u64, accessed_ms: u64) {
        self.put("CreatedAt", entry::moment(created_ms));
        self.put("UpdatedAt", entry::moment(updated_ms));
        self.put("AccessedAt", entry::moment(accessed_ms));
    }
}

fn total(counts: &MessageCounts) -> u64 {
    counts.active
        + counts.dead_letter
        + counts.scheduled
        + counts.transfer
        + counts.transfer_dead_letter
}

pub(super) fn entity(entity: &Entity, counts: &MessageCounts, subscriptions: usize) -> String {
    let it = &entity.description;
    let is_queue = entity.kind == EntityKind::Queue;
    let mut out = Writer(String::new());
    let ttl = duration::print_limit(it.default_ttl_ms);
    let window = duration::print(it.duplicate_window_ms);
    if is_queue {
        out.put("LockDuration", duration::print(it.lock_duration_ms));
    } else {
        out.put("DefaultMessageTimeToLive", &ttl);
    }
    out.put("MaxSizeInMegabytes", it.max_size_megabytes);
    out.put("RequiresDuplicateDetection", it.requires_duplicate_detection);
    if is_queue {
        out.put("RequiresSession", it.requires_session);
        out.put("DefaultMessageTimeToLive", &ttl);
        out.put("DeadLetteringOnMessageExpiration", it.dead_letter_on_expiration);
    }
    out.put("DuplicateDetectionHistoryTimeWindow", window);
    if is_queue {
        out.put("MaxDeliveryCount", it.max_delivery_count);
    }
    out.put("EnableBatchedOperations", it.batched_operations);
    out.put("SizeInBytes", counts.bytes);
    match is_queue {
        true => out.put("MessageCount", total(counts)),
        false => out.put("FilteringMessagesBeforePublishing", it.filters_before_publishing),
    }
    out.put("IsAnonymousAccessible", it.anonymous);
    write_rules(&mut out.0, &it.authorization_rules);
    out.put("Status", status_name(it.status));
    if is_queue {
        out.maybe("ForwardTo", it.forward_to.as_ref());
        out.maybe("UserMetadata", it.user_metadata.as_ref());
    }
    out.times(entity.created_ms, entity.updated_ms, entity.accessed_ms);
    out.put("SupportOrdering", it.support_ordering);
    write_counts(&mut out.0, counts);
    if !is_queue {
        out.put("SubscriptionCount", subscriptions);
    }
    out.put("AutoDeleteOnIdle", duration::print_limit(it.auto_delete_ms));
    out.put("EnablePartitioning", it.fragments > 1);
    out.put("EntityAvailabilityStatus", "Available");
    if is_queue {
        out.maybe("ForwardDeadLetteredMessagesTo", it.forward_dead_letters_to.as_ref());
    } else {
        out.put("EnableSubscriptionPartitioning", false);
        out.maybe("UserMetadata", it.user_metadata.as_ref());
    }
    out.put("EnableExpress", it.express);
    let most = it.max_message_kilobytes.unwrap_or(it.message_bytes_max() as u64 / 1_024);
    out.put("MaxMessageSizeInKilobytes", most);
    out.0
}

pub(super) fn subscription(found: &Subscription, counts: &MessageCounts) -> String {
    let it = &found.description;
    let mut out = Writer(String::new());
    out.put("LockDuration", duration::print(it.lock_duration_ms));
    out.put("RequiresSession", it.requires_session);
    out.put("DefaultMessageTimeToLive", duration::print_limit(it.default_ttl_ms));
    out.put("DeadLetteringOnMessageExpiration", it.dead_letter_on_expiration);
    out.put("DeadLetteringOnFilterEvaluationExceptions", it.dead_letter_on_filter_error);
    out.put("MessageCount", total(counts));
    out.put("MaxDeliveryCount", it.max_delivery_count);
    out.put("EnableBatchedOperations", it.batched_operations);
    out.put("Status", status_name(it.status));
    out.maybe("ForwardTo", it.forward_to.as_ref());
    out.times(found.created_ms, found.updated_ms, found.accessed_ms);
    write_counts(&mut out.0, counts);
    out.maybe("ForwardDeadLetteredMessagesTo", it.forward_dead_letters_to.as_ref());
    out.maybe("UserMetadata", it.user_metadata.as_ref());
    out.put("AutoDeleteOnIdle", duration::print_limit(it.auto_delete_ms));
    out.put("EntityAvailabilityStatus", "Available");
    out.0
}
