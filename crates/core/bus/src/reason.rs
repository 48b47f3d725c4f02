//! Why the bus refused something, for fronts that must tell apart errors of one kind.

lazuli_engine::reasons! {
    pub enum BusReason {
        /// There is no such queue, topic, subscription or namespace.
        EntityNotFound = "entity-not-found",
        EntityExists = "entity-exists",
        /// The status of the entity forbids to send, or to receive.
        EntityDisabled = "entity-disabled",
        /// The operation is for another kind of entity.
        WrongKind = "wrong-kind",
        /// The entity changed since the caller read it.
        EntityChanged = "entity-changed",
        RuleNotFound = "rule-not-found",
        RuleExists = "rule-exists",
        /// The text of a filter or an action does not parse, or is over a limit.
        BadFilter = "bad-filter",
        /// A property of an entity is out of range, or cannot be changed.
        BadProperty = "bad-property",
        BadName = "bad-name",
        /// A chain of forwarding would come back to where it began.
        ForwardLoop = "forward-loop",
        /// A namespace has as many entities of a kind as it may have.
        TooManyEntities = "too-many-entities",
        /// The entity holds as much as it may.
        QuotaExceeded = "quota-exceeded",
        MessageTooLarge = "message-too-large",
        /// The message has no session, and the entity asks for one.
        SessionRequired = "session-required",
        /// Receivers of this entity must accept a session first.
        SessionEntity = "session-entity",
        /// The entity has no sessions.
        NoSessions = "no-sessions",
        SessionLockLost = "session-lock-lost",
        /// Another receiver holds the session.
        SessionCannotBeLocked = "session-cannot-be-locked",
        /// Session and partition key are both set and differ.
        PartitionKeyMismatch = "partition-key-mismatch",
        MessageLockLost = "message-lock-lost",
        MessageNotFound = "message-not-found",
        /// Sequence numbers of one request must be of one fragment.
        SeveralFragments = "several-fragments",
        /// A transaction on a partitioned entity needs one partition key.
        TransactionKey = "transaction-key",
        /// What the transaction touches is not on one shard.
        TransactionSpans = "transaction-spans-shards",
    }
}
