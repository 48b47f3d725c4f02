//! Changing what is fixed about a container: its indexing policy, its time to live, how long versions are kept.
//!
//! A new indexing policy begins a new index. Writes keep the entries of all indexes from the moment the policy is changed,
//! and those of the items that were there before are made in the background. Queries go by the old index until then. A note
//! says which containers there is work for, so that any process finds it, also after a restart.
//!
//! The note is written before the policy is changed, and names the version of the container that the change is made of. As
//! long as the container has that version, the change may still come, and nobody deletes the note.

use bytes::{Buf, BufMut, Bytes, BytesMut};
use lazuli_engine::{Container, ContainerUpdate, Error, Kind, Note, Result, Work};

use super::Documents;
use super::collection::Collection;
use super::definition::{DEFINITION, Definition, Generation, IndexState, check_ttl};
use super::entries::generation_head;
use super::policy::IndexingPolicy;
use super::reason::DocumentReason;

/// The names of the notes begin with it; the name of the container follows.
const NOTES: &str = "document-index/";
/// The most containers that are worked on in one round.
const NOTES_MAX: usize = 1_000;
/// The pages of items that are worked off between two notes of how far it has come.
const PAGES_PER_NOTE: usize = 64;
/// How often a change is decided anew because the container changed meanwhile.
const TRIES_MAX: usize = 8;

/// What to change; what is none stays.
#[derive(Clone, Debug, Default)]
pub struct DefinitionChange {
    pub indexing: Option<IndexingPolicy>,
    /// As in [`super::NewDefinition`].
    pub ttl_s: Option<Option<i64>>,
    pub versions_kept_s: Option<u64>,
}

/// How far an index that is being built has come.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct IndexProgress {
    /// Items whose entries were made.
    pub items: u64,
    pub is_building: bool,
}

impl Documents {
    /// Changes the definition of a container, and answers it as it is then.
    pub async fn change_definition(
        &self,
        collection: &Collection,
        change: &DefinitionChange,
    ) -> Result<Collection> {
        check_ttl(change.ttl_s.flatten())?;
        self.redefine(&collection.container.name, |definition| {
            if let Some(ttl_s) = change.ttl_s {
                definition.ttl_s = ttl_s;
            }
            if let Some(kept) = change.versions_kept_s {
                definition.versions_kept_s = kept;
            }
            match &change.indexing {
                Some(policy) if *policy != *definition.policy() => {
                    definition.begin_index(policy.clone())
                }
                _ => Ok(()),
            }
        })
        .await
    }

    /// Builds the index of a container anew by the policy that it has, beside the one that queries use until then: for an
    /// index of which `fsck` says that it is not what the items say. Entries of unique keys stay as they are.
    pub async fn rebuild_index(&self, collection: &Collection) -> Result<Collection> {
        let begin = |definition: &mut Definition| {
            let policy = definition.policy().clone();
            definition.begin_index(policy)
        };
        self.redefine(&collection.container.name, begin).await
    }

    /// Changes a definition so that every write that is made afterwards goes by it, whoever makes it.
    async fn redefine(
        &self,
        name: &str,
        change: impl Fn(&mut Definition) -> Result<()>,
    ) -> Result<Collection> {
        let mut tries = 0;
        loop {
            let container = self.engine.manager().catalog().container_named(name).await?;
            let before = self.rules.definition(&container)?;
            let mut definition = Definition::clone(&before);
            change(&mut definition)?;
            if definition.next_generation() != before.next_generation() {
                let note = announcement(container.version);
                self.engine.set_service(&note_name(name), note).await?;
            }
            tries += 1;
            match self.engine.update_rules(&with(container, &definition)).await {
                Err(error) if error.kind() == Kind::Precondition && tries < TRIES_MAX => {}
                Err(error) => return Err(error),
                Ok(container) => {
                    let definition = self.rules.definition(&container)?;
                    return Ok(Collection { container: container.into(), definition });
                }
            }
        }
    }

    /// How far the index of a container has come.
    pub async fn index_progress(&self, collection: &Collection) -> Result<IndexProgress> {
        let note = self.engine.service(&note_name(&collection.container.name)).await?;
        let building = collection.definition.building().map(|index| index.generation);
        let read = |note: Bytes| read_note(&note, building.unwrap_or_default()).0;
        let items = note.map(read).unwrap_or_default();
        Ok(IndexProgress { items, is_building: collection.definition.building().is_some() })
    }

    /// Builds indexes and deletes the entries of old ones, wherever there is work. One process at a time does.
    pub async fn tend(&self) -> Result<()> {
        if !self.engine.may(Work::Jobs) {
            return Ok(());
        }
        let mut outcome = Ok(());
        for note in self.engine.notes(NOTES, NOTES_MAX).await? {
            let tended = self.tend_one(note).await;
            outcome = outcome.and(tended);
        }
        outcome
    }

    async fn tend_one(&self, mut note: Note) -> Result<()> {
        let catalog = self.engine.manager().catalog();
        let name = note.name.trim_start_matches(NOTES).to_owned();
        let found = catalog.container_named(&name).await;
        let container = match found {
            Err(error) if error.kind() == Kind::NotFound => {
                return self.engine.delete_note(&note).await;
            }
            found => found?,
        };
        let definition = self.rules.definition(&container)?;
        if let Some(IndexState { generation, .. }) = definition.building() {
            self.build(&container, *generation, &mut note).await?;
            self.redefine(&name, |definition| {
                // Another policy may have come meanwhile: its index is for the next round.
                let building = definition.building().map(|index| index.generation);
                if building == Some(*generation) {
                    definition.end_index();
                }
                Ok(())
            })
            .await?;
        }
        let waste = self.rules.definition(&catalog.container_named(&name).await?)?.waste.clone();
        for generation in &waste {
            self.engine.delete_entries(container.id, &generation_head(*generation)).await?;
        }
        if !waste.is_empty() {
            self.redefine(&name, |definition| {
                definition.waste.retain(|generation| !waste.contains(generation));
                Ok(())
            })
            .await?;
        }
        let now = catalog.container_named(&name).await?;
        let definition = self.rules.definition(&now)?;
        let is_done = definition.building().is_none() && definition.waste.is_empty();
        match is_done && note.value != announcement(now.version) {
            true => self.engine.delete_note(&note).await,
            false => Ok(()),
        }
    }

    /// Makes the entries of all items that may lack them.
    async fn build(
        &self,
        container: &Container,
        generation: Generation,
        note: &mut Note,
    ) -> Result<()> {
        let (mut items, mut after) = read_note(&note.value, generation);
        loop {
            for _ in 0..PAGES_PER_NOTE {
                let (done, next) = self.engine.derive_page(container.id, after.as_ref()).await?;
                items += done as u64;
                after = match next {
                    Some(next) => Some(next),
                    None => return Ok(()),
                };
            }
            // Where another policy is announced, that is what stays noted, and this index goes on all the same: the other
            // policy may not come about.
            let value = write_note(generation, items, after.as_ref());
            self.engine.replace_note(note, value).await?;
        }
    }
}

fn note_name(container: &str) -> String {
    format!("{NOTES}{container}")
}

/// Stands in a note in the place of an index, where a policy is about to be changed.
const ANNOUNCED: Generation = Generation::MAX;

/// That the policy of a container is about to be changed, if it still has this version.
fn announcement(version: u64) -> Bytes {
    write_note(ANNOUNCED, version, None)
}

/// Of which index how many items were worked off, and the place of the last one.
fn write_note(generation: Generation, items: u64, after: Option<&Bytes>) -> Bytes {
    let mut note = BytesMut::new();
    note.put_u32(generation);
    note.put_u64(items);
    note.put_slice(after.map(|after| &after[..]).unwrap_or_default());
    note.freeze()
}

/// What a note says of an index. One of another index says nothing.
fn read_note(note: &Bytes, generation: Generation) -> (u64, Option<Bytes>) {
    let mut rest = note.clone();
    if rest.len() < 12 || rest.get_u32() != generation {
        return (0, None);
    }
    let items = rest.get_u64();
    (items, Some(rest).filter(|after| !after.is_empty()))
}

fn with(container: Container, definition: &Definition) -> ContainerUpdate {
    let mut policies = container.policies;
    policies.attributes.insert(DEFINITION.to_owned(), definition.to_text());
    let Container { id, version, schema, placement, .. } = container;
    ContainerUpdate { id, version, schema, placement, policies }
}

impl Definition {
    /// A new index for a new policy. One that has not become complete yet is given up.
    fn begin_index(&mut self, policy: IndexingPolicy) -> Result<()> {
        let generation = self.next_generation();
        let given_up = self.indexes.iter().filter(|index| !index.is_complete);
        self.waste.extend(given_up.map(|index| index.generation));
        self.indexes.retain(|index| index.is_complete);
        if self.waste.len() > WASTE_MAX {
            let message = "former indexes are still being deleted";
            return Err(Error::unavailable(DocumentReason::DefinitionBusy, message));
        }
        // Without entries there is nothing to build.
        let is_complete = !policy.is_on();
        self.indexes.push(IndexState { generation, policy, is_complete, has_kinds: false });
        if is_complete {
            self.end_index();
        }
        Ok(())
    }

    /// The newest index is complete; the others are waste.
    fn end_index(&mut self) {
        if let Some(mut newest) = self.indexes.pop() {
            newest.is_complete = true;
            self.waste.extend(self.indexes.drain(..).map(|index| index.generation));
            self.indexes.push(newest);
        }
    }
}

/// The most indexes that wait to be deleted.
const WASTE_MAX: usize = 64;
