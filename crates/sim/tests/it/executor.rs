//! The world itself: the same seed takes the same way, crashes and dead ends are told apart.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use lazuli_sim::{ClockFaults, Disk, SimStore, StoreFaults, Stuck, World};
use lazuli_store::Store;
use tokio::sync::{mpsc, oneshot};

/// Five tasks that send to one through a channel, some of them after a sleep.
fn order_of_messages(seed: u64) -> (Vec<u64>, u64) {
    let world = World::new(seed);
    let process = world.process("tasks", ClockFaults::default());
    let (sender, mut receiver) = mpsc::channel(2);
    for task in 0..5 {
        let (sender, env) = (sender.clone(), process.env().clone());
        let body = async move {
            for message in 0..4 {
                let pause = env.random.below(3);
                env.clock.sleep(Duration::from_micros(pause)).await;
                sender.send(task * 10 + message).await.unwrap();
            }
        };
        process.spawn("sender", Box::pin(body));
    }
    drop(sender);
    let main = async move {
        let mut all = Vec::new();
        while let Some(message) = receiver.recv().await {
            all.push(message);
        }
        all
    };
    (world.run(main).unwrap(), world.trace_hash())
}

#[test]
fn the_same_seed_takes_the_same_way_and_many_seeds_take_many() {
    let mut ways = BTreeSet::new();
    for seed in 0..500 {
        let first = order_of_messages(seed);
        assert_eq!(first, order_of_messages(seed), "seed {seed}");
        ways.insert(first.0);
    }
    assert!(ways.len() > 450, "only {} different orders", ways.len());
}

#[test]
fn a_lost_update_is_found_at_once() {
    let lost = (0..20).filter(|seed| {
        let world = World::new(*seed);
        let process = world.process("tasks", ClockFaults::default());
        let counter = Arc::new(Mutex::new(0));
        let ended: Vec<_> = (0..3).map(|_| increment(&process, counter.clone())).collect();
        let main = async move {
            for end in ended {
                end.await.unwrap();
            }
        };
        world.run(main).unwrap();
        *counter.lock().unwrap() < 3
    });
    assert!(lost.count() > 5);
}

/// Reads, lets others run, writes: wrong on purpose.
fn increment(process: &lazuli_sim::Process, counter: Arc<Mutex<u32>>) -> oneshot::Receiver<()> {
    let (end, ended) = oneshot::channel();
    let env = process.env().clone();
    let body = async move {
        let seen = *counter.lock().unwrap();
        env.clock.sleep(Duration::from_micros(env.random.below(10))).await;
        *counter.lock().unwrap() = seen + 1;
        end.send(()).unwrap();
    };
    process.spawn("increment", Box::pin(body));
    ended
}

#[test]
fn waiting_for_nothing_is_a_deadlock() {
    let world = World::new(1);
    let (_sender, receiver) = oneshot::channel::<()>();
    let stuck = world.run(receiver).unwrap_err();
    assert_eq!(stuck, Stuck::Deadlock { waiting: vec!["main"] });
}

#[test]
fn never_resting_is_a_runaway() {
    let world = World::new(1);
    let restless = std::future::poll_fn(|context| {
        context.waker().wake_by_ref();
        std::task::Poll::<()>::Pending
    });
    assert_eq!(world.run(restless).unwrap_err(), Stuck::Runaway { ready: vec!["main"] });
}

#[test]
fn sleeping_forever_while_others_tick_is_late() {
    let world = World::new(1);
    let process = world.process("ticker", ClockFaults::default());
    let env = process.env().clone();
    let tick = async move {
        loop {
            env.clock.sleep(Duration::from_secs(60)).await;
        }
    };
    process.spawn("tick", Box::pin(tick));
    let (_sender, receiver) = oneshot::channel::<()>();
    assert!(matches!(world.run(receiver).unwrap_err(), Stuck::Late { .. }));
}

#[test]
fn a_killed_process_does_nothing_more() {
    for seed in 0..50 {
        let world = World::new(seed);
        let process = world.process("victim", ClockFaults::default());
        let count = Arc::new(Mutex::new(0));
        let (env, counter) = (process.env().clone(), count.clone());
        let body = async move {
            loop {
                env.clock.sleep(Duration::from_micros(10)).await;
                *counter.lock().unwrap() += 1;
                let counter = counter.clone();
                env.spawn.spawn("child", Box::pin(async move { *counter.lock().unwrap() += 1 }));
            }
        };
        process.spawn("body", Box::pin(body));
        let (w, c) = (world.clone(), count.clone());
        let main = async move {
            w.sleep(Duration::from_millis(1)).await;
            process.kill();
            let then = *c.lock().unwrap();
            process.spawn("too late", Box::pin(async move { *c.lock().unwrap() += 1000 }));
            w.sleep(Duration::from_millis(1)).await;
            then
        };
        let then = world.run(main).unwrap();
        assert!(then > 10);
        assert_eq!(*count.lock().unwrap(), then);
    }
}

#[test]
fn the_simulated_store_keeps_the_contract_of_stores() {
    for (name, case) in lazuli_store::suite::CASES {
        println!("case {name}");
        let world = World::new(1);
        let process = world.process("suite", ClockFaults::default());
        let slow = StoreFaults {
            read_max: Duration::from_micros(100),
            sync_max: Duration::from_millis(2),
            answer_max: Duration::from_micros(100),
            ..StoreFaults::default()
        };
        let store: Arc<dyn Store> =
            Arc::new(SimStore::open(&Disk::new(&world, "disk"), &process, slow));
        world.run(case(store)).unwrap();
    }
}

#[test]
fn the_simulated_store_is_shared_by_processes_as_the_contract_says() {
    for (name, case) in lazuli_store::suite::SHARED_CASES {
        for seed in 0..20 {
            println!("case {name}, seed {seed}");
            let world = World::new(seed);
            let disk = Disk::new(&world, "disk");
            let slow = StoreFaults {
                read_max: Duration::from_micros(100),
                sync_max: Duration::from_millis(2),
                answer_max: Duration::from_micros(100),
                ..StoreFaults::default()
            };
            let open = |name| -> Arc<dyn Store> {
                let process = world.process(name, ClockFaults::default());
                Arc::new(SimStore::open(&disk, &process, slow))
            };
            world.run(case([open("first"), open("second")])).unwrap();
        }
    }
}
