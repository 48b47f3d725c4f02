//! What a store promises that several processes have open at the same time. Each case gets two handles on one store.

use std::future::{Future, poll_fn};
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;

use bytes::Bytes;
use lazuli_env::BoxFuture;

use super::{commit, get, put};
use crate::{Kind, Store, Write};

/// A case gets the store as two processes have it.
pub type SharedCase = fn([Arc<dyn Store>; 2]) -> BoxFuture<'static, ()>;

/// Every case with its name.
pub const SHARED_CASES: &[(&str, SharedCase)] = &[
    ("transactions_with_one_guard_follow_each_other", |s| {
        Box::pin(transactions_with_one_guard_follow_each_other(s))
    }),
    ("transactions_without_guards_follow_each_other", |s| {
        Box::pin(transactions_without_guards_follow_each_other(s))
    }),
    ("a_guard_is_deleted_after_the_transactions_that_have_it", |s| {
        Box::pin(a_guard_is_deleted_after_the_transactions_that_have_it(s))
    }),
];

const ROUNDS: u64 = 50;

/// Runs two futures at the same time.
async fn both(a: impl Future<Output = ()>, b: impl Future<Output = ()>) {
    let (mut a, mut b) = (pin!(a), pin!(b));
    let (mut a_done, mut b_done) = (false, false);
    poll_fn(|context| {
        a_done = a_done || a.as_mut().poll(context).is_ready();
        b_done = b_done || b.as_mut().poll(context).is_ready();
        if a_done && b_done { Poll::Ready(()) } else { Poll::Pending }
    })
    .await;
}

fn number(value: Option<Bytes>) -> u64 {
    value.map_or(0, |value| u64::from_be_bytes(value[..].try_into().expect("eight bytes")))
}

/// Adds one to a counter, again and again.
async fn count(store: Arc<dyn Store>, guards: Vec<Bytes>) {
    for _ in 0..ROUNDS {
        let txn = store.begin(guards.clone()).await.expect("begin");
        let next = number(txn.get(b"counter").await.expect("get")) + 1;
        txn.commit(vec![put("counter", next.to_be_bytes().to_vec())]).await.expect("commit");
    }
}

async fn transactions_with_one_guard_follow_each_other([a, b]: [Arc<dyn Store>; 2]) {
    commit(&a, vec![put("guard", ""), put("mine", ""), put("yours", "")]).await;
    let guards = |own: &str| vec![Bytes::copy_from_slice(own.as_bytes()), "guard".into()];
    both(count(a.clone(), guards("mine")), count(b.clone(), guards("yours"))).await;
    assert_eq!(number(get(&a, b"counter").await), 2 * ROUNDS);
}

async fn transactions_without_guards_follow_each_other([a, b]: [Arc<dyn Store>; 2]) {
    both(count(a.clone(), vec![]), count(b.clone(), vec![])).await;
    assert_eq!(number(get(&b, b"counter").await), 2 * ROUNDS);
}

async fn a_guard_is_deleted_after_the_transactions_that_have_it([a, b]: [Arc<dyn Store>; 2]) {
    commit(&a, vec![put("guard", "")]).await;
    let holder = a.begin(vec!["guard".into()]).await.expect("the guard exists");
    let delete = async {
        let txn = b.begin(vec![]).await.expect("begin");
        txn.commit(vec![Write::Delete("guard".into())]).await.expect("commit");
    };
    let write = async {
        assert_eq!(holder.get(b"written").await.expect("get"), None);
        holder.commit(vec![put("written", "")]).await.expect("the guard is still there");
    };
    both(delete, write).await;
    assert!(get(&b, b"written").await.is_some());
    let refused = a.begin(vec!["guard".into()]).await.err().expect("the guard is gone");
    assert_eq!(refused.kind(), Kind::Moved);
}
