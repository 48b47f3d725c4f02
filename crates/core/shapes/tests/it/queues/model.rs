//! Long runs of operations by chance, each answer compared with that of a plain list of messages.

use bytes::Bytes;
use lazuli_env::SplitMix64;
use lazuli_shapes::queue::{Delivery, MessageId, Receipt, Update};

use super::world::{ACCOUNT, World, text};

/// A message as the plain list has it.
#[derive(Clone, Debug)]
struct Plain {
    id: MessageId,
    number: usize,
    content: String,
    visible_ms: u64,
    expires_ms: Option<u64>,
    dequeues: u32,
    receipt: Receipt,
}

#[derive(Default)]
struct Model {
    messages: Vec<Plain>,
    put: usize,
    /// Every receipt that was ever given out.
    receipts: Vec<(MessageId, Receipt)>,
}

impl Model {
    fn note(&mut self, number: usize, delivery: &Delivery) {
        let (message, hold) = (&delivery.message, &delivery.hold);
        self.receipts.push((message.id, hold.receipt));
        self.messages.retain(|plain| plain.id != message.id);
        self.messages.push(Plain {
            id: message.id,
            number,
            content: text(&message.content),
            visible_ms: hold.visible_ms,
            expires_ms: message.expires_ms,
            dequeues: message.dequeues,
            receipt: hold.receipt,
        });
    }

    /// What is visible now, in its order.
    fn visible(&mut self, now_ms: u64) -> Vec<Plain> {
        self.messages.retain(|plain| plain.expires_ms.is_none_or(|expires| expires > now_ms));
        let mut visible: Vec<Plain> =
            self.messages.iter().filter(|plain| plain.visible_ms <= now_ms).cloned().collect();
        visible.sort_by_key(|plain| (plain.visible_ms, plain.number));
        visible
    }

    fn holds(&self, id: MessageId, receipt: Receipt) -> bool {
        self.messages.iter().any(|plain| plain.id == id && plain.receipt == receipt)
    }
}

/// Numbers that look like chance, the same in every run.
struct Dice(SplitMix64);

impl Dice {
    fn below(&mut self, bound: u64) -> u64 {
        self.0.next_u64() % bound
    }
}

/// What a transaction that begins now sees as the time: the clock stands still in these tests, and so few writes happen
/// in a millisecond that no number runs ahead of it.
fn now(world: &World) -> u64 {
    world.engine.env().clock.now_ms()
}

async fn step(world: &World, model: &mut Model, dice: &mut Dice) {
    match dice.below(12) {
        0..=3 => {
            let content = "x".repeat(usize::try_from(dice.below(6_000)).unwrap());
            let hidden_ms = dice.below(3) * dice.below(2_000);
            let lives_ms = (dice.below(3) > 0).then(|| hidden_ms + 1 + dice.below(4_000));
            let delivery = world.put_for(&content, hidden_ms, lives_ms).await;
            model.put += 1;
            model.note(model.put, &delivery);
        }
        4..=6 => {
            let most = usize::try_from(1 + dice.below(5)).unwrap();
            let got = world.receive(most, dice.below(2_000)).await;
            let wanted = model.visible(now(world));
            assert_eq!(got.len(), wanted.len().min(most));
            for (delivery, plain) in got.iter().zip(wanted) {
                assert_eq!(delivery.message.id, plain.id);
                assert_eq!(text(&delivery.message.content), plain.content);
                assert_eq!(delivery.message.dequeues, plain.dequeues + 1);
                model.note(plain.number, delivery);
            }
        }
        7..=8 if !model.receipts.is_empty() => settle(world, model, dice).await,
        9 => {
            let seen = world.peek(7).await;
            let wanted = model.visible(now(world));
            let wanted: Vec<_> = wanted.into_iter().take(7).map(|plain| plain.content).collect();
            assert_eq!(seen, wanted);
        }
        10 if dice.below(40) == 0 => {
            world.queues.clear(ACCOUNT, "q").await.unwrap();
            model.messages.clear();
        }
        10 if dice.below(8) == 0 => {
            world.sweep().await;
            model.visible(now(world));
            assert_eq!(world.count().await, model.messages.len() as u64);
        }
        _ => world.pass(dice.below(700)),
    }
}

/// Changes or deletes a message with some receipt that was once good.
async fn settle(world: &World, model: &mut Model, dice: &mut Dice) {
    let at = usize::try_from(dice.below(model.receipts.len() as u64)).unwrap();
    let (id, receipt) = model.receipts[model.receipts.len() - 1 - at.min(dice.below(6) as usize)];
    model.visible(now(world));
    let is_good = model.holds(id, receipt);
    if dice.below(2) == 0 {
        let deleted = world.queues.delete_message(ACCOUNT, "q", id, receipt).await;
        assert_eq!(deleted.is_ok(), is_good, "{deleted:?}");
        if is_good {
            model.messages.retain(|plain| plain.id != id);
        }
        return;
    }
    let content = (dice.below(2) == 0).then(|| "y".repeat(dice.below(6_000) as usize));
    let bytes = content.clone().map(Bytes::from);
    let update = Update { hidden_ms: dice.below(3) * dice.below(900), content: bytes };
    let updated = world.queues.update(ACCOUNT, "q", id, receipt, update).await;
    assert_eq!(updated.is_ok(), is_good, "{updated:?}");
    if let Ok(hold) = updated {
        let plain = model.messages.iter_mut().find(|plain| plain.id == id).unwrap();
        (plain.receipt, plain.visible_ms) = (hold.receipt, hold.visible_ms);
        plain.content = content.unwrap_or_else(|| plain.content.clone());
        model.receipts.push((id, hold.receipt));
    }
}

#[tokio::test]
async fn a_queue_answers_as_a_plain_list_would() {
    for seed in 0..20 {
        let world = World::new().await;
        let (mut model, mut dice) = (Model::default(), Dice(SplitMix64::new(seed)));
        for _ in 0..600 {
            step(&world, &mut model, &mut dice).await;
        }
        assert!(model.put > 100);
    }
}
