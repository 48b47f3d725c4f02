//! The command line: the binary `lazuli`.
