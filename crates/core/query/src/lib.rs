//! Queries over documents: from text to tree, from tree to plan, from plan to rows.
