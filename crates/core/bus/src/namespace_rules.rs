//! Rules of a whole namespace: names with keys and rights, which fronts check signatures with. They lie in the directory of
//! the namespace, one row for each, so that they are there on every node.

use lazuli_engine::{Error, ItemKey, PageLimit, Result, Space, Transaction, Tx};
use lazuli_shardmap::record::{decode, encode};

use crate::BusReason;
use crate::bus::Bus;
use crate::description::AuthorizationRule;
use crate::directory::Shelf;
use crate::fragment::{FORWARD, not_found};
use crate::limits::{NAMESPACE_RULES_MAX, RULE_KEY_BYTES, RULE_NAME_CHARS_MAX};

const RIGHTS: [&str; 3] = ["Send", "Listen", "Manage"];

fn check(rule: &AuthorizationRule) -> Result<()> {
    let bad = |message: String| Err(Error::invalid(BusReason::BadProperty, message));
    let is_plain = |one: char| one.is_ascii_alphanumeric() || "._-".contains(one);
    let AuthorizationRule { name, rights, primary_key, secondary_key, .. } = rule;
    if name.is_empty() || name.len() > RULE_NAME_CHARS_MAX || !name.chars().all(is_plain) {
        return bad(format!(
            "the name of a rule has 1 to {RULE_NAME_CHARS_MAX} letters, digits, dots, hyphens and underscores"
        ));
    }
    if rights.is_empty() || rights.iter().any(|right| !RIGHTS.contains(&&**right)) {
        return bad("the rights of a rule are some of Send, Listen and Manage".to_owned());
    }
    if [primary_key, secondary_key].iter().any(|key| !RULE_KEY_BYTES.contains(&key.len())) {
        return bad(format!(
            "a key of a rule has {} to {} bytes",
            RULE_KEY_BYTES.start(),
            RULE_KEY_BYTES.end()
        ));
    }
    Ok(())
}

/// Writes a rule, or takes it away.
struct Put {
    shelf: Shelf,
    name: String,
    rule: Option<AuthorizationRule>,
}

impl Transaction for Put {
    type Output = ();

    async fn run(&self, tx: &mut Tx<'_>) -> Result<()> {
        let key = self.shelf.namespace_rule(&self.name);
        let old = tx.get(&key).await?;
        let Some(rule) = &self.rule else {
            let old = old.ok_or_else(not_found)?;
            return tx.remove(&key, &old);
        };
        let mut rule = AuthorizationRule { modified_ms: tx.now_ms(), ..rule.clone() };
        rule.created_ms = rule.modified_ms;
        match &old {
            Some(old) => {
                rule.created_ms = decode::<AuthorizationRule>(old.payload.clone())?.created_ms;
            }
            None => {
                let range = self.shelf.range(&self.shelf.namespace_rule(""));
                let limit = PageLimit::items(NAMESPACE_RULES_MAX);
                let container = self.shelf.container.id;
                let page = tx.scan(container, Space::ITEMS, &range, FORWARD, limit).await?;
                if page.items.len() >= NAMESPACE_RULES_MAX {
                    let message = format!("a namespace has up to {NAMESPACE_RULES_MAX} rules");
                    return Err(Error::invalid(BusReason::BadProperty, message));
                }
            }
        }
        tx.replace(&key, old.as_ref(), encode(&rule), None)
    }
}

impl Shelf {
    fn namespace_rule(&self, name: &str) -> ItemKey {
        self.row(b'R', name.as_bytes())
    }
}

impl Bus {
    /// Creates a rule of a whole namespace, or changes it.
    pub async fn put_namespace_rule(&self, namespace: &str, rule: AuthorizationRule) -> Result<()> {
        check(&rule)?;
        let shelf = self.shelf(namespace).await?;
        let (id, route) = (shelf.container.id, shelf.route.clone());
        let put = Put { shelf, name: rule.name.clone(), rule: Some(rule) };
        self.engine.write(id, &route, put).await
    }

    /// Deletes a rule. Fails with `NotFound`.
    pub async fn delete_namespace_rule(&self, namespace: &str, name: &str) -> Result<()> {
        let shelf = self.shelf_or_not_found(namespace).await?;
        let (id, route) = (shelf.container.id, shelf.route.clone());
        let put = Put { shelf, name: name.to_owned(), rule: None };
        self.engine.write(id, &route, put).await
    }

    /// One rule of a namespace; none if there is none of this name.
    pub async fn namespace_rule(
        &self,
        namespace: &str,
        name: &str,
    ) -> Result<Option<AuthorizationRule>> {
        let Some(shelf) = self.shelf_if_any(namespace).await? else { return Ok(None) };
        let found = self.engine.get(&shelf.namespace_rule(name), 1).await?;
        found.map(|item| decode(item.payload)).transpose()
    }

    /// All rules of a namespace, by name.
    pub async fn namespace_rules(&self, namespace: &str) -> Result<Vec<AuthorizationRule>> {
        let Some(shelf) = self.shelf_if_any(namespace).await? else { return Ok(Vec::new()) };
        let range = shelf.range(&shelf.namespace_rule(""));
        let view = self.engine.read(shelf.container.id, &shelf.route, 1).await?;
        let limit = PageLimit::items(NAMESPACE_RULES_MAX);
        let page = view.scan(Space::ITEMS, &range, FORWARD, limit).await?;
        page.items.into_iter().map(|(_, item)| decode(item.payload)).collect()
    }
}
