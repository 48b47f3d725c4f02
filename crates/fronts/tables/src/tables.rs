//! Operations on tables: query, create, get, delete, and who may use them.

use lazuli_azure::acl::{self, StoredPolicy};
use lazuli_azure::odata::{Value, read_entity};
use lazuli_engine::MapKind;
use lazuli_http::{Response, StatusCode};

use crate::address::check_table;
use crate::error::{Code, Common, Fault, Result, Subject, from_core, from_json};
use crate::request::TableQuery;
use crate::{Call, Front, response, token};

const TABLE_NAME: &str = "TableName";
/// The attribute of a table's container that holds its access policies.
const ACL: &str = "acl";
/// What policies of tables can permit: read, add, update, delete.
const PERMISSIONS: &str = "raud";

/// The containers of an account's tables begin with this.
fn prefix(account: &str) -> String {
    format!("tables/{account}/")
}

/// The container that a table is. Names of tables are the same in any case; how it was written is the container's title.
pub(crate) fn container(account: &str, table: &str) -> String {
    prefix(account) + &table.to_ascii_lowercase()
}

pub(crate) async fn query(front: &Front, call: &Call, query: TableQuery) -> Result<Response> {
    let prefix = prefix(&call.target.account);
    let most = query.top.unwrap_or(front.limits.page_items_max);
    let mut body = response::begin_list(call, "Tables");
    let mut after = query.after.map(|table| format!("{prefix}{table}"));
    let (mut found, mut seen, mut next) = (0, 0, None);
    'pages: loop {
        // One more than fits tells whether there is a next page.
        let asked = front.limits.page_items_max + 1;
        let listed = front
            .records
            .list(&prefix, after.as_deref(), asked)
            .await
            .map_err(|error| from_core(&error, Subject::Table))?;
        let is_last = listed.len() < asked;
        for (name, title) in listed {
            if found == most || seen == front.limits.scan_entities_max {
                next = after;
                break 'pages;
            }
            seen += 1;
            let find = |property: &str| {
                (property == TABLE_NAME).then(|| Value::String(title.as_str().into()))
            };
            if query.filter.as_ref().is_none_or(|filter| filter.matches(&find)) {
                if found > 0 {
                    body.push(b',');
                }
                response::write_table(&mut body, call, &title);
                found += 1;
            }
            after = Some(name);
        }
        if is_last {
            break;
        }
    }
    let answer = response::json(StatusCode::OK, call, response::end_list(body));
    // A client that wants nothing has got it all: it would follow a token to the same answer for ever.
    Ok(match next.filter(|_| most > 0) {
        Some(name) => {
            let table = name.strip_prefix(&prefix).unwrap_or(&name);
            answer.with("x-ms-continuation-nexttablename", token::write(table))
        }
        None => answer,
    })
}

pub(crate) async fn create(
    front: &Front,
    call: &Call,
    kind: MapKind,
    body: &[u8],
) -> Result<Response> {
    let members = read_entity(body).map_err(from_json)?;
    let name = members.iter().find(|(name, _)| name == TABLE_NAME).map(|(_, value)| value);
    let Some(Value::String(table)) = name else {
        return Err(Fault::new(Code::PropertiesNeedValue));
    };
    check_table(table)?;
    front
        .records
        .create(&container(&call.target.account, table), table, kind)
        .await
        .map_err(|error| from_core(&error, Subject::Table))?;
    response::created(call, &response::table_link(table), || Ok(response::table(call, table)))
}

pub(crate) async fn get(front: &Front, call: &Call, table: &str) -> Result<Response> {
    check_table(table)?;
    let title = front
        .records
        .title(&container(&call.target.account, table))
        .await
        .map_err(|error| from_core(&error, Subject::Table))?;
    Ok(response::json(StatusCode::OK, call, response::table(call, &title)))
}

pub(crate) async fn delete(front: &Front, call: &Call, table: &str) -> Result<Response> {
    check_table(table)?;
    front
        .records
        .remove(&container(&call.target.account, table))
        .await
        .map_err(|error| from_core(&error, Subject::Table))?;
    Ok(Response::new(StatusCode::NO_CONTENT))
}

/// The stored access policies of a table.
pub(crate) async fn policies(
    front: &Front,
    account: &str,
    table: &str,
) -> Result<Vec<StoredPolicy>> {
    let stored = front
        .records
        .attribute(&container(account, table), ACL)
        .await
        .map_err(|error| from_core(&error, Subject::Entities))?;
    acl::read(stored.unwrap_or_default().as_bytes(), PERMISSIONS)
        .map_err(|_| Fault::new(Common::InternalError).because("stored policies can't be read"))
}

pub(crate) async fn get_acl(front: &Front, call: &Call, table: &str) -> Result<Response> {
    let policies = policies(front, &call.target.account, table).await?;
    Ok(response::xml(StatusCode::OK, acl::write(&policies)))
}

pub(crate) async fn set_acl(
    front: &Front,
    call: &Call,
    table: &str,
    body: &[u8],
) -> Result<Response> {
    let policies = acl::read(body, PERMISSIONS)?;
    let text = (!policies.is_empty()).then(|| acl::write(&policies));
    front
        .records
        .set_attribute(&container(&call.target.account, table), ACL, text.as_deref())
        .await
        .map_err(|error| from_core(&error, Subject::Entities))?;
    Ok(Response::new(StatusCode::NO_CONTENT))
}
