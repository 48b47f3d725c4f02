//! Groups as their members see them.

use std::time::Duration;

use super::*;

fn join(member: &str, session_ms: i32) -> Join {
    Join {
        member: member.to_owned(),
        instance: None,
        client: "client".to_owned(),
        host: "127.0.0.1".to_owned(),
        session_ms,
        rebalance_ms: 1_000,
        protocol_type: "consumer".to_owned(),
        protocols: vec![("range".to_owned(), Bytes::from_static(b"topics"))],
        must_know_id: true,
    }
}

/// Joins as clients do: asks for an id first.
async fn enter(groups: &Groups, random: &str) -> Joined {
    let (code, id) = groups.join(random, "ns", "g", join("", 10_000)).await.unwrap_err();
    assert_eq!(code, Code::MEMBER_ID_REQUIRED);
    groups.join(random, "ns", "g", join(&id, 10_000)).await.unwrap()
}

async fn sync(groups: &Groups, joined: &Joined, gets: Vec<(String, Bytes)>) -> Result<Bytes, Code> {
    groups.sync("ns", "g", joined.generation, &joined.member, None, gets).await
}

#[tokio::test]
async fn two_members_share_and_the_one_that_stays_gets_all() {
    let groups = Groups::default();
    let (one, two) = tokio::join!(enter(&groups, "1"), enter(&groups, "2"));
    assert_eq!(one.generation, two.generation);
    let (leader, other) = if one.leader == one.member { (one, two) } else { (two, one) };
    assert_eq!((leader.members.len(), other.members.len()), (2, 0));
    let gets = vec![
        (leader.member.clone(), Bytes::from_static(b"a")),
        (other.member.clone(), Bytes::from_static(b"b")),
    ];
    let (first, second) =
        tokio::join!(sync(&groups, &other, Vec::new()), sync(&groups, &leader, gets));
    assert_eq!((first.unwrap(), second.unwrap()), ("b".into(), "a".into()));
    assert_eq!(groups.describe("ns", "g").state, "Stable");
    let beat =
        |joined: &Joined| groups.heartbeat("ns", "g", joined.generation, &joined.member, None);
    assert_eq!(beat(&leader), Code::NONE);
    assert_eq!(groups.leave("ns", "g", &other.member, None), Code::NONE);
    assert_eq!(beat(&leader), Code::REBALANCE_IN_PROGRESS);
    assert_eq!(beat(&other), Code::UNKNOWN_MEMBER_ID);
    let again = groups.join("1", "ns", "g", join(&leader.member, 10_000)).await.unwrap();
    assert_eq!((again.generation, again.members.len()), (leader.generation + 1, 1));
    let stale = groups.may_commit("ns", "g", leader.generation, &leader.member, None);
    assert_eq!(stale, Err(Code::ILLEGAL_GENERATION));
}

#[tokio::test]
async fn a_silent_member_is_left_out() {
    let groups = Groups::default();
    let (_, id) = groups.join("1", "ns", "g", join("", 1_000)).await.unwrap_err();
    let silent = groups.join("1", "ns", "g", join(&id, 1_000)).await.unwrap();
    let all = vec![(id.clone(), Bytes::from_static(b"all"))];
    assert_eq!(sync(&groups, &silent, all).await.unwrap(), Bytes::from_static(b"all"));
    let (_, second) = groups.join("2", "ns", "g", join("", 10_000)).await.unwrap_err();
    let began = Instant::now();
    let joined = groups.join("2", "ns", "g", join(&second, 10_000)).await.unwrap();
    assert!(began.elapsed() < Duration::from_secs(3));
    assert_eq!(joined.leader, second);
    assert_eq!(joined.members.len(), 1);
}

#[tokio::test]
async fn strangers_and_other_protocols_are_refused() {
    let groups = Groups::default();
    let refused = |answer: Result<Joined, (Code, String)>| answer.unwrap_err().0;
    let unknown = groups.join("1", "ns", "g", join("nobody", 10_000)).await;
    assert_eq!(refused(unknown), Code::UNKNOWN_MEMBER_ID);
    assert_eq!(refused(groups.join("1", "ns", "", join("", 10_000)).await), Code::INVALID_GROUP_ID);
    let hasty = groups.join("1", "ns", "g", join("", 5)).await;
    assert_eq!(refused(hasty), Code::INVALID_SESSION_TIMEOUT);
    enter(&groups, "1").await;
    let mut other = join("", 10_000);
    other.protocols = vec![("other".to_owned(), Bytes::new())];
    assert_eq!(
        refused(groups.join("2", "ns", "g", other).await),
        Code::INCONSISTENT_GROUP_PROTOCOL
    );
    assert_eq!(groups.forget("ns", "g"), Err(Code::NON_EMPTY_GROUP));
    assert_eq!(groups.forget("ns", "h"), Ok(false));
    assert_eq!(groups.may_commit("ns", "h", -1, "", None), Ok(()));
    assert_eq!(groups.may_commit("ns", "g", -1, "", None), Err(Code::UNKNOWN_MEMBER_ID));
}

#[tokio::test]
async fn an_instance_that_comes_back_takes_its_own_place() {
    let groups = Groups::default();
    let named = |member: &str| Join { instance: Some("i".to_owned()), ..join(member, 10_000) };
    let first = groups.join("1", "ns", "g", named("")).await.unwrap();
    let all = vec![(first.member.clone(), Bytes::from_static(b"all"))];
    sync(&groups, &first, all).await.unwrap();
    let back = groups.join("2", "ns", "g", named("")).await.unwrap();
    assert_eq!(back.member, first.member);
    let fenced = groups.heartbeat("ns", "g", back.generation, "another", Some("i"));
    assert_eq!(fenced, Code::FENCED_INSTANCE_ID);
}
