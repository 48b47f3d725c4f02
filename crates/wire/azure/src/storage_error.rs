//! Errors of the storage services: a code, a status, a sentence, written as XML or as OData JSON.
//!
//! Most codes are the same in all services ([`CommonCode`]). Each front adds its own with [`storage_codes!`], and maps
//! the errors of core onto them.

use std::borrow::Cow;
use std::time::Duration;

use lazuli_http::StatusCode;

use crate::DocumentError;
use crate::auth::Refusal;
use crate::auth::bearer::TokenFault;
use crate::odata::ErrorFormat;
use lazuli_http::body::BodyError;
use lazuli_http::message::Response;
use lazuli_http::multipart::MultipartError;
use lazuli_http::uri::UriError;
use lazuli_http::xml::XmlError;

/// A word for what went wrong.
pub trait ErrorCode: Copy + From<CommonCode> + Send + Sync + 'static {
    /// The word itself, as clients compare it.
    fn name(self) -> &'static str;
    /// The status that goes with it, and what the service says about it.
    fn meaning(self) -> (u16, &'static str);
}

macro_rules! common_codes {
    ($($name:ident $status:literal $sentence:literal;)*) => {
        /// The codes that all services share.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum CommonCode { $($name),* }

        impl ErrorCode for CommonCode {
            fn name(self) -> &'static str {
                match self { $(Self::$name => stringify!($name)),* }
            }

            fn meaning(self) -> (u16, &'static str) {
                match self { $(Self::$name => ($status, $sentence)),* }
            }
        }
    };
}

/// Makes the enum `Code` of a front: the common codes and its own, a name, a status and a sentence in each line. A front
/// whose service has another code or sentence for a common one lists these first, in brackets.
#[macro_export]
macro_rules! storage_codes {
    (
        $([$($common:ident => $code:expr),* $(,)?])?
        $($name:ident $status:literal $sentence:literal;)*
    ) => {
        /// The service's error codes that this front can answer.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub(crate) enum Code { Common($crate::storage_error::CommonCode), $($name),* }

        impl $crate::storage_error::ErrorCode for Code {
            fn name(self) -> &'static str {
                match self {
                    Self::Common(code) => $crate::storage_error::ErrorCode::name(code),
                    $(Self::$name => stringify!($name)),*
                }
            }

            fn meaning(self) -> (u16, &'static str) {
                match self {
                    Self::Common(code) => $crate::storage_error::ErrorCode::meaning(code),
                    $(Self::$name => ($status, $sentence)),*
                }
            }
        }

        impl From<$crate::storage_error::CommonCode> for Code {
            fn from(code: $crate::storage_error::CommonCode) -> Self {
                match code {
                    $($($crate::storage_error::CommonCode::$common => $code,)*)?
                    code => Self::Common(code),
                }
            }
        }
    };
}

common_codes! {
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
    ConditionNotMet 412
        "The condition specified using HTTP conditional header(s) is not met.";
    CorsPreflightFailure 403 "CORS not enabled or no matching rule found for this request.";
    EmptyMetadataKey 400 "The key for one of the metadata key-value pairs is empty.";
    InsufficientAccountPermissions 403
        "The account being accessed does not have sufficient permissions to execute this \
         operation.";
    InternalError 500 "The server encountered an internal error. Please retry the request.";
    InvalidAuthenticationInfo 400
        "Authentication information is not given in the correct format. Check the value of \
         Authorization header.";
    InvalidHeaderValue 400 "The value for one of the HTTP headers is not in the correct format.";
    InvalidInput 400 "One of the request inputs is not valid.";
    InvalidMetadata 400
        "The specified metadata is invalid. It includes characters that are not permitted.";
    InvalidQueryParameterValue 400
        "Value for one of the query parameters specified in the request URI is invalid.";
    InvalidResourceName 400 "The specified resource name contains invalid characters.";
    InvalidUri 400 "The requested URI does not represent any resource on the server.";
    InvalidXmlDocument 400 "XML specified is not syntactically valid.";
    InvalidXmlNodeValue 400 "The value for one of the XML nodes is not in the correct format.";
    Md5Mismatch 400
        "The MD5 value specified in the request did not match with the MD5 value calculated by \
         the server.";
    MetadataTooLarge 400 "The metadata specified exceeds the maximum permissible limit (8KB).";
    MissingContentLengthHeader 411
        "The Content-Length header was not specified.";
    MissingRequiredHeader 400 "An HTTP header that's mandatory for this request is not specified.";
    MissingRequiredQueryParameter 400
        "A query parameter that's mandatory for this request is not specified.";
    MissingRequiredXmlNode 400 "A required XML node was not specified in the request body.";
    NoAuthenticationInformation 401
        "Server failed to authenticate the request. Please refer to the information in the \
         www-authenticate header.";
    NotImplemented 501 "The requested operation is not implemented on the specified resource.";
    OperationTimedOut 500 "The operation could not be completed within the permitted time.";
    OutOfRangeInput 400
        "The specified resource name length is not within the permissible limits.";
    OutOfRangeQueryParameterValue 400
        "One of the query parameters specified in the request URI is outside the permissible \
         range.";
    RequestBodyTooLarge 413
        "The request body is too large and exceeds the maximum permissible limit.";
    RequestUrlFailedToParse 400 "The url in the request could not be parsed.";
    ResourceNotFound 404 "The specified resource does not exist.";
    ServerBusy 503 "The server is busy.";
    UnsupportedHeader 400
        "One of the HTTP headers specified in the request is not supported.";
    UnsupportedHttpVerb 405 "The resource doesn't support specified Http Verb.";
    UnsupportedQueryParameter 400
        "One of the query parameters specified in the request URI is not supported.";
    UnsupportedXmlNode 400
        "One of the XML nodes specified in the request body is not supported.";
}

/// The challenge for clients whose token is not accepted: where tokens come from, and for which audience. The services name
/// the tenant of the account; accounts here have none.
const CHALLENGE: &str = "Bearer \
     authorization_uri=https://login.microsoftonline.com/common/oauth2/authorize \
     resource_id=https://storage.azure.com";
const SEE_CHALLENGE: &str = "Server failed to authenticate the request. Please refer to the \
     information in the www-authenticate header.";

/// A refusal on its way to the client.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault<C> {
    pub code: C,
    message: Cow<'static, str>,
    /// In place of the code's own, where the same code comes with several.
    status: Option<StatusCode>,
    details: Vec<(&'static str, String)>,
    headers: Vec<(&'static str, String)>,
    retry_after: Option<Duration>,
    /// The index of the operation in its transaction.
    position: Option<u16>,
    /// What an operator should know and a client should not.
    cause: Option<String>,
}

impl<C: ErrorCode> Fault<C> {
    pub fn new(code: impl Into<C>) -> Self {
        let code = code.into();
        let message = Cow::Borrowed(code.meaning().1);
        Self {
            code,
            message,
            status: None,
            details: Vec::new(),
            headers: Vec::new(),
            retry_after: None,
            position: None,
            cause: None,
        }
    }

    /// Says something more to the point than the code's own sentence.
    pub fn say(self, message: impl Into<Cow<'static, str>>) -> Self {
        Self { message: message.into(), ..self }
    }

    /// Answers with another status than the code's own.
    pub fn with_status(self, status: StatusCode) -> Self {
        Self { status: Some(status), ..self }
    }

    pub fn status(&self) -> StatusCode {
        let own = StatusCode::from_u16(self.code.meaning().0);
        self.status.unwrap_or(own.unwrap_or(StatusCode::INTERNAL_SERVER_ERROR))
    }

    /// Adds an element to the document, such as the name of the header that is wrong.
    pub fn detail(mut self, element: &'static str, text: impl Into<String>) -> Self {
        self.details.push((element, text.into()));
        self
    }

    /// Adds a header to the answer.
    pub fn header(mut self, name: &'static str, value: impl Into<String>) -> Self {
        self.headers.push((name, value.into()));
        self
    }

    pub fn message(&self) -> &str {
        &self.message
    }

    /// The same refusal, of the operation at this index of a transaction: the service puts it in front of the sentence.
    pub fn at(self, position: usize) -> Self {
        let message = format!("{position}:{}", self.message).into();
        Self { message, position: Some(u16::try_from(position).unwrap_or(u16::MAX)), ..self }
    }

    /// The index of the refused operation in its transaction, if it is part of one.
    pub fn position(&self) -> Option<usize> {
        self.position.map(usize::from)
    }

    /// Tells the log, and not the client, what went wrong.
    pub fn because(self, cause: impl std::fmt::Display) -> Self {
        Self { cause: Some(cause.to_string()), ..self }
    }

    pub fn cause(&self) -> Option<&str> {
        self.cause.as_deref()
    }

    pub fn retry_after(self, after: Duration) -> Self {
        Self { retry_after: Some(after), ..self }
    }

    /// Whether it is the server's fault, so that the same request may succeed another time.
    pub fn is_ours(&self) -> bool {
        self.status().is_server_error()
    }

    /// The response, without the headers that all responses share. (That to a `HEAD` request loses its body on the way.)
    pub fn response(&self, format: ErrorFormat, request_id: &str, time: &str) -> Response {
        let (status, code) = (self.status(), self.code.name());
        let mut response = Response::new(status).with("x-ms-error-code", code);
        if let Some(after) = self.retry_after {
            // The header knows whole seconds only.
            response = response.with("retry-after", after.as_secs().max(1).to_string());
        }
        if status == StatusCode::UNAUTHORIZED && format == ErrorFormat::Storage {
            response = response.with("www-authenticate", CHALLENGE);
        }
        for (name, value) in &self.headers {
            response = response.with(name, value);
        }
        // These two carry no body, whatever went wrong.
        if matches!(status, StatusCode::NOT_MODIFIED | StatusCode::NO_CONTENT) {
            return response;
        }
        let message = format!("{}\nRequestId:{request_id}\nTime:{time}", self.message);
        let (content_type, document) = format.document(code, &message, &self.details);
        response.with("content-type", content_type).with_body(document)
    }

    /// Why the Table service does not let a request in: it knows no challenge for tokens.
    pub fn of_table_refusal(refusal: Refusal) -> Self {
        let Refusal::Token(token) = refusal else { return refusal.into() };
        let failed = Self::new(CommonCode::AuthenticationFailed);
        let sentence = format!("{} {}", failed.message, token.detail());
        failed.say(sentence)
    }
}

impl<C: ErrorCode> From<Refusal> for Fault<C> {
    fn from(refusal: Refusal) -> Self {
        let fault = Self::new(match refusal {
            Refusal::Missing => CommonCode::NoAuthenticationInformation,
            Refusal::Malformed => CommonCode::InvalidAuthenticationInfo,
            Refusal::UnknownAccount
            | Refusal::OtherAccount
            | Refusal::NoDate
            | Refusal::ClockSkew
            | Refusal::WrongSignature
            | Refusal::OutsideTime
            | Refusal::UnknownPolicy
            | Refusal::Token(TokenFault::NotSupported | TokenFault::NotSecure) => {
                CommonCode::AuthenticationFailed
            }
            Refusal::Token(_) => CommonCode::InvalidAuthenticationInfo,
            Refusal::OtherAddress => CommonCode::AuthorizationSourceIPMismatch,
            Refusal::OtherProtocol => CommonCode::AuthorizationProtocolMismatch,
            Refusal::OtherService => CommonCode::AuthorizationServiceMismatch,
        });
        match refusal {
            Refusal::Token(token @ (TokenFault::NotSupported | TokenFault::NotSecure)) => {
                fault.detail("AuthenticationErrorDetail", token.detail())
            }
            // A malformed token, or one for another audience, is answered with the challenge.
            Refusal::Token(token) => fault
                .with_status(StatusCode::UNAUTHORIZED)
                .say(SEE_CHALLENGE)
                .detail("AuthenticationErrorDetail", token.detail()),
            _ => fault,
        }
    }
}

impl<C: ErrorCode> From<BodyError> for Fault<C> {
    fn from(error: BodyError) -> Self {
        match error {
            BodyError::TooLarge => Self::new(CommonCode::RequestBodyTooLarge),
            BodyError::TimedOut => Self::new(CommonCode::OperationTimedOut),
            BodyError::Broken => Self::new(CommonCode::InvalidInput),
            BodyError::NoRoom => {
                Self::new(CommonCode::ServerBusy).retry_after(Duration::from_secs(1))
            }
        }
    }
}

/// What the parsers of this and the crate below refuse, as codes.
macro_rules! faults {
    ($($error:ident { $($refused:pat => $code:ident,)* })*) => {
        $(impl<C: ErrorCode> From<$error> for Fault<C> {
            fn from(error: $error) -> Self {
                Self::new(match error { $($refused => CommonCode::$code,)* })
            }
        })*
    };
}

faults! {
    DocumentError {
        DocumentError::NotXml => InvalidXmlDocument,
        DocumentError::BadValue => InvalidXmlNodeValue,
    }
    XmlError {
        XmlError => InvalidXmlDocument,
    }
    MultipartError {
        MultipartError::NoBoundary => InvalidHeaderValue,
        MultipartError::Malformed | MultipartError::TooManyParts => InvalidInput,
    }
    UriError {
        UriError::BadEscape | UriError::NotText => RequestUrlFailedToParse,
        UriError::TooManyParameters => InvalidInput,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    storage_codes! {
        ThingNotFound 404 "The thing does not exist.";
        NotChanged 304 "The thing has not changed.";
    }

    async fn answer(fault: Fault<Code>) -> String {
        let response = fault.response(ErrorFormat::Storage, "id", "now");
        let mut out = response.status.as_u16().to_string();
        for (name, value) in &response.headers {
            out += &format!("\n{name}: {}", value.to_str().unwrap());
        }
        let body = response.body.collect(4096).await.unwrap();
        out + "\n" + std::str::from_utf8(&body).unwrap()
    }

    #[tokio::test]
    async fn a_refusal_is_an_answer_with_its_code_in_header_and_body() {
        assert_eq!(
            answer(Fault::new(Code::ThingNotFound).detail("Thing", "a<b")).await,
            "404\nx-ms-error-code: ThingNotFound\ncontent-type: application/xml\n\
             <?xml version=\"1.0\" encoding=\"utf-8\"?><Error><Code>ThingNotFound</Code>\
             <Message>The thing does not exist.\nRequestId:id\nTime:now</Message>\
             <Thing>a&lt;b</Thing></Error>"
        );
        let busy = Fault::new(CommonCode::ServerBusy).retry_after(Duration::from_millis(1));
        assert!(
            answer(busy).await.starts_with("503\nx-ms-error-code: ServerBusy\nretry-after: 1\n")
        );
        let behind = Fault::new(Code::ThingNotFound).header("content-range", "bytes */5");
        assert!(answer(behind).await.contains("\ncontent-range: bytes */5\n"));
        let unchanged = answer(Fault::new(Code::NotChanged)).await;
        assert_eq!(unchanged, "304\nx-ms-error-code: NotChanged\n");
    }

    #[tokio::test]
    async fn who_brings_no_good_token_is_told_where_to_get_one() {
        let refused = |fault| answer(Fault::from(Refusal::Token(fault)));
        for fault in [TokenFault::Malformed, TokenFault::NotInTime, TokenFault::OtherAudience] {
            let answer = refused(fault).await;
            assert!(
                answer.starts_with(
                    "401\nx-ms-error-code: InvalidAuthenticationInfo\nwww-authenticate: Bearer \
                     authorization_uri=https://login.microsoftonline.com/common/oauth2/authorize \
                     resource_id=https://storage.azure.com\n"
                ),
                "{answer}"
            );
            assert!(answer.contains(fault.detail()), "{answer}");
        }
        assert!(answer(Refusal::Missing.into()).await.contains("\nwww-authenticate: Bearer "));
        // Where tokens are not accepted there is no challenge.
        for fault in [TokenFault::NotSupported, TokenFault::NotSecure] {
            let answer = refused(fault).await;
            assert!(answer.starts_with("403\nx-ms-error-code: AuthenticationFailed\n"), "{answer}");
            assert!(!answer.contains("www-authenticate"), "{answer}");
        }
    }

    #[test]
    fn what_the_parts_refuse_has_a_code() {
        let code = |fault: Fault<Code>| fault.code.name();
        assert_eq!(code(Refusal::Missing.into()), "NoAuthenticationInformation");
        assert_eq!(code(Refusal::WrongSignature.into()), "AuthenticationFailed");
        assert_eq!(code(BodyError::TooLarge.into()), "RequestBodyTooLarge");
        assert_eq!(code(DocumentError::NotXml.into()), "InvalidXmlDocument");
        assert_eq!(code(DocumentError::BadValue.into()), "InvalidXmlNodeValue");
        assert_eq!(code(UriError::BadEscape.into()), "RequestUrlFailedToParse");
        assert_eq!(code(XmlError.into()), "InvalidXmlDocument");
        assert_eq!(code(MultipartError::NoBoundary.into()), "InvalidHeaderValue");
        assert!(Fault::<Code>::new(CommonCode::InternalError).is_ours());
    }
}
