//! Why a blob operation was refused. A front finds the code of its service by the reason; the kind of the error says what the
//! caller must do.

lazuli_engine::reasons! {
    pub enum BlobReason {
        ContainerNotFound = "container-not-found",
        ContainerExists = "container-exists",
        /// Undeleting a container whose name is in use.
        ContainerInUse = "container-in-use",
        BlobNotFound = "blob-not-found",
        /// A condition asked for no blob where there is one.
        BlobExists = "blob-exists",
        BlobTypeMismatch = "blob-type-mismatch",
        BlobArchived = "blob-archived",
        BlobBeingRehydrated = "blob-being-rehydrated",
        BlobImmutable = "blob-immutable",
        LegalHold = "legal-hold",
        BlobSealed = "blob-sealed",
        SnapshotsPresent = "snapshots-present",
        /// Deleting the version that the blob has now, by its name.
        OperationNotAllowedOnRoot = "operation-not-allowed-on-root",
        /// Deleting for good what was not deleted before.
        NotSoftDeleted = "not-soft-deleted",
        ConditionNotMet = "condition-not-met",
        /// A condition of a read that says the caller's copy is still good.
        NotModified = "not-modified",
        UnsatisfiableCondition = "unsatisfiable-condition",
        LeaseIdMissing = "lease-id-missing",
        LeaseIdMismatchBlob = "lease-id-mismatch-blob",
        LeaseIdMismatchContainer = "lease-id-mismatch-container",
        LeaseIdMismatchLease = "lease-id-mismatch-lease",
        LeaseNotPresentBlob = "lease-not-present-blob",
        LeaseNotPresentContainer = "lease-not-present-container",
        LeaseNotPresentLease = "lease-not-present-lease",
        LeaseLost = "lease-lost",
        LeaseAlreadyPresent = "lease-already-present",
        LeaseIsBreakingAcquire = "lease-is-breaking-acquire",
        LeaseIsBreakingChange = "lease-is-breaking-change",
        LeaseIsBrokenRenew = "lease-is-broken-renew",
        LeaseDurationInvalid = "lease-duration-invalid",
        InvalidBlockList = "invalid-block-list",
        InvalidBlockId = "invalid-block-id",
        BlockCountExceeded = "block-count-exceeded",
        AppendPositionNotMet = "append-position-not-met",
        MaxBlobSizeNotMet = "max-blob-size-not-met",
        InvalidPageRange = "invalid-page-range",
        InvalidRange = "invalid-range",
        SequenceNumberNotMet = "sequence-number-not-met",
        SequenceNumberTooLarge = "sequence-number-too-large",
        PreviousSnapshotNotFound = "previous-snapshot-not-found",
        PreviousSnapshotNewer = "previous-snapshot-newer",
        BlobOverwritten = "blob-overwritten",
        NoPendingCopy = "no-pending-copy",
        CopyIdMismatch = "copy-id-mismatch",
        PendingCopy = "pending-copy",
        SourceConditionNotMet = "source-condition-not-met",
        SourceNotFound = "source-not-found",
        /// The content was written with a key that the caller did not bring.
        KeyRequired = "key-required",
        /// The caller brought another key, or one where none was used.
        KeyMismatch = "key-mismatch",
        TierNotAllowed = "tier-not-allowed",
        /// Blobs of this type have no such tier.
        TierNotOfType = "tier-not-of-type",
        ImmutabilityLocked = "immutability-locked",
    }
}
