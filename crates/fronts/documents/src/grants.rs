//! What the bearer of a resource token may do: read or change the resource that the token is for, and what is below it.

use lazuli_shapes::document::ResourceKind;

use crate::access::{Grant, Mode, Sender};
use crate::address::{Address, ContainerChild, ContainerName, DatabaseChild, Feed, Target};
use crate::error::{Fault, Result};
use crate::headers::{Headers, parse_key};
use crate::request::Operation;
use crate::{Front, permissions};

/// A place as its ids from the account down: those of resources, and the names of items.
type Trail = Vec<String>;

/// Refuses what a token does not grant. The owner of a key may do everything.
pub(crate) async fn check(
    front: &Front,
    sender: &Sender,
    operation: &Operation,
    target: &Target,
    headers: &Headers,
) -> Result<()> {
    let Some(grant) = &sender.grant else { return Ok(()) };
    permissions::check_token(front, &sender.account, grant).await?;
    // Clients read the account with whatever token they have.
    if matches!(operation, Operation::ReadAccount | Operation::ReadCertificate) {
        return Ok(());
    }
    let granted = trail(front, sender, &Target::parse(&escaped(&grant.resource))?.address).await?;
    let wanted = trail(front, sender, &target.address).await?;
    // The definition and the ranges of its container can be read by a token for an item.
    let describes = match operation {
        Operation::ReadRanges(_) => true,
        Operation::Resource { id: Some(_), .. } => operation.only_reads() && wanted.len() == 2,
        _ => false,
    };
    let is_below = wanted.starts_with(&granted);
    let is_above = describes && granted.starts_with(&wanted);
    let may_write = grant.mode == Mode::All || operation.only_reads();
    if (is_below || is_above) && may_write && has_key(grant, headers, describes) {
        return Ok(());
    }
    Err(Fault::forbidden(
        "Insufficient permissions provided in the authorization header for the corresponding request.",
    ))
}

/// A link of a permission may have any characters in its names.
fn escaped(link: &str) -> String {
    let segments = link.split('/').map(lazuli_http::uri::percent_encode);
    format!("/{}", segments.collect::<Vec<_>>().join("/"))
}

/// Whether a request keeps to the partition key of the token.
fn has_key(grant: &Grant, headers: &Headers, describes: bool) -> bool {
    let Some(only) = &grant.key else { return true };
    describes || (parse_key(only).is_some() && parse_key(only) == headers.partition_key)
}

async fn trail(front: &Front, sender: &Sender, address: &Address) -> Result<Trail> {
    let account = &sender.account;
    let (feed, id) = match address {
        Address::Account | Address::Certificate | Address::Attachments => return Ok(Vec::new()),
        Address::PartitionDelete(container) => {
            return container_trail(front, account, container).await;
        }
        Address::Feed(feed) => (feed, None),
        Address::One(feed, id) => (feed, Some(id.as_str())),
    };
    let mut trail = match feed {
        Feed::Databases | Feed::Offers => Vec::new(),
        Feed::InDatabase(database, child) => {
            let database = front.database(account, database).await?;
            let kind = match child {
                DatabaseChild::Containers => ResourceKind::Collection,
                DatabaseChild::Users => ResourceKind::User,
                DatabaseChild::EncryptionKeys => ResourceKind::EncryptionKey,
            };
            return below(front, account, vec![database.rid.to_string()], kind, id).await;
        }
        Feed::Permissions { database, .. } => {
            vec![front.database(account, database).await?.rid.to_string(), "users".to_owned()]
        }
        Feed::InContainer(container, child) => {
            let mut trail = container_trail(front, account, container).await?;
            if let Some(id) = id {
                trail.push(child_name(*child).to_owned());
                trail.push(id.to_owned());
            }
            return Ok(trail);
        }
    };
    if let (Feed::Databases, Some(id)) = (feed, id) {
        trail.push(front.database(account, id).await?.rid.to_string());
    }
    Ok(trail)
}

async fn below(
    front: &Front,
    account: &str,
    mut trail: Trail,
    kind: ResourceKind,
    id: Option<&str>,
) -> Result<Trail> {
    let Some(id) = id else { return Ok(trail) };
    let parent = trail.first().and_then(|rid| lazuli_shapes::document::Rid::parse(rid));
    let found = front.find(account, kind, parent.as_ref(), id).await?;
    trail.push(found.ok_or_else(Fault::not_found)?.rid.to_string());
    Ok(trail)
}

async fn container_trail(front: &Front, account: &str, name: &ContainerName) -> Result<Trail> {
    let container = front.container(account, name).await?;
    Ok(vec![container.rid.database().to_string(), container.rid.to_string()])
}

fn child_name(child: ContainerChild) -> &'static str {
    match child {
        ContainerChild::Items => "docs",
        ContainerChild::Ranges => "pkranges",
        ContainerChild::Procedures => "sprocs",
        ContainerChild::Triggers => "triggers",
        ContainerChild::Functions => "udfs",
        ContainerChild::Conflicts => "conflicts",
    }
}
