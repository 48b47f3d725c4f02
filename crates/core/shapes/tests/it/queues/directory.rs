//! Queues themselves.

use lazuli_engine::Kind;
use lazuli_shapes::queue::{Created, Metadata, NewMessage};

use super::world::{ACCOUNT, SECOND, World};

fn metadata(pairs: &[(&str, &str)]) -> Metadata {
    pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
}

#[tokio::test]
async fn creating_again_is_fine_with_the_same_metadata_only() {
    let World { queues, .. } = World::new().await;
    let meta = metadata(&[("color", "blue")]);
    assert_eq!(queues.create(ACCOUNT, "x", meta.clone()).await.unwrap(), Created::New);
    assert_eq!(queues.create(ACCOUNT, "x", meta.clone()).await.unwrap(), Created::Before);
    let other = queues.create(ACCOUNT, "x", Vec::new()).await.unwrap_err();
    assert_eq!((other.kind(), other.code()), (Kind::Exists, "queue-exists"));
    assert_eq!(queues.properties(ACCOUNT, "x").await.unwrap().metadata, meta);
    queues.set_metadata(ACCOUNT, "x", Vec::new()).await.unwrap();
    assert_eq!(queues.create(ACCOUNT, "x", Vec::new()).await.unwrap(), Created::Before);
}

#[tokio::test]
async fn what_is_kept_about_a_queue_goes_with_it() {
    let World { queues, .. } = World::new().await;
    assert_eq!(queues.acl(ACCOUNT, "q").await.unwrap(), None);
    queues.set_acl(ACCOUNT, "q", Some("policies".into())).await.unwrap();
    queues.set_metadata(ACCOUNT, "q", metadata(&[("a", "1")])).await.unwrap();
    assert_eq!(queues.acl(ACCOUNT, "q").await.unwrap().as_deref(), Some("policies"));
    queues.delete(ACCOUNT, "q").await.unwrap();
    queues.create(ACCOUNT, "q", Vec::new()).await.unwrap();
    assert_eq!(queues.acl(ACCOUNT, "q").await.unwrap(), None);
}

#[tokio::test]
async fn a_queue_that_is_not_there_is_not_found_by_anything() {
    let World { queues, .. } = World::new().await;
    for (account, queue) in [("nobody", "q"), (ACCOUNT, "nothing")] {
        let new = NewMessage { content: "x".into(), hidden_ms: 0, lives_ms: None };
        let errors = [
            queues.put(account, queue, new).await.err(),
            queues.receive(account, queue, 1, SECOND).await.err(),
            queues.peek(account, queue, 1).await.err(),
            queues.properties(account, queue).await.err(),
            queues.acl(account, queue).await.err(),
            queues.set_acl(account, queue, None).await.err(),
            queues.set_metadata(account, queue, Vec::new()).await.err(),
            queues.clear(account, queue).await.err(),
            queues.delete(account, queue).await.err(),
        ];
        for error in errors {
            let error = error.unwrap();
            assert_eq!((error.kind(), error.code()), (Kind::NotFound, "queue-not-found"));
        }
    }
}

#[tokio::test]
async fn a_list_is_sorted_by_name_and_cut_into_pages() {
    let World { queues, .. } = World::new().await;
    let empty = queues.list("nobody", "", None, 10).await.unwrap();
    assert_eq!((empty.queues.len(), empty.next), (0, None));
    for number in 0..50 {
        let meta = metadata(&[("number", &number.to_string())]);
        queues.create(ACCOUNT, &format!("n-{number:02}"), meta).await.unwrap();
    }
    for most in [1, 7, 49, 50, 51] {
        let (mut from, mut names) = (None::<String>, Vec::new());
        loop {
            let page = queues.list(ACCOUNT, "n-", from.as_deref(), most).await.unwrap();
            assert!(page.queues.len() <= most);
            for queue in page.queues {
                assert_eq!(queue.name, format!("n-{:0>2}", queue.metadata[0].1));
                names.push(queue.name);
            }
            from = page.next;
            if from.is_none() {
                break;
            }
        }
        let wanted: Vec<String> = (0..50).map(|number| format!("n-{number:02}")).collect();
        assert_eq!(names, wanted, "in pages of {most}");
    }
}
