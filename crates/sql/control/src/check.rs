//! Integrity over all shards: rows on the wrong shard, references that lead nowhere, reference tables that differ.
//!
//! PostgreSQL checks what is inside one database. What spans shards is checked here, and repaired where that loses nothing.

use std::sync::Arc;

use lazuli_sharded_sql::quote_ident;
use lazuli_store::Result;
use serde::{Deserialize, Serialize};

use crate::book::Draft;
use crate::control::{Control, refused};
use crate::form::{PlaceForm, ShardForm, TableForm};
use crate::job::Work;
use crate::mover::reference;
use crate::shape::{ForeignKey, Shape};
use crate::strays::owned;
use crate::{install, tables};

/// How many keys of a finding are shown.
const SHOWN_MAX: usize = 5;

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct CheckOptions {
    /// Whether what is wrong is repaired: strays go where they belong, reference tables become equal.
    pub repair: bool,
    /// Whether rows whose parents are nowhere are deleted.
    pub remove_orphans: bool,
    /// References between tables of different maps, which PostgreSQL cannot check: `child.column=parent.column`.
    pub references: Vec<String>,
}

/// Something that does not fit.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// `wrong-shard`, `orphan`, `dangling`, `reference-differs`, `fence-missing` or `local-map`.
    pub kind: &'static str,
    pub shard: String,
    pub table: String,
    pub rows: u64,
    pub detail: String,
    pub repaired: bool,
}

impl Control {
    /// Looks at all shards. Moves must be over, because their rows lie on two shards.
    pub async fn check(
        self: &Arc<Self>,
        name: &str,
        options: &CheckOptions,
    ) -> Result<Vec<Finding>> {
        let draft = self.read(name).await?;
        if let Some(job) = draft.jobs.values().find(|it| matches!(it.work, Work::Move(_))) {
            let message = format!("job {} moves rows; check when it is over", job.number);
            return Err(refused("sql-jobs-running", message));
        }
        let mut findings = Vec::new();
        for table in &draft.model.tables {
            match &table.place {
                PlaceForm::Sharded { .. } => {
                    self.check_fences(&draft, table, options, &mut findings).await?;
                    self.check_strays(&draft, table, options, &mut findings).await?;
                }
                PlaceForm::Reference => {
                    self.check_reference(&draft, table, options, &mut findings).await?;
                }
                PlaceForm::Single { .. } => {}
            }
        }
        for table in &draft.model.tables {
            self.check_orphans(&draft, table, options, &mut findings).await?;
        }
        for reference in &options.references {
            self.check_dangling(&draft, reference, &mut findings).await?;
        }
        findings.extend(self.check_local_maps(name).await?);
        Ok(findings)
    }

    /// Triggers that somebody has dropped or disabled.
    async fn check_fences(
        &self,
        draft: &Draft,
        table: &TableForm,
        options: &CheckOptions,
        findings: &mut Vec<Finding>,
    ) -> Result<()> {
        for shard in &draft.model.shards {
            let link = self.link(shard).await?;
            let query = format!(
                "SELECT count(*) FROM pg_trigger WHERE tgrelid = to_regclass({}) AND tgname = '{}' \
                 AND tgenabled = 'O'",
                lazuli_sharded_sql::quote_literal(&install::quoted(&table.table_name())),
                install::FENCE_TRIGGER
            );
            if link.text(&query).await? == "1" {
                continue;
            }
            if options.repair {
                install::guard_table(&link, &draft.model, table, shard).await?;
                let enable = format!(
                    "ALTER TABLE {} ENABLE TRIGGER {}",
                    install::quoted(&table.table_name()),
                    install::FENCE_TRIGGER
                );
                link.run(&enable).await?;
            }
            findings.push(Finding {
                kind: "fence-missing",
                shard: shard.name.clone(),
                table: table.table_name().to_string(),
                rows: 0,
                detail: "the trigger that keeps foreign rows out is missing or disabled".to_owned(),
                repaired: options.repair,
            });
        }
        Ok(())
    }

    /// Rows that a shard has and the map places elsewhere, or nowhere.
    async fn check_strays(
        &self,
        draft: &Draft,
        table: &TableForm,
        options: &CheckOptions,
        findings: &mut Vec<Finding>,
    ) -> Result<()> {
        let PlaceForm::Sharded { map, .. } = &table.place else { return Ok(()) };
        let map = draft.map_of(*map)?;
        let columns = tables::columns_of(table)?;
        for (nth, shard) in draft.model.shards.iter().enumerate() {
            let link = self.link(shard).await?;
            let name = install::quoted(&table.table_name());
            let foreign = format!("({}) IS NOT TRUE", owned(&map, &columns, nth));
            let query = format!("SELECT count(*) FROM {name} t WHERE {foreign}");
            let rows = link.text(&query).await?.parse().unwrap_or(0);
            if rows == 0 {
                continue;
            }
            let keys: Vec<String> =
                columns.iter().map(|it| format!("t.{}::text", quote_ident(&it.0))).collect();
            let shown = format!(
                "SELECT string_agg(k, '; ') FROM (SELECT concat_ws(',', {}) AS k FROM {name} t WHERE {foreign} \
                 LIMIT {SHOWN_MAX}) s",
                keys.join(", ")
            );
            let detail = format!("keys such as {}", link.text(&shown).await?);
            let mut repaired = false;
            if options.repair {
                repaired = self.bring_home(draft, table, &map, nth).await?;
            }
            findings.push(Finding {
                kind: "wrong-shard",
                shard: shard.name.clone(),
                table: table.table_name().to_string(),
                rows,
                detail,
                repaired,
            });
        }
        Ok(())
    }

    async fn check_reference(
        &self,
        draft: &Draft,
        table: &TableForm,
        options: &CheckOptions,
        findings: &mut Vec<Finding>,
    ) -> Result<()> {
        let sums = reference::sums(self, draft, table).await?;
        for (nth, shard) in draft.model.shards.iter().enumerate().skip(1) {
            if sums[nth] == sums[0] {
                continue;
            }
            if options.repair {
                reference::repair(self, draft, table, 0, shard).await?;
            }
            let count = |sum: &str| sum.split(' ').next().unwrap_or_default().to_owned();
            let detail = format!(
                "{} rows here, {} on {}, or other contents",
                count(&sums[nth]),
                count(&sums[0]),
                draft.model.shards[0].name
            );
            findings.push(Finding {
                kind: "reference-differs",
                shard: shard.name.clone(),
                table: table.table_name().to_string(),
                rows: 0,
                detail,
                repaired: options.repair,
            });
        }
        Ok(())
    }

    /// Rows whose foreign keys lead nowhere on their shard: a mover writes without checks, and so may others.
    async fn check_orphans(
        &self,
        draft: &Draft,
        table: &TableForm,
        options: &CheckOptions,
        findings: &mut Vec<Finding>,
    ) -> Result<()> {
        for shard in self.homes(draft, table) {
            let link = self.link(shard).await?;
            let Some(shape) = Shape::read(&link, &table.table_name()).await? else { continue };
            for foreign in &shape.parents {
                let rows = link.text(&dangling(&shape, foreign)).await?.parse().unwrap_or(0);
                if rows == 0 {
                    continue;
                }
                if options.remove_orphans {
                    let gone = dangling(&shape, foreign).replacen("SELECT count(*)", "DELETE", 1);
                    link.run(&gone).await?;
                }
                findings.push(Finding {
                    kind: "orphan",
                    shard: shard.name.clone(),
                    table: table.table_name().to_string(),
                    rows,
                    detail: format!("no row of {} that they refer to", foreign.parent),
                    repaired: options.remove_orphans,
                });
            }
        }
        Ok(())
    }

    fn homes<'d>(&self, draft: &'d Draft, table: &TableForm) -> Vec<&'d ShardForm> {
        let is_home = |shard: &&ShardForm| match table.place {
            PlaceForm::Single { shard: home } => shard.id == home,
            PlaceForm::Sharded { .. } | PlaceForm::Reference => true,
        };
        draft.model.shards.iter().filter(is_home).collect()
    }

    /// References across shards that only the application knows of: `orders.product=products.id`.
    async fn check_dangling(
        &self,
        draft: &Draft,
        reference: &str,
        findings: &mut Vec<Finding>,
    ) -> Result<()> {
        let wrong = || {
            let message = "a reference is written CHILD.COLUMN=PARENT.COLUMN";
            lazuli_store::Error::invalid("bad-sql-reference", message)
        };
        let (child, parent) = reference.split_once('=').ok_or_else(wrong)?;
        let (child, child_column) = child.rsplit_once('.').ok_or_else(wrong)?;
        let (parent, parent_column) = parent.rsplit_once('.').ok_or_else(wrong)?;
        let of = |name: &str| {
            let name = tables::table_name(name)?;
            let found = draft.model.tables.iter().find(|it| it.table_name() == name);
            found.ok_or_else(|| {
                let message = format!("{name} is not in the sharded database");
                lazuli_store::Error::not_found("no-sql-table", message)
            })
        };
        let (child, parent) = (of(child)?, of(parent)?);
        // Every distinct value of the children is looked for on all shards of the parent.
        for shard in self.homes(draft, child) {
            let link = self.link(shard).await?;
            let values = format!(
                "SELECT DISTINCT {0}::text FROM {1} WHERE {0} IS NOT NULL",
                quote_ident(child_column),
                install::quoted(&child.table_name())
            );
            let mut left: Vec<String> =
                link.rows(&values).await?.iter().map(|row| row.get(0)).collect();
            for home in self.homes(draft, parent) {
                let there = self.link(home).await?;
                let query = format!(
                    "SELECT v FROM unnest($1::text[]) AS v WHERE NOT EXISTS \
                     (SELECT 1 FROM {} p WHERE p.{}::text = v)",
                    install::quoted(&parent.table_name()),
                    quote_ident(parent_column)
                );
                let rows = there.client.query(&query, &[&left]).await;
                let rows = rows.map_err(|error| there.failed(&error))?;
                left = rows.iter().map(|row| row.get(0)).collect();
            }
            if left.is_empty() {
                continue;
            }
            let shown = left.iter().take(SHOWN_MAX).cloned().collect::<Vec<_>>().join(", ");
            findings.push(Finding {
                kind: "dangling",
                shard: shard.name.clone(),
                table: child.table_name().to_string(),
                rows: left.len() as u64,
                detail: format!("no row of {} for {child_column} {shown}", parent.table_name()),
                repaired: false,
            });
        }
        Ok(())
    }

    async fn check_local_maps(self: &Arc<Self>, name: &str) -> Result<Vec<Finding>> {
        let differences = self.differences(name, None).await?;
        Ok(differences
            .into_iter()
            .map(|it| Finding {
                kind: "local-map",
                shard: it.shard.clone(),
                table: String::new(),
                rows: 0,
                detail: it.to_string(),
                repaired: false,
            })
            .collect())
    }
}

/// The query that counts rows whose foreign key leads nowhere.
pub(crate) fn dangling(shape: &Shape, foreign: &ForeignKey) -> String {
    let pairs: Vec<String> = foreign
        .columns
        .iter()
        .zip(&foreign.parent_columns)
        .map(|(child, parent)| format!("p.{} = t.{}", quote_ident(parent), quote_ident(child)))
        .collect();
    let given: Vec<String> =
        foreign.columns.iter().map(|it| format!("t.{} IS NOT NULL", quote_ident(it))).collect();
    format!(
        "SELECT count(*) FROM {} t WHERE {} AND NOT EXISTS (SELECT 1 FROM {} p WHERE {})",
        shape.table(),
        given.join(" AND "),
        install::quoted(&foreign.parent),
        pairs.join(" AND ")
    )
}
