//! The named limits of the bus. Those that an operator may lift are in [`crate::BusSettings`].

/// The longest name of a queue or topic, in characters.
pub const ENTITY_NAME_CHARS_MAX: usize = 260;
/// The longest name of a subscription or rule.
pub const SUBSCRIPTION_NAME_CHARS_MAX: usize = 50;
/// The longest session id and partition key, in characters.
pub const SESSION_ID_CHARS_MAX: usize = 128;
/// The longest message id, in characters.
pub const MESSAGE_ID_CHARS_MAX: usize = 128;
/// The longest state that clients keep for a session.
pub const SESSION_STATE_BYTES_MAX: usize = 256 * 1024;
/// The most fragments of an entity: their number has 16 bits of a sequence number, and a map change takes so many.
pub const FRAGMENTS_MAX: u32 = 64;
/// The most messages of one call that sends.
pub const SEND_MESSAGES_MAX: usize = 4_500;
/// The most messages of one call that receives, peeks or deletes.
pub const RECEIVE_MESSAGES_MAX: usize = 1_000;
/// The most bytes of messages that one transaction of a receive reads, but for the first message.
pub const RECEIVE_BYTES_MAX: usize = 4 * 1024 * 1024;
/// The most operations of one transaction.
pub const TRANSACTION_OPERATIONS_MAX: usize = 100;
/// The most settlements of one call.
pub const SETTLEMENTS_MAX: usize = 10_000;
/// The most subscriptions of a topic.
pub const SUBSCRIPTIONS_MAX: usize = 2_000;
/// The most rules of a subscription.
pub const RULES_MAX: usize = 2_000;
/// How often a message may be forwarded before it goes to the transfer dead-letter queue.
pub const FORWARD_HOPS_MAX: u8 = 4;
/// What a message says is kept in its own row up to this size.
pub const INLINE_BYTES_MAX: usize = 4 * 1024;
/// The longest message that the service takes, if the entity does not set a lower limit.
pub const MESSAGE_BYTES_MAX: usize = 8 * 1024 * 1024;
/// The most properties that a settlement may change, and that actions of rules may have changed, of one message.
pub const OVERRIDES_MAX: usize = 256;
/// The longest text of a filter or an action, in characters.
pub const FILTER_CHARS_MAX: usize = 1_024;
/// The deepest nesting of a filter.
pub const FILTER_DEPTH_MAX: usize = 64;
/// The most operators, functions and values of a filter.
pub const FILTER_NODES_MAX: usize = 1_024;
/// The longest text that a filter or an action puts together, in bytes.
pub const TEXT_BYTES_MAX: usize = 64 * 1024;
/// The most conditions of a correlation filter.
pub const CORRELATION_CONDITIONS_MAX: usize = 128;
/// The most statements of an action.
pub const ACTION_STATEMENTS_MAX: usize = 32;
/// The most rules of a whole namespace.
pub const NAMESPACE_RULES_MAX: usize = 100;
/// The longest name of such a rule, in characters.
pub const RULE_NAME_CHARS_MAX: usize = 256;
/// How long the keys of such a rule are, in bytes.
pub const RULE_KEY_BYTES: std::ops::RangeInclusive<usize> = 16..=256;
