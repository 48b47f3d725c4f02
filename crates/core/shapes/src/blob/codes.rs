//! The codes of refusals, by which a front finds the words of its service. The kinds say what the caller must do.

pub const CONTAINER_NOT_FOUND: &str = "container-not-found";
pub const CONTAINER_EXISTS: &str = "container-exists";
/// Undeleting a container whose name is in use.
pub const CONTAINER_IN_USE: &str = "container-in-use";
pub const BLOB_NOT_FOUND: &str = "blob-not-found";
/// A condition asked for no blob where there is one.
pub const BLOB_EXISTS: &str = "blob-exists";
pub const BLOB_TYPE_MISMATCH: &str = "blob-type-mismatch";
pub const BLOB_ARCHIVED: &str = "blob-archived";
pub const BLOB_BEING_REHYDRATED: &str = "blob-being-rehydrated";
pub const BLOB_IMMUTABLE: &str = "blob-immutable";
pub const LEGAL_HOLD: &str = "legal-hold";
pub const BLOB_SEALED: &str = "blob-sealed";
pub const SNAPSHOTS_PRESENT: &str = "snapshots-present";
/// Deleting the version that the blob has now, by its name.
pub const OPERATION_NOT_ALLOWED_ON_ROOT: &str = "operation-not-allowed-on-root";
/// Deleting for good what was not deleted before.
pub const NOT_SOFT_DELETED: &str = "not-soft-deleted";

pub const CONDITION_NOT_MET: &str = "condition-not-met";
/// A condition of a read that says the caller's copy is still good.
pub const NOT_MODIFIED: &str = "not-modified";
pub const UNSATISFIABLE_CONDITION: &str = "unsatisfiable-condition";

pub const LEASE_ID_MISSING: &str = "lease-id-missing";
pub const LEASE_ID_MISMATCH_BLOB: &str = "lease-id-mismatch-blob";
pub const LEASE_ID_MISMATCH_CONTAINER: &str = "lease-id-mismatch-container";
pub const LEASE_ID_MISMATCH_LEASE: &str = "lease-id-mismatch-lease";
pub const LEASE_NOT_PRESENT_BLOB: &str = "lease-not-present-blob";
pub const LEASE_NOT_PRESENT_CONTAINER: &str = "lease-not-present-container";
pub const LEASE_NOT_PRESENT_LEASE: &str = "lease-not-present-lease";
pub const LEASE_LOST: &str = "lease-lost";
pub const LEASE_ALREADY_PRESENT: &str = "lease-already-present";
pub const LEASE_IS_BREAKING_ACQUIRE: &str = "lease-is-breaking-acquire";
pub const LEASE_IS_BREAKING_CHANGE: &str = "lease-is-breaking-change";
pub const LEASE_IS_BROKEN_RENEW: &str = "lease-is-broken-renew";
pub const LEASE_DURATION_INVALID: &str = "lease-duration-invalid";

pub const INVALID_BLOCK_LIST: &str = "invalid-block-list";
pub const INVALID_BLOCK_ID: &str = "invalid-block-id";
pub const BLOCK_COUNT_EXCEEDED: &str = "block-count-exceeded";
pub const APPEND_POSITION_NOT_MET: &str = "append-position-not-met";
pub const MAX_BLOB_SIZE_NOT_MET: &str = "max-blob-size-not-met";
pub const INVALID_PAGE_RANGE: &str = "invalid-page-range";
pub const INVALID_RANGE: &str = "invalid-range";
pub const SEQUENCE_NUMBER_NOT_MET: &str = "sequence-number-not-met";
pub const SEQUENCE_NUMBER_TOO_LARGE: &str = "sequence-number-too-large";
pub const PREVIOUS_SNAPSHOT_NOT_FOUND: &str = "previous-snapshot-not-found";
pub const PREVIOUS_SNAPSHOT_NEWER: &str = "previous-snapshot-newer";
pub const BLOB_OVERWRITTEN: &str = "blob-overwritten";

pub const NO_PENDING_COPY: &str = "no-pending-copy";
pub const COPY_ID_MISMATCH: &str = "copy-id-mismatch";
pub const PENDING_COPY: &str = "pending-copy";
pub const SOURCE_CONDITION_NOT_MET: &str = "source-condition-not-met";
pub const SOURCE_NOT_FOUND: &str = "source-not-found";

/// The content was written with a key that the caller did not bring.
pub const KEY_REQUIRED: &str = "key-required";
/// The caller brought another key, or one where none was used.
pub const KEY_MISMATCH: &str = "key-mismatch";
pub const TIER_NOT_ALLOWED: &str = "tier-not-allowed";
/// Blobs of this type have no such tier.
pub const TIER_NOT_OF_TYPE: &str = "tier-not-of-type";
pub const IMMUTABILITY_LOCKED: &str = "immutability-locked";
