//! What can go wrong, in the service's own words: its error codes, and the errors of the shape as these.

pub(crate) use lazuli_azure::storage_error::CommonCode as Common;
use lazuli_azure::{storage_codes, storage_error};
use lazuli_engine::{Error, Kind};
use lazuli_http::StatusCode;
use lazuli_shapes::blob::BlobReason;

/// A refusal on its way to the client.
pub(crate) type Fault = storage_error::Fault<Code>;

pub(crate) type Result<T> = std::result::Result<T, Fault>;

/// What the shape says, in the service's words.
pub(crate) fn refused(error: Error) -> Fault {
    let named = error.reason().map(Code::of_shape);
    let or = |common: Common| Fault::new(named.unwrap_or(common.into()));
    match error.kind() {
        Kind::NotFound => or(Common::ResourceNotFound),
        Kind::Exists => or(Common::InvalidInput),
        // That nothing has changed since is no failure, though the service calls it one.
        Kind::Precondition if error.is(BlobReason::NotModified) => {
            Fault::new(Common::ConditionNotMet).with_status(StatusCode::NOT_MODIFIED)
        }
        Kind::Precondition => or(Common::ConditionNotMet),
        Kind::Invalid => match named {
            Some(code) => Fault::new(code),
            None => Fault::new(Common::InvalidInput).say(error.message().to_owned()),
        },
        Kind::TooLarge => or(Common::RequestBodyTooLarge),
        Kind::Throttled { retry_after } | Kind::Unavailable { retry_after } => {
            Fault::new(Common::ServerBusy).retry_after(retry_after)
        }
        Kind::Moved => Fault::new(Common::ServerBusy),
        Kind::Corrupt | Kind::Internal => Fault::new(Common::InternalError).because(error),
    }
}

storage_codes! {
    AccessTierNotSupportedForBlobType 400 "The access tier is not supported for this blob type.";
    AppendPositionConditionNotMet 412 "The append position condition specified was not met.";
    BlobAlreadyExists 409 "The specified blob already exists.";
    BlobArchived 409 "This operation is not permitted on an archived blob.";
    BlobBeingRehydrated 409
        "This operation is not permitted because the blob is being rehydrated.";
    BlobImmutableDueToLegalHold 409
        "This operation is not permitted as the blob is immutable due to one or more legal holds.";
    BlobImmutableDueToPolicy 409
        "This operation is not permitted as the blob is immutable due to a policy.";
    BlobNotArchived 409 "Blob tier is not Archive, so its rehydration is not changed.";
    BlobNotFound 404 "The specified blob does not exist.";
    BlobOverwritten 409 "The blob has been recreated since the previous snapshot was taken.";
    BlobSnapshotNotSoftDeleted 409
        "The snapshot or version was not deleted before it was to be deleted permanently.";
    BlobTierInadequateForContentLength 409
        "Specified blob tier size limit cannot be less than content length.";
    BlobUsesCustomerSpecifiedEncryption 409
        "The blob is encrypted with customer specified encryption, but it was not provided in the \
         request.";
    BlockCountExceedsLimit 409
        "The committed block count cannot exceed the maximum limit of 50,000 blocks, nor the \
         uncommitted one that of 100,000.";
    BlockListTooLong 400 "The block list may not contain more than 50,000 blocks.";
    BothCrc64AndMd5HeaderPresent 400
        "Both x-ms-content-crc64 header and content-md5 header are present.";
    BothCrc64AndMd5RangeHeaderPresent 400
        "Both x-ms-range-get-content-crc64 header and x-ms-range-get-content-md5 header are \
         present.";
    BothUserTagsAndSourceTagsCopyPresentException 400
        "x-ms-tags header must not be present with x-ms-copy-source-tag-option as COPY.";
    CannotChangeToLowerTier 409 "A higher blob tier has already been explicitly set.";
    CannotVerifyCopySource 400
        "Could not verify the copy source. Examine the HTTP status code and message for more \
         information about the failure.";
    ConditionHeadersNotSupported 400 "Condition headers are not supported.";
    ContainerAlreadyExists 409 "The specified container already exists.";
    ContainerBeingDeleted 409 "The specified container is being deleted.";
    ContainerNotFound 404 "The specified container does not exist.";
    ContentLengthLargerThanTierLimit 409
        "The blob's content length cannot exceed its tier limit.";
    CopyIdMismatch 409
        "The specified copy ID did not match the copy ID for the pending copy operation.";
    Crc64Mismatch 400
        "The CRC64 value specified in the request did not match with the CRC64 value calculated \
         by the server.";
    ExceedsMaxBatchRequestCount 400
        "The batch operation exceeds maximum number of allowed subrequests.";
    FeatureVersionMismatch 409
        "The operation for this blob requires a higher version of the service.";
    HierarchicalNamespaceNotEnabled 400
        "This operation is only supported on a hierarchical namespace account.";
    IncrementalCopyBlobMismatch 409
        "The specified source blob is different than the copy source of the existing incremental \
         copy blob.";
    IncrementalCopyOfEarlierSnapshotNotAllowed 409
        "The specified snapshot is earlier than the last snapshot copied into the incremental \
         copy blob.";
    IncrementalCopySourceMustBeSnapshot 409
        "The source for incremental copy request must be a snapshot.";
    InfiniteLeaseDurationRequired 412
        "The lease ID matched, but the specified lease must be an infinite-duration lease.";
    InvalidBlobOrBlock 400 "The specified blob or block content is invalid.";
    InvalidBlobTier 400 "The specified blob tier is invalid.";
    InvalidBlobType 409 "The blob type is invalid for this operation.";
    InvalidBlockId 400
        "The specified block ID is invalid. The block ID must be Base64-encoded.";
    InvalidBlockList 400 "The specified block list is invalid.";
    InvalidHttpVerb 400 "The HTTP verb specified is invalid - it is not recognized by the server.";
    InvalidMd5 400
        "The MD5 value specified in the request is invalid. The MD5 value must be 128 bits and \
         Base64-encoded.";
    InvalidOperation 400 "Invalid operation against a blob snapshot.";
    InvalidPageRange 416 "The page range specified is invalid.";
    InvalidRange 416 "The range specified is invalid for the current size of the resource.";
    InvalidSourceBlobType 409
        "The copy source blob type is invalid for this operation.";
    InvalidSourceBlobUrl 409
        "The source URL for incremental copy request must be valid Azure Storage blob URL.";
    InvalidTag 400 "The tags specified are invalid. They contain characters that are not permitted.";
    LeaseAlreadyBroken 409
        "The lease ID matched, but the lease has been broken explicitly and cannot be renewed.";
    LeaseAlreadyPresent 409 "There is already a lease present.";
    LeaseIdMismatchWithBlobOperation 412
        "The lease ID specified did not match the lease ID for the blob.";
    LeaseIdMismatchWithContainerOperation 412
        "The lease ID specified did not match the lease ID for the container.";
    LeaseIdMismatchWithLeaseOperation 409
        "The lease ID specified did not match the lease ID for the blob or container.";
    LeaseIdMissing 412
        "There is currently a lease on the resource and no lease ID was specified in the request.";
    LeaseIsBreakingAndCannotBeAcquired 409
        "The lease ID matched, but the lease is currently in breaking state and cannot be acquired \
         until it is broken.";
    LeaseIsBreakingAndCannotBeChanged 409
        "The lease ID matched, but the lease is currently in breaking state and cannot be changed.";
    LeaseIsBrokenAndCannotBeRenewed 409
        "The lease ID matched, but the lease has been broken explicitly and cannot be renewed.";
    LeaseLost 412 "A lease ID was specified, but the lease for the resource has expired.";
    LeaseNotPresentWithBlobOperation 412 "There is currently no lease on the blob.";
    LeaseNotPresentWithContainerOperation 412 "There is currently no lease on the container.";
    LeaseNotPresentWithLeaseOperation 409 "There is currently no lease on the resource.";
    MaxBlobSizeConditionNotMet 412 "The max blob size condition specified was not met.";
    MultipleConditionHeadersNotSupported 400
        "Multiple condition headers are not supported.";
    MutuallyExclusiveQueryParameters 400
        "The query parameters of the request exclude each other.";
    NoPendingCopyOperation 409 "There is currently no pending copy operation.";
    OperationNotAllowedOnIncrementalCopyBlob 409
        "The specified operation is not allowed on an incremental copy blob.";
    OperationNotAllowedOnRootBlob 403 "The specified operation is not allowed on root blob.";
    PendingCopyOperation 409 "There is currently a pending copy operation.";
    PreviousSnapshotCannotBeNewer 400
        "The prevsnapshot query parameter value cannot be newer than snapshot query parameter \
         value.";
    PreviousSnapshotNotFound 409 "The previous snapshot is not found.";
    PreviousSnapshotOperationNotSupported 409
        "Differential Get Page Ranges is not supported on the previous snapshot.";
    ResourceTypeMismatch 409
        "The specified resource type does not match the type of the existing resource.";
    SequenceNumberConditionNotMet 412 "The sequence number condition specified was not met.";
    SequenceNumberIncrementTooLarge 409
        "The sequence number increment cannot be performed because it would result in overflow of \
         the sequence number.";
    SnapshotCountExceeded 409
        "The snapshot count against this blob has been exceeded.";
    SnapshotsPresent 409 "This operation is not permitted while the blob has snapshots.";
    SourceConditionNotMet 412
        "The source condition specified using HTTP conditional header(s) is not met.";
    SystemInUse 409 "This blob is in use by the system.";
    TagsTooLarge 400 "The tags specified are too large.";
    TargetConditionNotMet 412
        "The target condition specified using HTTP conditional header(s) is not met.";
    UnauthorizedBlobOverwrite 403 "This request is not authorized to perform blob overwrites.";
    BlobIsSealed 409
        "The specified blob is sealed and its contents can't be modified unless the blob is \
         re-created after a delete.";
    UnsatisfiableCondition 400
        "The request includes an unsatisfiable condition for this operation.";
}

impl Code {
    /// The service's code for a refusal of the shape.
    pub(crate) fn of_shape(reason: BlobReason) -> Self {
        match reason {
            BlobReason::ContainerNotFound => Self::ContainerNotFound,
            BlobReason::ContainerExists | BlobReason::ContainerInUse => {
                Self::ContainerAlreadyExists
            }
            BlobReason::BlobNotFound => Self::BlobNotFound,
            BlobReason::BlobExists => Self::BlobAlreadyExists,
            BlobReason::BlobTypeMismatch => Self::InvalidBlobType,
            BlobReason::BlobArchived => Self::BlobArchived,
            BlobReason::BlobBeingRehydrated => Self::BlobBeingRehydrated,
            BlobReason::BlobImmutable | BlobReason::ImmutabilityLocked => {
                Self::BlobImmutableDueToPolicy
            }
            BlobReason::LegalHold => Self::BlobImmutableDueToLegalHold,
            BlobReason::BlobSealed => Self::BlobIsSealed,
            BlobReason::SnapshotsPresent => Self::SnapshotsPresent,
            BlobReason::OperationNotAllowedOnRoot => Self::OperationNotAllowedOnRootBlob,
            BlobReason::NotSoftDeleted => Self::BlobSnapshotNotSoftDeleted,
            BlobReason::ConditionNotMet => Self::Common(Common::ConditionNotMet),
            BlobReason::UnsatisfiableCondition => Self::UnsatisfiableCondition,
            BlobReason::LeaseIdMissing => Self::LeaseIdMissing,
            BlobReason::LeaseIdMismatchBlob => Self::LeaseIdMismatchWithBlobOperation,
            BlobReason::LeaseIdMismatchContainer => Self::LeaseIdMismatchWithContainerOperation,
            BlobReason::LeaseIdMismatchLease => Self::LeaseIdMismatchWithLeaseOperation,
            BlobReason::LeaseNotPresentBlob => Self::LeaseNotPresentWithBlobOperation,
            BlobReason::LeaseNotPresentContainer => Self::LeaseNotPresentWithContainerOperation,
            BlobReason::LeaseNotPresentLease => Self::LeaseNotPresentWithLeaseOperation,
            BlobReason::LeaseLost => Self::LeaseLost,
            BlobReason::LeaseAlreadyPresent => Self::LeaseAlreadyPresent,
            BlobReason::LeaseIsBreakingAcquire => Self::LeaseIsBreakingAndCannotBeAcquired,
            BlobReason::LeaseIsBreakingChange => Self::LeaseIsBreakingAndCannotBeChanged,
            BlobReason::LeaseIsBrokenRenew => Self::LeaseIsBrokenAndCannotBeRenewed,
            BlobReason::LeaseDurationInvalid => Self::Common(Common::InvalidHeaderValue),
            BlobReason::InvalidBlockList => Self::InvalidBlockList,
            BlobReason::InvalidBlockId => Self::InvalidBlobOrBlock,
            BlobReason::BlockCountExceeded => Self::BlockCountExceedsLimit,
            BlobReason::AppendPositionNotMet => Self::AppendPositionConditionNotMet,
            BlobReason::MaxBlobSizeNotMet => Self::MaxBlobSizeConditionNotMet,
            BlobReason::InvalidPageRange => Self::InvalidPageRange,
            BlobReason::InvalidRange => Self::InvalidRange,
            BlobReason::SequenceNumberNotMet => Self::SequenceNumberConditionNotMet,
            BlobReason::SequenceNumberTooLarge => Self::SequenceNumberIncrementTooLarge,
            BlobReason::PreviousSnapshotNotFound => Self::PreviousSnapshotNotFound,
            BlobReason::PreviousSnapshotNewer => Self::PreviousSnapshotCannotBeNewer,
            BlobReason::BlobOverwritten => Self::BlobOverwritten,
            BlobReason::NoPendingCopy => Self::NoPendingCopyOperation,
            BlobReason::CopyIdMismatch => Self::CopyIdMismatch,
            BlobReason::PendingCopy => Self::PendingCopyOperation,
            BlobReason::SourceConditionNotMet => Self::SourceConditionNotMet,
            BlobReason::SourceNotFound => Self::CannotVerifyCopySource,
            BlobReason::KeyRequired | BlobReason::KeyMismatch => {
                Self::BlobUsesCustomerSpecifiedEncryption
            }
            BlobReason::TierNotAllowed => Self::InvalidBlobTier,
            BlobReason::TierNotOfType => Self::AccessTierNotSupportedForBlobType,
            BlobReason::NotModified => Self::Common(Common::ConditionNotMet),
        }
    }
}
