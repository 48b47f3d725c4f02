//! What callers of the shape tell apart beyond the kind of an error.

lazuli_engine::reasons! {
    /// Why an operation on documents was refused.
    pub enum DocumentReason {
        /// The text is no path.
        BadPath = "document-path",
        /// A policy or another part of a definition is not allowed.
        BadDefinition = "document-definition",
        /// The item is no object, or its id is missing or not allowed.
        BadItem = "document-item",
        BadId = "document-id",
        /// A partition key has a value of a type that it cannot have, or too many or too few.
        BadKey = "document-key",
        /// The item says another partition key than the request.
        KeyMismatch = "document-key-mismatch",
        ItemTooLarge = "document-too-large",
        KeyTooLarge = "document-key-too-large",
        BatchTooLarge = "document-batch-too-large",
        /// One of the items of a unique key has these values already.
        NotUnique = "document-not-unique",
        /// The logical partition is full.
        ShardletFull = "document-partition-full",
        /// There is no such item.
        ItemMissing = "document-missing",
        ItemExists = "document-exists",
        /// The item has another etag than the request asks for, or the one that it excludes.
        EtagMismatch = "document-etag",
        /// The read found the etag that the caller knows.
        NotModified = "document-not-modified",
        /// A patch does not fit the item.
        PatchRefused = "document-patch",
        /// The condition of a patch does not hold.
        PatchCondition = "document-patch-condition",
        /// What a session has read was changed by another one: run it again.
        SessionConflict = "document-session-conflict",
        ResourceMissing = "resource-missing",
        ResourceExists = "resource-exists",
        /// The parent of a resource is missing.
        ParentMissing = "resource-parent-missing",
        BadContinuation = "document-continuation",
        /// The position of a change feed is older than what is kept.
        ChangesForgotten = "document-changes-forgotten",
        /// The order of a query needs an index that the policy does not have.
        OrderNotIndexed = "document-order-not-indexed",
        /// Another change of the definition is under way.
        DefinitionBusy = "document-definition-busy",
        /// The range is not one of the container's, or is no longer.
        RangeGone = "document-range-gone",
        /// Writes are held back, because clients are switched to another container.
        Held = "document-held",
        /// Only a container whose writes are held back can be exchanged.
        NotHeld = "document-not-held",
        /// Another request holds the container or lets it go.
        SwitchBusy = "document-switch-busy",
    }
}
