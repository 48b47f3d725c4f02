//! Every statement of the store. All are prepared: in a pipeline, a statement that is not would be overtaken by the next one.
//!
//! `@` stands for the schema. Statements that check guards divide by zero if one is missing, so that everything behind them in
//! a pipeline fails too; statements that only read answer with a row of nulls instead.

/// A row of nulls if a guard is missing, in front of the rows of a scan. Such a statement reads one snapshot.
macro_rules! guarded {
    ($heads:literal, $hashes:literal, $count:literal) => {
        concat!(
            "SELECT NULL::bytea, NULL::bytea, NULL::bytea WHERE (SELECT count(*) FROM unnest($",
            $heads,
            "::bytea[], $",
            $hashes,
            "::bytea[]) AS g(p, h) WHERE EXISTS \
             (SELECT 1 FROM @.kv AS k WHERE k.p = g.p AND k.h = g.h)) <> $",
            $count,
            " UNION ALL "
        )
    };
}

/// The keys of a range whose bounds have tails: from ($1, $2) up to, but not including, ($3, $4).
macro_rules! bounded {
    () => {
        "p >= $1 AND p <= $3 AND (p > $1 OR s >= $2) AND (p < $3 OR s < $4)"
    };
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Sql {
    Begin,
    BeginSnapshot,
    Commit,
    Rollback,
    KeepOpen,
    NoWait,
    Id,
    LockOne,
    LockMany,
    LockAlone,
    Get,
    GetGuarded,
    CheckGuards,
    Scan,
    ScanBack,
    ScanLong,
    ScanLongBack,
    Holds,
    Put,
    Delete,
    DeleteRange,
    Copy,
    Status,
    Sample,
    NextGeneration,
    Unswept,
    Swept,
    PutPiece,
    PutFile,
    CopyFile,
    GetPiece,
    GetFile,
    ListFiles,
    RemoveFile,
    RemoveFileOf,
    RemoveUnnamed,
    PutRowOfFile,
    IsFileOf,
    AdoptGeneration,
    PassGenerations,
    Written,
    Replayed,
}

impl Sql {
    /// How many there are.
    pub(crate) const COUNT: usize = Self::Replayed as usize + 1;

    pub(crate) fn text(self, schema: &str) -> String {
        self.template().replace('@', schema)
    }

    fn template(self) -> &'static str {
        match self {
            Self::Begin => "BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE",
            Self::BeginSnapshot => "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY",
            Self::Commit => "COMMIT",
            Self::Rollback => "ROLLBACK",
            Self::KeepOpen => "SET LOCAL idle_in_transaction_session_timeout = '60s'",
            Self::NoWait => "SET LOCAL synchronous_commit = off",
            Self::Id => "SELECT pg_current_xact_id()::text",
            Self::LockOne => {
                "SELECT 1 / count(*)::int, pg_current_xact_id()::text FROM \
                 (SELECT 1 FROM @.kv WHERE p = $1 AND h = $2 FOR UPDATE) AS g"
            }
            Self::LockMany => {
                "SELECT 1 / (count(*) = $3)::int, pg_current_xact_id()::text FROM \
                 (SELECT 1 FROM @.kv WHERE (p, h) IN \
                 (SELECT * FROM unnest($1::bytea[], $2::bytea[])) ORDER BY p, h FOR UPDATE) AS g"
            }
            Self::LockAlone => {
                "SELECT 1 / count(*)::int, pg_current_xact_id()::text FROM \
                 (SELECT 1 FROM @.alone WHERE id = 1 FOR UPDATE) AS g"
            }
            Self::Put => {
                "INSERT INTO @.kv (p, h, s, v) \
                 SELECT * FROM unnest($1::bytea[], $2::bytea[], $3::bytea[], $4::bytea[]) \
                 ON CONFLICT (p, h) DO UPDATE SET v = excluded.v"
            }
            Self::Delete => {
                "DELETE FROM @.kv AS k USING unnest($1::bytea[], $2::bytea[]) AS d(p, h) \
                 WHERE k.p = d.p AND k.h = d.h"
            }
            Self::DeleteRange => concat!(
                "DELETE FROM @.kv WHERE (p, h) IN (SELECT p, h FROM @.kv WHERE ",
                bounded!(),
                " ORDER BY p, s LIMIT $5 FOR UPDATE)"
            ),
            Self::Copy => "COPY @.kv (p, h, s, v) FROM STDIN (FORMAT binary)",
            _ => self.template_of_reads(),
        }
    }

    fn template_of_reads(self) -> &'static str {
        match self {
            Self::Get => "SELECT v FROM @.kv WHERE p = $1 AND h = $2",
            Self::GetGuarded => {
                "SELECT (SELECT v FROM @.kv WHERE p = $1 AND h = $2), \
                 (SELECT count(*) FROM unnest($3::bytea[], $4::bytea[]) AS g(p, h) WHERE EXISTS \
                 (SELECT 1 FROM @.kv AS k WHERE k.p = g.p AND k.h = g.h))"
            }
            Self::CheckGuards => {
                "SELECT count(*) FROM unnest($1::bytea[], $2::bytea[]) AS g(p, h) WHERE EXISTS \
                 (SELECT 1 FROM @.kv AS k WHERE k.p = g.p AND k.h = g.h)"
            }
            Self::Scan => concat!(
                guarded!(4, 5, 6),
                "(SELECT p, s, v FROM @.kv WHERE p >= $1 AND p < $2 ORDER BY p, h LIMIT $3)"
            ),
            Self::ScanBack => concat!(
                guarded!(4, 5, 6),
                "(SELECT p, s, v FROM @.kv WHERE p >= $1 AND p < $2 \
                 ORDER BY p DESC, h DESC LIMIT $3)"
            ),
            Self::ScanLong => concat!(
                guarded!(6, 7, 8),
                "(SELECT p, s, v FROM @.kv WHERE ",
                bounded!(),
                " ORDER BY p, s LIMIT $5)"
            ),
            Self::ScanLongBack => concat!(
                guarded!(6, 7, 8),
                "(SELECT p, s, v FROM @.kv WHERE ",
                bounded!(),
                " ORDER BY p DESC, s DESC LIMIT $5)"
            ),
            Self::Holds => "SELECT EXISTS (SELECT 1 FROM @.kv WHERE p >= $1 AND p <= $2)",
            Self::Written => "SELECT (pg_current_wal_lsn() - '0/0'::pg_lsn)::int8",
            Self::Replayed => {
                "SELECT pg_is_in_recovery(), \
                 coalesce((pg_last_wal_replay_lsn() - '0/0'::pg_lsn)::int8, 0)"
            }
            Self::Status => "SELECT pg_xact_status($1::text::xid8)",
            Self::Sample => concat!(
                "SELECT count(*), coalesce(sum(2 * octet_length(p) + 2 * octet_length(h) \
                 + octet_length(s) + octet_length(v)), 0)::int8 FROM \
                 (SELECT p, h, s, v FROM @.kv WHERE ",
                bounded!(),
                " ORDER BY p, h LIMIT $5) AS k"
            ),
            _ => self.template_of_blocks(),
        }
    }

    fn template_of_blocks(self) -> &'static str {
        match self {
            Self::NextGeneration => {
                "INSERT INTO @.generations (node) VALUES ($1) RETURNING generation"
            }
            Self::Unswept => {
                "SELECT generation, node FROM @.generations WHERE NOT is_swept \
                 ORDER BY generation"
            }
            Self::Swept => "UPDATE @.generations SET is_swept = true WHERE generation = $1",
            Self::PutPiece => {
                "INSERT INTO @.pieces (generation, number, n, d) VALUES ($1, $2, $3, $4)"
            }
            Self::PutFile => {
                "WITH last AS (INSERT INTO @.pieces (generation, number, n, d) \
                 SELECT $1, $2, $3, $4 WHERE $4::bytea IS NOT NULL) \
                 INSERT INTO @.files (generation, number, container, route, length, crc64) \
                 SELECT $1, $2, $5, $6, $7, $8 WHERE $3 = \
                 (SELECT count(*) FROM @.pieces WHERE generation = $1 AND number = $2)"
            }
            Self::CopyFile => {
                "WITH copied AS (INSERT INTO @.pieces (generation, number, n, d) \
                 SELECT $3, $4, n, d FROM @.pieces WHERE generation = $1 AND number = $2 \
                 RETURNING octet_length(d) AS length) \
                 INSERT INTO @.files (generation, number, container, route, length, crc64) \
                 SELECT $3, $4, $5, $6, $7, $8 WHERE $7 = \
                 (SELECT coalesce(sum(length), 0) FROM copied) AND EXISTS (SELECT 1 FROM @.files \
                 WHERE generation = $1 AND number = $2 AND length = $7 AND crc64 = $8)"
            }
            Self::GetPiece => {
                "SELECT substring(d FROM $4 FOR $5) FROM @.pieces \
                 WHERE generation = $1 AND number = $2 AND n = $3"
            }
            Self::GetFile => {
                "SELECT length, crc64 FROM @.files WHERE generation = $1 AND number = $2"
            }
            Self::ListFiles => {
                "SELECT generation, number, container, route, length, crc64 FROM @.files \
                 WHERE (generation, number) > ($1, $2) ORDER BY generation, number LIMIT $3"
            }
            Self::RemoveFile => {
                "WITH gone AS (DELETE FROM @.files WHERE generation = $1 AND number = $2) \
                 DELETE FROM @.pieces WHERE generation = $1 AND number = $2"
            }
            Self::RemoveFileOf => {
                "WITH gone AS (DELETE FROM @.files WHERE generation = $1 AND number = $2 \
                 AND container = $3 AND route = $4 RETURNING 1) \
                 DELETE FROM @.pieces WHERE generation = $1 AND number = $2 \
                 AND EXISTS (SELECT 1 FROM gone)"
            }
            Self::RemoveUnnamed => {
                "DELETE FROM @.pieces AS p WHERE generation = $1 AND NOT EXISTS (SELECT 1 FROM \
                 @.files AS f WHERE f.generation = p.generation AND f.number = p.number)"
            }
            _ => self.template_of_objects(),
        }
    }

    fn template_of_objects(self) -> &'static str {
        match self {
            Self::PutRowOfFile => {
                "INSERT INTO @.files (generation, number, container, route, length, crc64) \
                 VALUES ($1, $2, $3, $4, $5, $6)"
            }
            Self::IsFileOf => {
                "SELECT 1 FROM @.files WHERE generation = $1 AND number = $2 \
                 AND container = $3 AND route = $4"
            }
            Self::AdoptGeneration => {
                "INSERT INTO @.generations (generation, node) OVERRIDING SYSTEM VALUE \
                 VALUES ($1, $2) ON CONFLICT DO NOTHING"
            }
            Self::PassGenerations => {
                "SELECT setval(s::regclass, greatest($1::int8, nextval(s::regclass))) \
                 FROM pg_get_serial_sequence('@.generations', 'generation') AS s"
            }
            _ => "",
        }
    }
}
