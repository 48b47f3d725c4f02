//! The service's error codes beside the common ones, and what the shape's refusals are in its words.

use lazuli_http::storage_codes;
use lazuli_http::storage_error::CommonCode as Common;
use lazuli_shapes::blob::codes;

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
    /// What a refusal of the shape is called here. None for what the kind of the error says well enough.
    pub(crate) fn of_shape(code: &str) -> Option<Self> {
        Some(match code {
            codes::CONTAINER_NOT_FOUND => Self::ContainerNotFound,
            codes::CONTAINER_EXISTS | codes::CONTAINER_IN_USE => Self::ContainerAlreadyExists,
            codes::BLOB_NOT_FOUND => Self::BlobNotFound,
            codes::BLOB_EXISTS => Self::BlobAlreadyExists,
            codes::BLOB_TYPE_MISMATCH => Self::InvalidBlobType,
            codes::BLOB_ARCHIVED => Self::BlobArchived,
            codes::BLOB_BEING_REHYDRATED => Self::BlobBeingRehydrated,
            codes::BLOB_IMMUTABLE | codes::IMMUTABILITY_LOCKED => Self::BlobImmutableDueToPolicy,
            codes::LEGAL_HOLD => Self::BlobImmutableDueToLegalHold,
            codes::BLOB_SEALED => Self::BlobIsSealed,
            codes::SNAPSHOTS_PRESENT => Self::SnapshotsPresent,
            codes::OPERATION_NOT_ALLOWED_ON_ROOT => Self::OperationNotAllowedOnRootBlob,
            codes::NOT_SOFT_DELETED => Self::BlobSnapshotNotSoftDeleted,
            codes::CONDITION_NOT_MET => Self::Common(Common::ConditionNotMet),
            codes::UNSATISFIABLE_CONDITION => Self::UnsatisfiableCondition,
            codes::LEASE_ID_MISSING => Self::LeaseIdMissing,
            codes::LEASE_ID_MISMATCH_BLOB => Self::LeaseIdMismatchWithBlobOperation,
            codes::LEASE_ID_MISMATCH_CONTAINER => Self::LeaseIdMismatchWithContainerOperation,
            codes::LEASE_ID_MISMATCH_LEASE => Self::LeaseIdMismatchWithLeaseOperation,
            codes::LEASE_NOT_PRESENT_BLOB => Self::LeaseNotPresentWithBlobOperation,
            codes::LEASE_NOT_PRESENT_CONTAINER => Self::LeaseNotPresentWithContainerOperation,
            codes::LEASE_NOT_PRESENT_LEASE => Self::LeaseNotPresentWithLeaseOperation,
            codes::LEASE_LOST => Self::LeaseLost,
            codes::LEASE_ALREADY_PRESENT => Self::LeaseAlreadyPresent,
            codes::LEASE_IS_BREAKING_ACQUIRE => Self::LeaseIsBreakingAndCannotBeAcquired,
            codes::LEASE_IS_BREAKING_CHANGE => Self::LeaseIsBreakingAndCannotBeChanged,
            codes::LEASE_IS_BROKEN_RENEW => Self::LeaseIsBrokenAndCannotBeRenewed,
            codes::LEASE_DURATION_INVALID => Self::Common(Common::InvalidHeaderValue),
            codes::INVALID_BLOCK_LIST => Self::InvalidBlockList,
            codes::INVALID_BLOCK_ID => Self::InvalidBlobOrBlock,
            codes::BLOCK_COUNT_EXCEEDED => Self::BlockCountExceedsLimit,
            codes::APPEND_POSITION_NOT_MET => Self::AppendPositionConditionNotMet,
            codes::MAX_BLOB_SIZE_NOT_MET => Self::MaxBlobSizeConditionNotMet,
            codes::INVALID_PAGE_RANGE => Self::InvalidPageRange,
            codes::INVALID_RANGE => Self::InvalidRange,
            codes::SEQUENCE_NUMBER_NOT_MET => Self::SequenceNumberConditionNotMet,
            codes::SEQUENCE_NUMBER_TOO_LARGE => Self::SequenceNumberIncrementTooLarge,
            codes::PREVIOUS_SNAPSHOT_NOT_FOUND => Self::PreviousSnapshotNotFound,
            codes::PREVIOUS_SNAPSHOT_NEWER => Self::PreviousSnapshotCannotBeNewer,
            codes::BLOB_OVERWRITTEN => Self::BlobOverwritten,
            codes::NO_PENDING_COPY => Self::NoPendingCopyOperation,
            codes::COPY_ID_MISMATCH => Self::CopyIdMismatch,
            codes::PENDING_COPY => Self::PendingCopyOperation,
            codes::SOURCE_CONDITION_NOT_MET => Self::SourceConditionNotMet,
            codes::SOURCE_NOT_FOUND => Self::CannotVerifyCopySource,
            codes::KEY_REQUIRED | codes::KEY_MISMATCH => Self::BlobUsesCustomerSpecifiedEncryption,
            codes::TIER_NOT_ALLOWED => Self::InvalidBlobTier,
            codes::TIER_NOT_OF_TYPE => Self::AccessTierNotSupportedForBlobType,
            _ => return None,
        })
    }
}
