//! The bytes of the Redis protocol (RESP2 and RESP3): requests are parsed in place, replies are written into one buffer.
//!
//! Nothing here knows a command or a connection. A request is a list of ranges of the buffer that it was read into, so that
//! parsing allocates nothing once the list has grown; inline commands with quotes are the one exception.

mod answer;
mod arguments;
pub mod fuzzing;
pub mod limits;
mod number;
mod reply;
mod request;

pub use answer::{Answer, Malformed, read_answer};
pub use arguments::{Args, OwnedArgs};
pub use number::{double_text, parse_double, parse_integer};
pub use reply::Reply;
pub use request::{Parser, ProtocolError};
