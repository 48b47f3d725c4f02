//! The pages of messaging and their paths. The name of an entity is one piece of a path, escaped: it may hold slashes.

use lazuli_http::uri::percent_encode;

use crate::page::Part;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum MessagingPage {
    Index,
    /// What an account has.
    Account(String),
    CreateEntity(String),
    CreateHub(String),
    Entity(String, String),
    ChangeEntity(String, String, EntityAction),
    Hub(String, String),
    ChangeHub(String, String, HubAction),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum EntityAction {
    Send,
    /// Sends dead letters back.
    Resubmit,
    Purge,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum HubAction {
    Send,
    /// Adds partitions.
    Partitions,
}

impl MessagingPage {
    /// The page at these pieces of a path, behind `messaging`.
    pub(crate) fn parse(pieces: &[&str]) -> Option<Self> {
        let own = |piece: &str| piece.to_owned();
        Some(match *pieces {
            [] => Self::Index,
            [account] => Self::Account(own(account)),
            [account, "create-entity"] => Self::CreateEntity(own(account)),
            [account, "create-hub"] => Self::CreateHub(own(account)),
            [account, "bus", name] => Self::Entity(own(account), own(name)),
            [account, "bus", name, action] => {
                let action = match action {
                    "send" => EntityAction::Send,
                    "resubmit" => EntityAction::Resubmit,
                    "purge" => EntityAction::Purge,
                    _ => return None,
                };
                Self::ChangeEntity(own(account), own(name), action)
            }
            [account, "hubs", name] => Self::Hub(own(account), own(name)),
            [account, "hubs", name, action] => {
                let action = match action {
                    "send" => HubAction::Send,
                    "partitions" => HubAction::Partitions,
                    _ => return None,
                };
                Self::ChangeHub(own(account), own(name), action)
            }
            _ => return None,
        })
    }

    /// Whether a request to it changes something.
    pub(crate) fn changes(&self) -> bool {
        match self {
            Self::Index | Self::Account(_) | Self::Entity(..) | Self::Hub(..) => false,
            Self::CreateEntity(_) | Self::CreateHub(_) => true,
            Self::ChangeEntity(..) | Self::ChangeHub(..) => true,
        }
    }
}

/// The path of these pieces among the pages of messaging.
pub(super) fn link(pieces: &[&str]) -> String {
    let mut out = Part::Messaging.path().to_owned();
    for piece in pieces {
        out.push('/');
        out.push_str(&percent_encode(piece));
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_name_pages_and_links_lead_back_to_them() {
        let page = MessagingPage::parse(&["mine", "bus", "t/Subscriptions/s", "resubmit"]).unwrap();
        let (account, name) = ("mine".to_owned(), "t/Subscriptions/s".to_owned());
        let expected = MessagingPage::ChangeEntity(account, name, EntityAction::Resubmit);
        assert!(page == expected && page.changes());
        assert_eq!(
            link(&["mine", "bus", "t/Subscriptions/s"]),
            "/portal/messaging/mine/bus/t%2FSubscriptions%2Fs"
        );
        assert!(!MessagingPage::parse(&["mine", "hubs", "h"]).unwrap().changes());
        assert_eq!(MessagingPage::parse(&["mine", "hubs", "h", "explode"]), None);
        assert_eq!(MessagingPage::parse(&["mine", "cakes", "h"]), None);
    }
}
