//! The error of core: few kinds that say what the caller must do, a code that says what happened, and a sentence.
//!
//! Fronts match on [`Kind`] without `_`, so a new kind is a decision in every front. The text of the code is for tests, logs
//! and machine-readable answers of the admin API. Code that must tell apart two errors of one kind asks for a reason: an enum
//! that [`reasons!`](crate::reasons) declares where the error is made.

use std::fmt;
use std::time::Duration;

pub type Result<T, E = Error> = std::result::Result<T, E>;

/// What the caller must do about it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// The thing named does not exist.
    NotFound,
    /// The thing to be created exists already.
    Exists,
    /// A condition of the caller's does not hold: read again, decide again.
    Precondition,
    /// The request can never succeed as it is.
    Invalid,
    /// The request, or what it would build, is over a named limit.
    TooLarge,
    /// Over the budget: come again after this time.
    Throttled { retry_after: Duration },
    /// Routed by an old map: refresh it and try again. Nothing was written.
    Moved,
    /// Not now. A write may or may not have happened.
    Unavailable { retry_after: Duration },
    /// Stored bytes are not what was written: an operator must look.
    Corrupt,
    /// A fault of ours.
    Internal,
}

/// An error of core. Cheap to move; carries one sentence for people.
#[derive(Clone, Debug)]
pub struct Error {
    kind: Kind,
    code: &'static str,
    message: Box<str>,
    position: Option<usize>,
}

/// An enum of errors that callers tell apart, made by [`reasons!`](crate::reasons). Its code is what people read.
pub trait Reason: Copy + Into<&'static str> + 'static {
    const ALL: &'static [Self];
}

/// Declares an enum of reasons, each with its code: `pub enum MapReason { MoveTaken = "move-taken", }`.
#[macro_export]
macro_rules! reasons {
    ($(#[$about:meta])* $vis:vis enum $name:ident {
        $($(#[$each:meta])* $reason:ident = $code:literal,)*
    }) => {
        $(#[$about])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        $vis enum $name {
            $($(#[$each])* $reason,)*
        }

        impl $name {
            pub const fn code(self) -> &'static str {
                match self {
                    $(Self::$reason => $code,)*
                }
            }
        }

        impl From<$name> for &'static str {
            fn from(reason: $name) -> Self {
                reason.code()
            }
        }

        impl $crate::Reason for $name {
            const ALL: &'static [Self] = &[$(Self::$reason),*];
        }
    };
}

reasons! {
    /// Why a store did not do what it was asked to, so that its shard counts as failed.
    pub enum StoreReason {
        Closed = "store-closed",
        Down = "store-down",
        Failed = "store-failed",
        Io = "store-io",
        Locked = "store-locked",
        Panicked = "store-panicked",
    }
}

/// How long a caller should wait when nothing better is known.
pub const RETRY_AFTER_DEFAULT: Duration = Duration::from_millis(100);

impl Error {
    pub fn new(kind: Kind, code: impl Into<&'static str>, message: impl fmt::Display) -> Self {
        Self {
            kind,
            code: code.into(),
            message: message.to_string().into_boxed_str(),
            position: None,
        }
    }

    pub fn not_found(code: impl Into<&'static str>, message: impl fmt::Display) -> Self {
        Self::new(Kind::NotFound, code, message)
    }

    pub fn exists(code: impl Into<&'static str>, message: impl fmt::Display) -> Self {
        Self::new(Kind::Exists, code, message)
    }

    pub fn precondition(code: impl Into<&'static str>, message: impl fmt::Display) -> Self {
        Self::new(Kind::Precondition, code, message)
    }

    pub fn invalid(code: impl Into<&'static str>, message: impl fmt::Display) -> Self {
        Self::new(Kind::Invalid, code, message)
    }

    pub fn too_large(code: impl Into<&'static str>, message: impl fmt::Display) -> Self {
        Self::new(Kind::TooLarge, code, message)
    }

    pub fn moved(message: impl fmt::Display) -> Self {
        Self::new(Kind::Moved, "moved", message)
    }

    pub fn unavailable(code: impl Into<&'static str>, message: impl fmt::Display) -> Self {
        Self::new(Kind::Unavailable { retry_after: RETRY_AFTER_DEFAULT }, code, message)
    }

    pub fn corrupt(code: impl Into<&'static str>, message: impl fmt::Display) -> Self {
        Self::new(Kind::Corrupt, code, message)
    }

    pub fn internal(code: impl Into<&'static str>, message: impl fmt::Display) -> Self {
        Self::new(Kind::Internal, code, message)
    }

    pub fn kind(&self) -> Kind {
        self.kind
    }

    /// A stable word for what happened, such as `shard-exists`.
    pub fn code(&self) -> &'static str {
        self.code
    }

    pub fn message(&self) -> &str {
        &self.message
    }

    /// Which of the reasons of `R` this error has, if any.
    pub fn reason<R: Reason>(&self) -> Option<R> {
        R::ALL.iter().copied().find(|reason| (*reason).into() == self.code)
    }

    /// Whether the error has exactly this reason.
    pub fn is(&self, reason: impl Reason) -> bool {
        reason.into() == self.code
    }

    /// Which of several operations of one request failed, counted from zero.
    pub fn position(&self) -> Option<usize> {
        self.position
    }

    /// The same error, of the operation at this place in a request of several.
    #[must_use]
    pub fn at(self, position: usize) -> Self {
        Self { position: Some(position), ..self }
    }

    pub fn is_moved(&self) -> bool {
        self.kind == Kind::Moved
    }

    /// The same error with where it happened said first.
    pub fn context(self, place: impl fmt::Display) -> Self {
        Self { message: format!("{place}: {}", self.message).into_boxed_str(), ..self }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({})", self.message, self.code)
    }
}

impl std::error::Error for Error {}
