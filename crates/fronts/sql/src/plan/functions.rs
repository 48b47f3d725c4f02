//! Functions that give the same answer on every shard, and aggregates.

/// Functions of PostgreSQL's own that read no table, write nothing, and depend on nothing but their arguments, the settings
/// of the session and the time. A statement over several shards may call these and no others.
const SAME_EVERYWHERE: &[&str] = &[
    "abs",
    "age",
    "array_append",
    "array_cat",
    "array_length",
    "array_position",
    "array_prepend",
    "array_remove",
    "array_to_string",
    "ascii",
    "btrim",
    "cardinality",
    "ceil",
    "ceiling",
    "char_length",
    "character_length",
    "chr",
    "coalesce",
    "concat",
    "concat_ws",
    "current_date",
    "current_timestamp",
    "date_part",
    "date_trunc",
    "decode",
    "degrees",
    "div",
    "encode",
    "exp",
    "extract",
    "floor",
    "format",
    "generate_series",
    "greatest",
    "initcap",
    "isfinite",
    "json_array_length",
    "json_build_array",
    "json_build_object",
    "json_extract_path",
    "json_extract_path_text",
    "jsonb_array_length",
    "jsonb_build_array",
    "jsonb_build_object",
    "jsonb_extract_path",
    "jsonb_extract_path_text",
    "jsonb_set",
    "jsonb_typeof",
    "json_typeof",
    "least",
    "left",
    "length",
    "ln",
    "localtimestamp",
    "log",
    "lower",
    "lpad",
    "ltrim",
    "make_date",
    "make_interval",
    "make_time",
    "make_timestamp",
    "md5",
    "mod",
    "now",
    "nullif",
    "octet_length",
    "overlay",
    "pi",
    "position",
    "power",
    "radians",
    "regexp_match",
    "regexp_replace",
    "repeat",
    "replace",
    "reverse",
    "right",
    "round",
    "row",
    "row_to_json",
    "rpad",
    "rtrim",
    "sha256",
    "sign",
    "split_part",
    "sqrt",
    "starts_with",
    "strpos",
    "substr",
    "substring",
    "to_char",
    "to_date",
    "to_json",
    "to_jsonb",
    "to_number",
    "to_timestamp",
    "translate",
    "trim",
    "trunc",
    "unnest",
    "upper",
];

/// Aggregates whose result over all rows follows from the results over the rows of each shard.
const FROM_PARTS: &[&str] =
    &["count", "sum", "min", "max", "avg", "bool_and", "bool_or", "every", "bit_and", "bit_or"];

/// Other aggregates of PostgreSQL's own: computed from the rows of all shards.
const FROM_ROWS: &[&str] = &[
    "any_value",
    "array_agg",
    "bit_xor",
    "corr",
    "covar_pop",
    "covar_samp",
    "json_agg",
    "json_object_agg",
    "jsonb_agg",
    "jsonb_object_agg",
    "mode",
    "percentile_cont",
    "percentile_disc",
    "range_agg",
    "regr_avgx",
    "regr_avgy",
    "regr_count",
    "regr_intercept",
    "regr_r2",
    "regr_slope",
    "regr_sxx",
    "regr_sxy",
    "regr_syy",
    "stddev",
    "stddev_pop",
    "stddev_samp",
    "string_agg",
    "var_pop",
    "var_samp",
    "variance",
];

/// Functions over the rows of a window, beside the aggregates.
const WINDOW: &[&str] = &[
    "cume_dist",
    "dense_rank",
    "first_value",
    "lag",
    "last_value",
    "lead",
    "nth_value",
    "ntile",
    "percent_rank",
    "rank",
    "row_number",
];

/// Functions that change as they are called twice within one transaction, or that read other things than their arguments.
/// A write to a reference table must not call them, and neither those whose name nobody here knows.
const BY_TIME: &[&str] = &["age", "current_date", "current_timestamp", "localtimestamp", "now"];

pub(crate) fn is_same_everywhere(name: &str) -> bool {
    SAME_EVERYWHERE.contains(&name)
}

/// Whether it depends on nothing but its arguments.
pub(crate) fn is_constant(name: &str) -> bool {
    is_same_everywhere(name) && !BY_TIME.contains(&name)
}

/// Whether it is called with OVER alone.
pub(crate) fn is_window(name: &str) -> bool {
    WINDOW.contains(&name)
}

pub(crate) fn is_aggregate(name: &str) -> bool {
    is_from_parts(name) || FROM_ROWS.contains(&name)
}

pub(crate) fn is_from_parts(name: &str) -> bool {
    FROM_PARTS.contains(&name)
}
