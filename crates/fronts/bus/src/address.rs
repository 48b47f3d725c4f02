//! Addresses of links: what a client can attach to.

use lazuli_bus_shape::Address;

/// What an address means.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Target {
    /// Takes tokens.
    Cbs,
    /// Answers requests about the namespace.
    NamespaceManagement,
    /// Answers requests about an entity.
    Management(String),
    /// An entity, or something below one.
    Entity(String),
}

/// The path of an address: some clients send a whole URI, whose scheme and host don't matter, others the path alone.
pub(crate) fn path(address: &str) -> &str {
    let path = match address.split_once("://") {
        Some((_, rest)) => rest.split_once('/').map_or("", |(_, path)| path),
        None => address,
    };
    path.trim_matches('/')
}

impl Target {
    pub(crate) fn parse(address: &str) -> Self {
        const MANAGEMENT: &str = "$management";
        let path = path(address);
        let (owner, last) = path.rsplit_once('/').unwrap_or(("", path));
        if path.eq_ignore_ascii_case("$cbs") {
            Self::Cbs
        } else if path.eq_ignore_ascii_case(MANAGEMENT) {
            Self::NamespaceManagement
        } else if last.eq_ignore_ascii_case(MANAGEMENT) {
            Self::Management(owner.to_owned())
        } else {
            Self::Entity(path.to_owned())
        }
    }
}

/// The entity of the bus at a path.
pub(crate) fn entity(path: &str) -> crate::error::Result<Address> {
    Address::parse(path).map_err(|_| crate::error::Fault::entity_not_found(path))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_means_the_same_with_and_without_a_host() {
        for (address, expected) in [
            ("$cbs", Target::Cbs),
            ("amqps://localhost:5672/$CBS", Target::Cbs),
            ("$management", Target::NamespaceManagement),
            ("q/$management", Target::Management("q".into())),
            ("t/Subscriptions/s/$Management", Target::Management("t/Subscriptions/s".into())),
            ("amqps://localhost:5672/q1", Target::Entity("q1".into())),
            ("sb://localhost/q1/", Target::Entity("q1".into())),
            ("a/b", Target::Entity("a/b".into())),
            ("amqps://localhost", Target::Entity(String::new())),
        ] {
            assert_eq!(Target::parse(address), expected, "{address}");
        }
    }
}
