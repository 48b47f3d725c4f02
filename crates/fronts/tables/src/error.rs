//! What can go wrong, in the service's own words: its error codes, and the errors of core as these.

use lazuli_azure::odata::JsonError;
use lazuli_azure::storage_codes;
use lazuli_azure::storage_error::{self, ErrorCode as _};
use lazuli_engine::{Error, Kind};

pub(crate) use lazuli_azure::storage_error::CommonCode as Common;

lazuli_engine::reasons! {
    /// Why a merge is refused inside the lane.
    pub(crate) enum EntityReason {
        TooManyProperties = "TooManyProperties",
    }
}

storage_codes! {
    [
        InvalidUri => Self::InvalidUri,
        OutOfRangeInput => Self::OutOfRangeInput,
        RequestUrlFailedToParse => Self::Common(Common::InvalidInput),
        ServerBusy => Self::ServerBusy,
    ]
    AtomFormatNotSupported 415 "Atom format is not supported.";
    CommandsInBatchActOnDifferentPartitions 400
        "All commands in a batch must operate on same entity group.";
    DuplicatePropertiesSpecified 400 "A property is specified more than one time.";
    EntityAlreadyExists 409 "The specified entity already exists.";
    EntityTooLarge 400 "The entity is larger than the maximum allowed size (1MB).";
    InvalidDuplicateRow 400
        "The batch request contains multiple changes with same row key. An entity can appear only \
         once in a batch request.";
    InvalidUri 400 "The requested URI does not represent any resource.";
    KeyValueTooLarge 400 "The key property is larger than the maximum allowed size (1KB).";
    MethodNotAllowed 405 "The resource doesn't support the specified HTTP verb.";
    OutOfRangeInput 400 "One of the request inputs is out of range.";
    PropertiesNeedValue 400 "The values are not specified for all properties in the entity.";
    PropertyNameInvalid 400 "The property name is invalid.";
    PropertyNameTooLong 400 "The property name exceeds the maximum allowed length (255).";
    PropertyValueTooLarge 400
        "The property value exceeds the maximum allowed size (64KB). If the property value is a \
         string, it is UTF-16 encoded and the maximum number of characters should be 32K or less.";
    ServerBusy 503 "The server is currently unable to receive requests. Please retry.";
    TableAlreadyExists 409 "The table specified already exists.";
    TableNotFound 404 "The table specified does not exist.";
    TooManyProperties 400
        "The entity contains more properties than allowed. Each entity can include up to 252 \
         properties to store data. Each entity also has 3 system properties.";
    UpdateConditionNotSatisfied 412
        "The update condition specified in the request was not satisfied.";
    XMethodIncorrectValue 400 "The specified X-HTTP-Method is not valid for this request.";
    XMethodNotUsingPost 400 "The request uses X-HTTP-Method without POST.";
}

/// A refusal on its way to the client.
pub(crate) type Fault = storage_error::Fault<Code>;

pub(crate) type Result<T> = std::result::Result<T, Fault>;

/// What became of an operation whose table, or whose entity, the error is about.
pub(crate) fn from_core(error: &Error, subject: Subject) -> Fault {
    match error.kind() {
        Kind::NotFound => Fault::new(subject.not_found()),
        Kind::Exists => Fault::new(subject.exists()),
        Kind::Precondition => Fault::new(Code::UpdateConditionNotSatisfied),
        Kind::Invalid if error.is(EntityReason::TooManyProperties) => {
            Fault::new(Code::TooManyProperties)
        }
        Kind::Invalid => Fault::new(Common::InvalidInput).say(error.message().to_owned()),
        Kind::TooLarge => Fault::new(Code::EntityTooLarge).say(error.message().to_owned()),
        Kind::Throttled { retry_after } | Kind::Unavailable { retry_after } => {
            Fault::new(Code::ServerBusy).retry_after(retry_after)
        }
        Kind::Moved => Fault::new(Code::ServerBusy),
        Kind::Corrupt | Kind::Internal => Fault::new(Common::InternalError).because(error),
    }
}

/// The other way round, for a merge that is refused inside the lane: `from_core` makes the same code of it again.
pub(crate) fn into_core(fault: Fault) -> Error {
    let message = fault.message().to_owned();
    match fault.code {
        Code::TooManyProperties => Error::invalid(EntityReason::TooManyProperties, message),
        Code::EntityTooLarge => Error::too_large(fault.code.name(), message),
        _ => Error::corrupt("bad-entity", fault.cause().unwrap_or_default()),
    }
}

/// Why the JSON of an entity is refused.
pub(crate) fn from_json(error: JsonError) -> Fault {
    match error {
        JsonError::Syntax | JsonError::UnknownType(_) | JsonError::WrongValue(_) => {
            Fault::new(Common::InvalidInput)
        }
        JsonError::TooManyMembers => Fault::new(Code::TooManyProperties),
        JsonError::Duplicate(_) => Fault::new(Code::DuplicatePropertiesSpecified),
        JsonError::OutOfRange(name) => Fault::new(Code::OutOfRangeInput)
            .say(format!("The '{name}' parameter is out of range.")),
    }
}

/// What an operation is about: decides which of the service's words a missing or existing thing gets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Subject {
    /// The table that the operation creates or deletes.
    Table,
    /// An entity, in a table that must exist.
    Entity,
    /// The entities of a table that must exist.
    Entities,
}

impl Subject {
    fn not_found(self) -> Code {
        match self {
            Self::Table | Self::Entity => Common::ResourceNotFound.into(),
            Self::Entities => Code::TableNotFound,
        }
    }

    fn exists(self) -> Code {
        match self {
            Self::Table => Code::TableAlreadyExists,
            Self::Entity | Self::Entities => Code::EntityAlreadyExists,
        }
    }
}
