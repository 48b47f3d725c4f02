//! What can go wrong, in the service's own words: a code, a status, a sentence, as JSON or XML.

use std::borrow::Cow;
use std::time::Duration;

use lazuli_engine::{Error, Kind};
use lazuli_http::acl::AclError;
use lazuli_http::auth::Refusal;
use lazuli_http::multipart::MultipartError;
use lazuli_http::odata::{JsonError, write_string};
use lazuli_http::properties::PropertiesError;
use lazuli_http::uri::UriError;
use lazuli_http::{BodyError, Response, StatusCode};

macro_rules! codes {
    ($($name:ident $status:literal $sentence:literal;)*) => {
        /// The service's error codes that this front can answer.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub(crate) enum Code { $($name),* }

        impl Code {
            fn name(self) -> &'static str {
                match self { $(Self::$name => stringify!($name)),* }
            }

            /// The status that goes with the code, and what the service says about it.
            fn meaning(self) -> (u16, &'static str) {
                match self { $(Self::$name => ($status, $sentence)),* }
            }
        }
    };
}

codes! {
    AtomFormatNotSupported 415 "Atom format is not supported.";
    AuthenticationFailed 403
        "Server failed to authenticate the request. Make sure the value of Authorization header \
         is formed correctly including the signature.";
    AuthorizationFailure 403 "This request is not authorized to perform this operation.";
    AuthorizationPermissionMismatch 403
        "This request is not authorized to perform this operation using this permission.";
    AuthorizationProtocolMismatch 403
        "This request is not authorized to perform this operation using this protocol.";
    AuthorizationResourceTypeMismatch 403
        "This request is not authorized to perform this operation using this resource type.";
    AuthorizationServiceMismatch 403
        "This request is not authorized to perform this operation using this service.";
    AuthorizationSourceIPMismatch 403
        "This request is not authorized to perform this operation using this source IP.";
    CommandsInBatchActOnDifferentPartitions 400
        "All commands in a batch must operate on same entity group.";
    CorsPreflightFailure 403
        "CORS not enabled or no matching rule found for this request.";
    DuplicatePropertiesSpecified 400 "A property is specified more than one time.";
    EntityAlreadyExists 409 "The specified entity already exists.";
    EntityTooLarge 400 "The entity is larger than the maximum allowed size (1MB).";
    InsufficientAccountPermissions 403
        "The account being accessed does not have sufficient permissions to execute this \
         operation.";
    InternalError 500 "The server encountered an internal error. Please retry the request.";
    InvalidAuthenticationInfo 400
        "Authentication information is not given in the correct format. Check the value of \
         Authorization header.";
    InvalidDuplicateRow 400
        "The batch request contains multiple changes with same row key. An entity can appear only \
         once in a batch request.";
    InvalidHeaderValue 400 "The value for one of the HTTP headers is not in the correct format.";
    InvalidInput 400 "One of the request inputs is not valid.";
    InvalidQueryParameterValue 400
        "Value for one of the query parameters specified in the request URI is invalid.";
    InvalidResourceName 400 "The specified resource name contains invalid characters.";
    InvalidUri 400 "The requested URI does not represent any resource.";
    InvalidXmlDocument 400 "XML specified is not syntactically valid.";
    InvalidXmlNodeValue 400
        "The value for one of the XML nodes is not in the correct format.";
    KeyValueTooLarge 400 "The key property is larger than the maximum allowed size (1KB).";
    MethodNotAllowed 405 "The resource doesn't support the specified HTTP verb.";
    MissingRequiredHeader 400 "An HTTP header that's mandatory for this request is not specified.";
    NoAuthenticationInformation 401
        "Server failed to authenticate the request. Please refer to the information in the \
         www-authenticate header.";
    OperationTimedOut 500 "The operation could not be completed within the permitted time.";
    OutOfRangeInput 400 "One of the request inputs is out of range.";
    PropertiesNeedValue 400 "The values are not specified for all properties in the entity.";
    PropertyNameInvalid 400 "The property name is invalid.";
    PropertyNameTooLong 400 "The property name exceeds the maximum allowed length (255).";
    PropertyValueTooLarge 400
        "The property value exceeds the maximum allowed size (64KB). If the property value is a \
         string, it is UTF-16 encoded and the maximum number of characters should be 32K or less.";
    RequestBodyTooLarge 413
        "The request body is too large and exceeds the maximum permissible limit.";
    ResourceNotFound 404 "The specified resource does not exist.";
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
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Fault {
    pub(crate) code: Code,
    message: Cow<'static, str>,
    retry_after: Option<Duration>,
    /// The place of the operation in its transaction.
    position: Option<usize>,
    /// What an operator should know and a client should not.
    cause: Option<String>,
}

pub(crate) type Result<T> = std::result::Result<T, Fault>;

impl Fault {
    pub(crate) fn new(code: Code) -> Self {
        let message = Cow::Borrowed(code.meaning().1);
        Self { code, message, retry_after: None, position: None, cause: None }
    }

    /// Says something more to the point than the code's own sentence.
    pub(crate) fn say(self, message: impl Into<Cow<'static, str>>) -> Self {
        Self { message: message.into(), ..self }
    }

    /// Tells the log, and nobody else, what went wrong.
    pub(crate) fn because(self, cause: impl std::fmt::Display) -> Self {
        Self { cause: Some(cause.to_string()), ..self }
    }

    pub(crate) fn cause(&self) -> Option<&str> {
        self.cause.as_deref()
    }

    /// The same refusal, of the operation at this place of a transaction: the service says so in front of the sentence.
    pub(crate) fn at(self, position: usize) -> Self {
        let message = format!("{position}:{}", self.message).into();
        Self { message, position: Some(position), ..self }
    }

    /// The place of the operation of a transaction that is refused, if it is one.
    pub(crate) fn position(&self) -> Option<usize> {
        self.position
    }

    /// Whether it is the server's fault, so that the same request may succeed another time.
    pub(crate) fn is_ours(&self) -> bool {
        self.code.meaning().0 >= 500
    }

    fn retry_after(self, after: Duration) -> Self {
        Self { retry_after: Some(after), ..self }
    }

    /// What became of an operation whose table, or whose entity, the error is about.
    pub(crate) fn from_core(error: &Error, subject: Subject) -> Self {
        match error.kind() {
            Kind::NotFound => Self::new(subject.not_found()),
            Kind::Exists => Self::new(subject.exists()),
            Kind::Precondition => Self::new(Code::UpdateConditionNotSatisfied),
            Kind::Invalid if error.code() == Code::TooManyProperties.name() => {
                Self::new(Code::TooManyProperties)
            }
            Kind::Invalid => Self::new(Code::InvalidInput).say(error.message().to_owned()),
            Kind::TooLarge => Self::new(Code::EntityTooLarge).say(error.message().to_owned()),
            Kind::Throttled { retry_after } => Self::new(Code::ServerBusy).retry_after(retry_after),
            Kind::Moved => Self::new(Code::ServerBusy),
            Kind::Unavailable { retry_after } => {
                Self::new(Code::ServerBusy).retry_after(retry_after)
            }
            Kind::Corrupt => Self::new(Code::InternalError).because(error),
            Kind::Internal => Self::new(Code::InternalError).because(error),
        }
    }

    /// The other way round, for a merge that is refused inside the lane: `from_core` makes the same code of it again.
    pub(crate) fn into_core(self) -> Error {
        match self.code {
            Code::TooManyProperties => Error::invalid(self.code.name(), self.message),
            Code::EntityTooLarge => Error::too_large(self.code.name(), self.message),
            _ => Error::corrupt("bad-entity", self.cause.unwrap_or_default()),
        }
    }

    /// The answer, without the headers that all answers share.
    pub(crate) fn response(&self, format: ErrorFormat, request_id: &str, time: &str) -> Response {
        let (status, _) = self.code.meaning();
        let status = StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        let code = self.code.name();
        let message = format!("{}\nRequestId:{request_id}\nTime:{time}", self.message);
        let mut response = Response::new(status).with("x-ms-error-code", code);
        if let Some(after) = self.retry_after {
            // The header knows whole seconds only.
            response = response.with("retry-after", after.as_secs().max(1).to_string());
        }
        match format {
            ErrorFormat::Json => response
                .with("content-type", lazuli_http::odata::Metadata::Minimal.content_type())
                .with_body(json(code, &message)),
            ErrorFormat::Xml => {
                response.with("content-type", "application/xml").with_body(xml(code, &message))
            }
        }
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
            Self::Table | Self::Entity => Code::ResourceNotFound,
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

/// The body's format, as the client asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ErrorFormat {
    Json,
    Xml,
}

impl ErrorFormat {
    /// From an `Accept` header or a `$format` parameter: the form that is preferred, and JSON if both are, because that is
    /// what everything but refusals looks like. None if neither is asked for.
    pub(crate) fn parse(accept: &str) -> Option<Self> {
        let (mut json, mut xml) = (0.0, 0.0);
        for range in accept.split(',') {
            let mut parts = range.split(';').map(|part| part.trim().to_ascii_lowercase());
            let media = parts.next().unwrap_or_default();
            let quality = parts.find_map(|part| part.strip_prefix("q=")?.parse::<f32>().ok());
            let quality = quality.unwrap_or(1.0);
            match media.as_str() {
                "application/json" | "json" => json = quality.max(json),
                "atom" => xml = quality.max(xml),
                _ if media.ends_with("xml") => xml = quality.max(xml),
                _ => {}
            }
        }
        match (json > 0.0, xml > 0.0) {
            (false, false) => None,
            _ if xml > json => Some(Self::Xml),
            _ => Some(Self::Json),
        }
    }
}

fn json(code: &str, message: &str) -> Vec<u8> {
    let mut out = br#"{"odata.error":{"code":"#.to_vec();
    write_string(&mut out, code);
    out.extend_from_slice(br#","message":{"lang":"en-US","value":"#);
    write_string(&mut out, message);
    out.extend_from_slice(b"}}}");
    out
}

fn xml(code: &str, message: &str) -> String {
    let message = message.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
    format!(
        "<?xml version=\"1.0\" encoding=\"utf-8\" standalone=\"yes\"?>\
         <error xmlns=\"http://schemas.microsoft.com/ado/2007/08/dataservices/metadata\">\
         <code>{code}</code><message xml:lang=\"en-US\">{message}</message></error>"
    )
}

impl From<Refusal> for Fault {
    fn from(refusal: Refusal) -> Self {
        match refusal {
            Refusal::Missing => Self::new(Code::NoAuthenticationInformation),
            Refusal::Malformed => Self::new(Code::InvalidAuthenticationInfo),
            Refusal::UnknownAccount
            | Refusal::OtherAccount
            | Refusal::NoDate
            | Refusal::ClockSkew
            | Refusal::WrongSignature
            | Refusal::OutsideTime
            | Refusal::UnknownPolicy => Self::new(Code::AuthenticationFailed),
            Refusal::Token(token) => {
                let failed = Self::new(Code::AuthenticationFailed);
                let said = format!("{} {}", failed.message, token.detail());
                failed.say(said)
            }
            Refusal::OtherAddress => Self::new(Code::AuthorizationSourceIPMismatch),
            Refusal::OtherProtocol => Self::new(Code::AuthorizationProtocolMismatch),
            Refusal::OtherService => Self::new(Code::AuthorizationServiceMismatch),
        }
    }
}

impl From<BodyError> for Fault {
    fn from(error: BodyError) -> Self {
        match error {
            BodyError::TooLarge => Self::new(Code::RequestBodyTooLarge),
            BodyError::TimedOut => Self::new(Code::OperationTimedOut),
            BodyError::Broken => Self::new(Code::InvalidInput),
            BodyError::NoRoom => Self::new(Code::ServerBusy).retry_after(Duration::from_secs(1)),
        }
    }
}

impl From<AclError> for Fault {
    fn from(error: AclError) -> Self {
        match error {
            AclError::NotXml => Self::new(Code::InvalidXmlDocument),
            AclError::BadValue => Self::new(Code::InvalidXmlNodeValue),
        }
    }
}

impl From<PropertiesError> for Fault {
    fn from(error: PropertiesError) -> Self {
        match error {
            PropertiesError::NotXml => Self::new(Code::InvalidXmlDocument),
            PropertiesError::BadValue => Self::new(Code::InvalidXmlNodeValue),
        }
    }
}

impl From<MultipartError> for Fault {
    fn from(error: MultipartError) -> Self {
        match error {
            MultipartError::NoBoundary
            | MultipartError::Malformed
            | MultipartError::TooManyParts => Self::new(Code::InvalidInput),
        }
    }
}

impl From<UriError> for Fault {
    fn from(error: UriError) -> Self {
        match error {
            UriError::BadEscape | UriError::NotText | UriError::TooManyParameters => {
                Self::new(Code::InvalidInput)
            }
        }
    }
}

impl From<JsonError> for Fault {
    fn from(error: JsonError) -> Self {
        match error {
            JsonError::Syntax => Self::new(Code::InvalidInput),
            JsonError::TooManyMembers => Self::new(Code::TooManyProperties),
            JsonError::Duplicate(_) => Self::new(Code::DuplicatePropertiesSpecified),
            JsonError::UnknownType(_) | JsonError::WrongValue(_) => Self::new(Code::InvalidInput),
            JsonError::OutOfRange(name) => Self::new(Code::OutOfRangeInput)
                .say(format!("The '{name}' parameter is out of range.")),
        }
    }
}
