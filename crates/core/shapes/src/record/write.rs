//! Writing records: each operation runs in the lane of its partition, several of one partition key as one transaction (T5).

use std::fmt;
use std::sync::Arc;

use bytes::Bytes;
use lazuli_engine::{Condition, Item, ItemKey, Lsn, Result, Transaction, Tx};

use super::Records;

/// Makes the new payload from the one that is there, if any. Runs inside the lane, perhaps more than once.
pub type Change = Arc<dyn Fn(Option<&Bytes>) -> Result<Bytes> + Send + Sync>;

/// What to do with one record.
#[derive(Clone)]
pub enum Operation {
    /// Writes this payload whatever was there.
    Put(Bytes),
    /// Writes what the function makes of the payload that was there.
    Update(Change),
    Delete,
}

impl fmt::Debug for Operation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Put(_) => "Put",
            Self::Update(_) => "Update",
            Self::Delete => "Delete",
        })
    }
}

/// One operation of a transaction, resolved to a key.
struct Step {
    key: ItemKey,
    condition: Condition,
    operation: Operation,
}

/// All steps or none. A failure says which step it was.
struct WriteRecords(Vec<Step>);

impl Transaction for WriteRecords {
    type Output = Lsn;

    async fn run(&self, tx: &mut Tx<'_>) -> Result<Lsn> {
        tx.foresee(self.0.iter().map(|step| &step.key)).await?;
        for (position, step) in self.0.iter().enumerate() {
            step.run(tx).await.map_err(|error| error.at(position))?;
        }
        Ok(tx.lsn())
    }

    fn cost(&self) -> u32 {
        u32::try_from(self.0.len()).unwrap_or(u32::MAX)
    }
}

impl Step {
    async fn run(&self, tx: &mut Tx<'_>) -> Result<()> {
        let made = |found: Option<&Item>| {
            Ok(match &self.operation {
                Operation::Put(payload) => Some(payload.clone()),
                Operation::Update(change) => Some(change(found.map(|item| &item.payload))?),
                Operation::Delete => None,
            })
        };
        tx.change(&self.key, self.condition, made).await
    }
}

impl Records {
    /// Writes a record that is not there yet. Fails with `Exists` if it is.
    pub async fn insert(
        &self,
        name: &str,
        partition_key: &str,
        row_key: &str,
        payload: Bytes,
    ) -> Result<Lsn> {
        let operation = Operation::Put(payload);
        self.write(name, partition_key, row_key, Condition::Absent, operation).await
    }

    /// One operation on one record, if the condition holds. Answers the version it wrote.
    pub async fn write(
        &self,
        name: &str,
        partition_key: &str,
        row_key: &str,
        condition: Condition,
        operation: Operation,
    ) -> Result<Lsn> {
        let one = vec![(row_key.to_owned(), condition, operation)];
        self.write_all(name, partition_key, one).await
    }

    /// Several operations on records of one partition key, all or none (T5). All get the same version.
    pub async fn write_all(
        &self,
        name: &str,
        partition_key: &str,
        operations: Vec<(String, Condition, Operation)>,
    ) -> Result<Lsn> {
        let table = self.table(name).await?;
        let mut steps = Vec::with_capacity(operations.len());
        for (position, (row_key, condition, operation)) in operations.into_iter().enumerate() {
            let key = table.key(partition_key, &row_key).map_err(|error| error.at(position))?;
            steps.push(Step { key, condition, operation });
        }
        let route = table.route(partition_key)?;
        self.engine.write(table.container.id, &route, WriteRecords(steps)).await
    }
}
