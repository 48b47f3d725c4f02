//! The errors that the documentation of the storage services allows, with the statuses that go with them: the common ones,
//! those of the Table service, and those that its pages on signatures, names and batches tell of.

const BAD_REQUEST: &[&str] = &[
    "CommandsInBatchActOnDifferentPartitions",
    "DuplicatePropertiesSpecified",
    "EntityTooLarge",
    "HostInformationNotPresent",
    "InvalidAuthenticationInfo",
    "InvalidDuplicateRow",
    "InvalidHeaderValue",
    "InvalidHttpVerb",
    "InvalidInput",
    "InvalidQueryParameterValue",
    "InvalidResourceName",
    "InvalidUri",
    "InvalidValueType",
    "InvalidXmlDocument",
    "InvalidXmlNodeValue",
    "KeyValueTooLarge",
    "MissingRequiredHeader",
    "MissingRequiredQueryParameter",
    "MissingRequiredXmlNode",
    "OutOfRangeInput",
    "OutOfRangeQueryParameterValue",
    "PropertiesNeedValue",
    "PropertyNameInvalid",
    "PropertyNameTooLong",
    "PropertyValueTooLarge",
    "RequestUrlFailedToParse",
    "TooManyProperties",
    "UnsupportedHeader",
    "UnsupportedQueryParameter",
    "UnsupportedXmlNode",
    "XMethodIncorrectCount",
    "XMethodIncorrectValue",
    "XMethodNotUsingPost",
];

const FORBIDDEN: &[&str] = &[
    "AuthenticationFailed",
    "AuthorizationFailure",
    "AuthorizationPermissionMismatch",
    "AuthorizationProtocolMismatch",
    "AuthorizationResourceTypeMismatch",
    "AuthorizationServiceMismatch",
    "AuthorizationSourceIPMismatch",
    "CorsPreflightFailure",
    "InsufficientAccountPermissions",
];

/// Whether the documentation has this code with this status. The server's own faults are not among them, nor is being busy:
/// no request may keep others from being served.
pub(super) fn is_documented(status: u16, code: &str) -> bool {
    let known: &[&str] = match status {
        400 => BAD_REQUEST,
        401 => &["NoAuthenticationInformation", "InvalidAuthenticationInfo"],
        403 => FORBIDDEN,
        404 => &["EntityNotFound", "ResourceNotFound", "TableNotFound"],
        405 => &["MethodNotAllowed", "UnsupportedHttpVerb"],
        409 => &["EntityAlreadyExists", "TableAlreadyExists", "TableBeingDeleted"],
        411 => &["MissingContentLengthHeader"],
        412 => &["ConditionNotMet", "UpdateConditionNotSatisfied"],
        413 => &["RequestBodyTooLarge"],
        415 => &["AtomFormatNotSupported", "JsonFormatNotSupported", "MediaTypeNotSupported"],
        _ => &[],
    };
    known.contains(&code)
}

/// Whether bytes that are no HTTP, or too much of it, may be answered so: before there is a request that an operation
/// could have a word for.
pub(super) fn is_no_request(status: u16) -> bool {
    matches!(status, 400 | 408 | 413 | 414 | 431)
}
