//! Takes files over from another keeper under the ids that they have there, so that the rows of shards that name them stay as
//! they are. Whatever is cut short is done again: a file that is there already is left as it is.

use lazuli_store::Result;
use lazuli_store::blocks::{BlockFile, Blocks, FoundFile};

use super::{PostgresBlocks, signed};
use crate::fault::Fault;
use crate::limits::ANSWER_TIME_MAX;
use crate::sql::Sql;

impl PostgresBlocks {
    /// Takes a generation over. New ones are higher from then on. Files in it that nothing names go with the next sweep, as
    /// those of a node that is gone.
    pub async fn adopt_generation(&self, generation: u64, node: &str) -> Result<()> {
        let lease = self.shared.pool.lease().await?;
        let session = lease.session();
        let adopted = async {
            let wanted = [Sql::AdoptGeneration, Sql::PassGenerations];
            let [adopt, pass] = session.prepared(wanted).await?;
            session.client.execute(&adopt, &[&signed(generation), &node]).await?;
            session.client.query_one(&pass, &[&signed(generation)]).await?;
            Ok::<(), Fault>(())
        };
        lease.run(ANSWER_TIME_MAX, adopted).await
    }

    /// Copies a file of another keeper, with its id, and says whether it was not there yet.
    pub async fn adopt(&self, from: &dyn Blocks, found: &FoundFile) -> Result<bool> {
        let BlockFile { id, length, .. } = found.file;
        let known = [signed(id.generation), signed(id.number)];
        if self.shared.exists(Sql::GetFile, &[&known[0], &known[1]]).await? {
            return Ok(false);
        }
        // What an attempt that was cut short has left of it.
        self.remove(id).await?;
        let mut reader = from.read(&found.file, 0..length).await?;
        let mut writer = self.shared.clone().writer(id, found.owner.clone()).await?;
        while let Some(piece) = reader.next().await? {
            writer.write(piece).await?;
        }
        writer.finish().await?;
        Ok(true)
    }
}
