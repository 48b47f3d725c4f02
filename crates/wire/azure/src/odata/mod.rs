//! OData as the Table service speaks it: typed values, and JSON with more or fewer notes on their types.

mod error;
mod read;
mod value;
mod write;

pub use error::ErrorFormat;
pub use read::{ENTITY_MEMBERS_MAX, JsonError, read_entity};
pub use value::{DATE_TIME_TICKS_MIN, EdmType, Guid, Value};
pub use write::{
    Metadata, type_note, write_null, write_property, write_stored_text, write_string,
    write_text_property, write_value,
};
