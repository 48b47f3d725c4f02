//! The Azure Tables front.
