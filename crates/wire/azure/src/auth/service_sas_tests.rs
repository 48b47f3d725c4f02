//! Signatures that the official SDKs made with the published key, and what becomes of them when something is changed.

use lazuli_http::Method;

use super::super::shared_key::tests::{KEY, request};
use super::super::{Key, Keys};
use super::*;

const ACCOUNT: &str = "devstoreaccount1";
const PHOTO: Resource<'static> = Resource::Blob { container: "photos", blob: "a", at: None };

fn check_signed(token: &str, resource: Resource<'_>) -> Result<ServiceGrant, Refusal> {
    check_as(token, resource, None, None)
}

fn check_as(
    token: &str,
    resource: Resource<'_>,
    policy: Option<&StoredPolicy>,
    identity: Option<&Identity>,
) -> Result<ServiceGrant, Refusal> {
    let keys = Keys { first: Key::from_base64(KEY).unwrap(), second: None };
    let request = request(Method::GET, "/", &[("x-ms-a", "1"), ("x-ms-b", "2")]);
    let query = Query::parse(token).unwrap();
    check(&request, &query, ACCOUNT, &keys, resource, policy, identity)
}

/// azure-storage-queue 12.18.1 for Python.
#[test]
fn a_signature_for_a_queue_is_for_that_queue() {
    let token = "st=2026-11-15T00%3A00%3A00Z&se=2026-11-16T00%3A00%3A00Z&sp=rp&sip=127.0.0.1&spr=https%2Chttp\
                 &sv=2026-10-06&sig=G8Jo4ShiHry31NPle6Ndpp6d7fZt3OgqySrSE84qlHk%3D";
    let grant = check_signed(token, Resource::Queue("orders")).unwrap();
    assert_eq!((grant.scope, grant.permissions.as_str()), (Scope::Queue, "rp"));
    let refused = |token: &str, queue| check_signed(token, Resource::Queue(queue)).unwrap_err();
    assert_eq!(refused(token, "other"), Refusal::WrongSignature);
    assert_eq!(refused(&token.replace("sp=rp", "sp=raup"), "orders"), Refusal::WrongSignature);
    assert_eq!(refused(&token.replace("sv=2026", "sv=new"), "orders"), Refusal::Malformed);
}

#[test]
fn a_policy_has_the_terms_that_a_signature_leaves_out() {
    let token = "sv=2026-10-06&si=readers&sig=cPAYriFqPZ43vZze08hmR/Uf7%2BMkU6bKTksSvSA8%2BT4%3D";
    let policy = StoredPolicy {
        id: "readers".into(),
        start: None,
        expiry: Some("2026-11-16".into()),
        permissions: Some("r".into()),
    };
    let queue = Resource::Queue("orders");
    assert_eq!(check_as(token, queue, Some(&policy), None).unwrap().permissions, "r");
    assert_eq!(check_as(token, queue, None, None), Err(Refusal::UnknownPolicy));
    let over = StoredPolicy { expiry: Some("2026-11-15".into()), ..policy };
    assert_eq!(check_as(token, queue, Some(&over), None), Err(Refusal::OutsideTime));
    let query = Query::parse(token).unwrap();
    assert_eq!(super::policy(&query), Some("readers"));
}

/// azure-storage-blob 12.31.1 for Python.
#[test]
fn signatures_cover_containers_blobs_snapshots_versions_and_folders() {
    let container = "se=2026-11-16T00%3A00%3A00Z&sp=rl&sv=2026-10-06&sr=c\
                     &sig=9MN%2BBE9mzyidohkD95oZDoet/9ZPDlghsNMdTrTKxGU%3D";
    let scope = |token: &str, resource| check_signed(token, resource).map(|grant| grant.scope);
    assert_eq!(scope(container, Resource::Container("photos")), Ok(Scope::Container));
    assert_eq!(scope(container, PHOTO), Ok(Scope::Container));
    assert_eq!(scope(container, Resource::Container("other")), Err(Refusal::WrongSignature));
    let at = |blob, at| Resource::Blob { container: "photos", blob, at };
    let snapshot = "se=2026-11-16T00%3A00%3A00Z&sp=r&sv=2026-10-06&sr=bs\
                    &sig=B%2BUlNOyZylvr8zzNMeeBn1VeXdnJodr4W4ZN/JJuxAw%3D";
    let then = Some("2026-11-15T10:00:00.0000000Z");
    assert_eq!(scope(snapshot, at("a", then)), Ok(Scope::Snapshot));
    assert_eq!(scope(snapshot, PHOTO), Err(Refusal::WrongSignature));
    assert_eq!(scope(snapshot, Resource::Container("photos")), Err(Refusal::WrongSignature));
    let version = "se=2026-11-16T00%3A00%3A00Z&sp=r&sv=2026-10-06&sr=bv\
                   &sig=kQi%2Bn1EbCg4YmBPh7Bf5yhgy9aGP0hY8aoyDzfIRB9k%3D";
    assert_eq!(scope(version, at("a", Some("2026-11-15T11:00:00.0000000Z"))), Ok(Scope::Version));
    assert_eq!(scope(version, at("a", then)), Err(Refusal::WrongSignature));
    let folder = "se=2026-11-16T00%3A00%3A00Z&sp=rl&sv=2026-10-06&sr=d&sdd=2\
                  &sig=x%2BUPMF1FS5VExfQxcmaRnp4DhFFA2HmJVax%2BiCzDThg%3D";
    assert_eq!(scope(folder, at("2026/11/15.jpg", None)), Ok(Scope::Directory));
    assert_eq!(scope(folder, at("2026/11", None)), Ok(Scope::Directory));
    for other in ["2026/12/15.jpg", "2026", "2026/111"] {
        assert_eq!(scope(folder, at(other, None)), Err(Refusal::WrongSignature), "{other}");
    }
    assert_eq!(scope(&folder.replace("sdd=2", "sdd=x"), PHOTO), Err(Refusal::Malformed));
}

#[test]
fn a_signature_may_set_headers_of_the_answer() {
    let token = "se=2026-11-16T00%3A00%3A00Z&sp=r&sv=2026-10-06&sr=b&rscc=no-store&rscd=inline&rsct=image/x\
                 &ses=scope1&sig=1pPvzmhYmP7fnt6jK9TMV/ov/yKgtCXEEEMawEOLY5E%3D";
    let blob = Resource::Blob { container: "photos", blob: "2026/a b.jpg", at: None };
    let grant = check_signed(token, blob).unwrap();
    let expected = [
        ("cache-control", "no-store".to_owned()),
        ("content-disposition", "inline".to_owned()),
        ("content-type", "image/x".to_owned()),
    ];
    assert_eq!(grant.answer_headers, expected);
    assert_eq!(grant.encryption_scope.as_deref(), Some("scope1"));
    let changed = token.replace("inline", "attachment");
    assert_eq!(check_signed(&changed, blob), Err(Refusal::WrongSignature));
}

/// @azure/storage-blob 12.32.0 for JavaScript: the account's key, and then one of a user.
#[test]
fn every_version_is_verified_by_its_own_text() {
    let account = [
        ("2015-04-05", "5UHkaWJnLPfA9ufuq7rCestl8Ul10C2pxWZ%2Fsp%2F%2BA4o%3D"),
        ("2018-03-28", "%2FmHT%2F%2BIvWYV1nMRr04YpdAyu6dFAYHkLpmczGze4txA%3D"),
        ("2018-11-09", "4rLQdpqKYJEsf2%2FmiRLwna29dE%2BxaT9Rw%2Bl5HPdUr5s%3D"),
        ("2020-02-10", "zEy3JSXH%2FGwKFD3JzpfkRSHpJWH%2BR%2B2EhFAQTdLPgoI%3D"),
        ("2020-12-06", "9mcPq3kV6BhYPg8clWYi5KQqbwPAPQMExc7dHw%2FRPzU%3D"),
    ];
    let own = "se=2026-11-16T00%3A00%3A00Z&sr=b&sp=r&rscc=no-store";
    for (version, signature) in account {
        let token = format!("sv={version}&{own}&sig={signature}");
        assert!(check_signed(&token, PHOTO).is_ok(), "{token}");
    }
    let user = [
        ("2018-11-09", "vL1z0QvXBL%2FduUXUHfJx9GpDcSuVg4NR9KgijppJ1qA%3D"),
        ("2020-02-10", "%2FuDJPjSjel5evUTQWxYcgF7Z8C%2FRiH%2B4hheZHz9WlHo%3D"),
        ("2020-12-06", "%2BnMjiEPzBzrTDK10Op3YHKk3D%2FV9HnAfVlYoI86anJE%3D"),
        ("2025-07-05", "hQOdWN5gag529PcLuJW8jmsH0PSarb8YdVomNZmE8mI%3D"),
        ("2026-04-06", "JeM9HETs6pPRuf2NVmRNIcCzPZx7rXhPBqOvJGlIsXo%3D"),
    ];
    for (version, signature) in user {
        let token = format!("sv={version}&{own}&{}&skv={version}&sig={signature}", key("b"));
        assert!(check_signed(&token, PHOTO).is_ok(), "{token}");
    }
}

/// The key of a user, as signatures name it.
fn key(service: &str) -> String {
    format!(
        "skoid=oid&sktid=tid&skt=2026-11-15T00%3A00%3A00Z&ske=2026-11-17T00%3A00%3A00Z&sks={service}"
    )
}

#[test]
fn the_key_of_a_user_is_the_same_whenever_it_is_made() {
    let keys = Keys { first: Key::from_base64(KEY).unwrap(), second: None };
    let key = DelegatedKey {
        object_id: "oid",
        tenant_id: "tid",
        start: "2026-11-15T00:00:00Z",
        expiry: "2026-11-17T00:00:00Z",
        service: "b",
        version: "2026-10-06",
        delegated_tenant: "",
    };
    assert_eq!(key.value(&keys), "OD/uBt5CV0lumSRgmCQ6Zhsf7YVrqlZSNao263N8UVY=");
}

#[test]
fn a_signature_of_a_user_holds_while_the_key_does() {
    let queue = format!(
        "se=2026-11-16T00%3A00%3A00Z&sp=r&sv=2026-10-06&{}&skv=2026-10-06\
         &sig=tkWvyl6JFuXHSGQaWAB8ZKvAcTY8gx8unR/tQv2fNtY%3D",
        key("q")
    );
    assert!(check_signed(&queue, Resource::Queue("orders")).is_ok());
    let with_policy = format!("{queue}&si=readers");
    let refused = check_signed(&with_policy, Resource::Queue("orders"));
    assert_eq!(refused, Err(Refusal::Malformed), "policies are for the account's key");
    let keys = Keys { first: Key::from_base64(KEY).unwrap(), second: None };
    let use_key = |start: &str, expiry: &str, service: &str, letter: char| {
        let key = DelegatedKey { start, expiry, service, ..DelegatedKey::default() };
        assert_ne!(key.value(&keys), DelegatedKey::default().value(&keys));
        key.check(&request(Method::GET, "/", &[]), letter, "", None)
    };
    assert_eq!(use_key("2026-11-15", "2026-11-16", "b", 'b'), Ok(()));
    assert_eq!(use_key("2026-11-15", "2026-11-16", "b", 'q'), Err(Refusal::OtherService));
    assert_eq!(use_key("2026-11-16", "2026-11-17", "b", 'b'), Err(Refusal::OutsideTime));
    assert_eq!(use_key("2026-11-14", "2026-11-15", "b", 'b'), Err(Refusal::OutsideTime));
    assert_eq!(use_key("", "2026-11-15", "b", 'b'), Err(Refusal::Malformed));
}

#[test]
fn a_signature_may_ask_for_headers_and_parameters_of_the_request() {
    let token = format!(
        "se=2026-11-16T00%3A00%3A00Z&sp=rw&sv=2026-10-06&sr=b&saoid=agent&scid=cid&{}&skv=2026-10-06\
         &srh=x-ms-a,x-ms-b&srq=comp&sig=m7WBZm8umLh2SHqR%2B6JWzwmXhxlgM5M4X%2BbKtyu8n%2BE%3D",
        key("b")
    );
    assert!(check_signed(&format!("{token}&comp=tags"), PHOTO).is_ok());
    assert_eq!(check_signed(&token, PHOTO), Err(Refusal::WrongSignature));
    let other = format!("{token}&comp=tier");
    assert_eq!(check_signed(&other, PHOTO), Err(Refusal::WrongSignature));
}

#[test]
fn a_signature_for_one_user_needs_that_user() {
    let token = format!(
        "se=2026-11-16T00%3A00%3A00Z&sp=rl&sv=2026-10-06&sduoid=me&sr=c&{}&skv=2026-10-06&skdutid=tid2\
         &sig=Beo1a6g52ZdwFNsLsnuKAsMPoJwY3QYHCSQWdGGJm30%3D",
        key("b")
    );
    let check_user = |object: &str, tenant: &str| {
        let user = Identity { object_id: object.into(), tenant_id: tenant.into(), expires_s: 0 };
        check_as(&token, Resource::Container("photos"), None, Some(&user)).is_ok()
    };
    assert!(check_user("me", "tid2"));
    assert!(!check_user("you", "tid2") && !check_user("me", "tid"));
    assert!(check_signed(&token, Resource::Container("photos")).is_err());
}
