//! Waiting for several futures at once without spawning: they run inside the caller's task, in a fixed order, and are
//! dropped with it. And letting others go first.

use std::future::poll_fn;
use std::task::Poll;

use lazuli_env::BoxFuture;

/// The answers of all futures, in the order given.
pub async fn join_all<T>(futures: Vec<BoxFuture<'_, T>>) -> Vec<T> {
    let mut waiting: Vec<_> = futures.into_iter().map(Some).collect();
    let mut answers: Vec<Option<T>> = waiting.iter().map(|_| None).collect();
    poll_fn(move |context| {
        for (slot, answer) in waiting.iter_mut().zip(&mut answers) {
            if let Some(future) = slot
                && let Poll::Ready(value) = future.as_mut().poll(context)
            {
                *answer = Some(value);
                *slot = None;
            }
        }
        if waiting.iter().any(Option::is_some) {
            return Poll::Pending;
        }
        Poll::Ready(answers.drain(..).flatten().collect())
    })
    .await
}

/// Lets other ready tasks run first. Stores that answer at once never yield by themselves, so whoever reads page after page
/// does it between two pages.
pub async fn yield_now() {
    let mut is_second = false;
    poll_fn(move |context| {
        if std::mem::replace(&mut is_second, true) {
            return Poll::Ready(());
        }
        context.waker().wake_by_ref();
        Poll::Pending
    })
    .await;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn answers_come_in_the_order_of_the_questions() {
        let mut futures: Vec<BoxFuture<'_, u32>> = Vec::new();
        for n in 0..10 {
            futures.push(Box::pin(async move {
                for _ in 0..(10 - n) {
                    tokio::task::yield_now().await;
                }
                n
            }));
        }
        assert_eq!(join_all(futures).await, (0..10).collect::<Vec<_>>());
    }
}
