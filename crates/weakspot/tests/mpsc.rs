//! Channels inside and outside a model.
#![allow(clippy::unwrap_used)]

use std::time::Duration;
use weakspot::sync::mpsc::{self, RecvTimeoutError, TryRecvError, TrySendError};
use weakspot::{Builder, Report, thread};

fn passes(test: fn()) -> Report {
    let report = Builder::new().check(test);
    assert!(!report.is_failure(), "{report}");
    assert!(report.exhaustive, "{report}");
    report
}

fn one_sender() {
    let (sender, receiver) = mpsc::channel();
    let thread = thread::spawn(move || (0..3).for_each(|message| sender.send(message).unwrap()));
    assert_eq!(receiver.iter().collect::<Vec<_>>(), [0, 1, 2]);
    thread.join().unwrap();
}

#[test]
fn a_waiting_receiver_and_one_sender_have_one_execution() {
    one_sender();
    assert_eq!(passes(one_sender).executions, 1);
}

#[test]
fn the_order_of_two_senders_is_explored() {
    let report = passes(|| {
        let (sender, receiver) = mpsc::channel();
        let other = sender.clone();
        let threads = [thread::spawn(move || sender.send(1).unwrap()), thread::spawn(move || other.send(2).unwrap())];
        let received = [receiver.recv().unwrap(), receiver.recv().unwrap()];
        assert!(received == [1, 2] || received == [2, 1]);
        assert!(receiver.recv().is_err());
        for thread in threads {
            thread.join().unwrap();
        }
    });
    assert_eq!(report.executions, 2, "who sends first");
}

#[test]
fn try_recv_sees_nothing_or_the_message() {
    let report = passes(|| {
        let (sender, receiver) = mpsc::channel();
        let thread = thread::spawn(move || {
            sender.send(5).unwrap();
            sender
        });
        let early = receiver.try_recv();
        assert!(early == Ok(5) || early == Err(TryRecvError::Empty));
        let sender = thread.join().unwrap();
        assert_eq!(early.or_else(|_| receiver.try_recv()), Ok(5));
        assert_eq!(receiver.try_recv(), Err(TryRecvError::Empty));
        drop(sender);
        assert_eq!(receiver.try_recv(), Err(TryRecvError::Disconnected));
    });
    assert!(report.executions <= 3, "{}", report.executions);
}

#[test]
fn a_send_after_the_receiver_is_gone_gives_the_message_back() {
    let test = || {
        let (sender, receiver) = mpsc::channel();
        sender.send(1).unwrap();
        drop(receiver);
        assert_eq!(sender.send(2).unwrap_err().0, 2);
    };
    test();
    passes(test);
}

#[test]
fn a_bounded_channel_holds_no_more_than_its_bound() {
    let test = || {
        let (sender, receiver) = mpsc::sync_channel(1);
        sender.send(1).unwrap();
        assert_eq!(sender.try_send(2), Err(TrySendError::Full(2)));
        assert_eq!(receiver.recv(), Ok(1));
        sender.try_send(3).unwrap();
        assert_eq!(receiver.try_recv(), Ok(3));
        drop(receiver);
        assert_eq!(sender.try_send(4), Err(TrySendError::Disconnected(4)));
    };
    test();
    passes(test);
}

fn bounded() {
    let (sender, receiver) = mpsc::sync_channel(1);
    let thread = thread::spawn(move || (0..3).for_each(|message| sender.send(message).unwrap()));
    assert_eq!(receiver.into_iter().collect::<Vec<_>>(), [0, 1, 2]);
    thread.join().unwrap();
}

#[test]
fn a_bounded_channel_delivers_in_one_execution() {
    bounded();
    assert_eq!(passes(bounded).executions, 1);
}

fn rendezvous() {
    let (sender, receiver) = mpsc::sync_channel(0);
    let thread = thread::spawn(move || sender.send(1).unwrap());
    assert_eq!(receiver.recv(), Ok(1));
    thread.join().unwrap();
    assert!(receiver.recv().is_err());
}

#[test]
fn a_rendezvous_hands_over() {
    rendezvous();
    passes(rendezvous);
}

#[test]
fn a_waiting_sender_is_told_that_the_receiver_is_gone() {
    passes(|| {
        let (sender, receiver) = mpsc::sync_channel(0);
        let thread = thread::spawn(move || sender.send(1));
        drop(receiver);
        assert_eq!(thread.join().unwrap().unwrap_err().0, 1);
    });
}

#[test]
fn a_rendezvous_without_a_receiver_deadlocks() {
    let report = Builder::new().check(|| {
        let (sender, receiver) = mpsc::sync_channel(0);
        sender.send(1).unwrap();
        drop(receiver);
    });
    assert!(report.is_failure());
    assert!(report.to_string().contains("SyncSender::send"), "{report}");
}

#[test]
fn a_timeout_may_come_first() {
    let outcomes = std::sync::Arc::new(std::sync::Mutex::new(Vec::new()));
    let seen = std::sync::Arc::clone(&outcomes);
    let report = Builder::new().check(move || {
        let (sender, receiver) = mpsc::channel();
        let thread = thread::spawn(move || sender.send(1));
        let outcome = receiver.recv_timeout(Duration::from_secs(1));
        drop(receiver);
        let _ = thread.join().unwrap();
        seen.lock().unwrap().push(outcome);
    });
    assert!(!report.is_failure(), "{report}");
    let outcomes = outcomes.lock().unwrap();
    assert!(outcomes.contains(&Ok(1)) && outcomes.contains(&Err(RecvTimeoutError::Timeout)), "{outcomes:?}");
}

#[test]
fn a_receiver_that_nobody_sends_to_deadlocks() {
    let report = Builder::new().check(|| {
        let (sender, receiver) = mpsc::channel::<u8>();
        let _ = receiver.recv();
        drop(sender);
    });
    assert!(report.is_failure());
    assert!(report.to_string().contains("Receiver::recv"), "{report}");
}

#[test]
fn what_was_sent_happens_before_what_is_received() {
    use weakspot::cell::Cell;
    passes(|| {
        let (sender, receiver) = mpsc::channel();
        let thread = thread::spawn(move || {
            let cell = Cell::new(0);
            cell.set(1);
            sender.send(cell).unwrap();
        });
        assert_eq!(receiver.recv().unwrap().get(), 1);
        thread.join().unwrap();
    });
}

/// A receiver that receives once, and a sender that sends once and then tries to: what the last try says.
#[test]
fn a_rendezvous_with_nobody_is_refused() {
    let seen: std::sync::Arc<std::sync::Mutex<std::collections::BTreeSet<&str>>> = std::sync::Arc::default();
    let all = seen.clone();
    let report = Builder::default().check(move || {
        let (sender, receiver) = mpsc::sync_channel(0);
        let thread = thread::spawn(move || {
            sender.send(1).unwrap();
            sender.try_send(2)
        });
        assert_eq!(receiver.recv(), Ok(1));
        drop(receiver);
        let refusal = match thread.join().unwrap() {
            Ok(()) => "none",
            Err(TrySendError::Full(2)) => "nobody waits",
            Err(_) => "the receiver is gone",
        };
        all.lock().unwrap().insert(refusal);
    });
    assert!(!report.is_failure(), "{report}");
    let seen: Vec<&str> = seen.lock().unwrap().iter().copied().collect();
    assert_eq!(seen, ["nobody waits", "the receiver is gone"], "{report}");
}

#[test]
fn a_message_that_is_on_its_way_is_sent() {
    // If the other one finds no room, this message was in the channel, and not given back.
    for bound in [1, 2] {
        let report = Builder::default().check(move || {
            let (sender, receiver) = mpsc::sync_channel(bound);
            let other = sender.clone();
            let thread = thread::spawn(move || other.send(1).is_ok());
            let threads =
                (1..bound).map(|_| sender.clone()).map(|sender| thread::spawn(move || sender.send(1).is_ok()));
            let threads: Vec<_> = threads.collect();
            let is_full = matches!(sender.try_send(2), Err(TrySendError::Full(2)));
            drop(receiver);
            let are_sent = threads.into_iter().all(|thread| thread.join().unwrap());
            assert!(thread.join().unwrap() && are_sent || !is_full, "what has filled the channel was not sent");
        });
        assert!(!report.is_failure(), "{report}");
    }
}

/// Another sender has taken the slot before and not filled it yet. std waits for it: the channel is not empty.
#[test]
fn a_message_that_was_sent_is_received_although_another_one_is_on_its_way() {
    let report = passes(|| {
        let (sender, receiver) = mpsc::sync_channel(2);
        for message in 0..2 {
            sender.send(message).unwrap();
            receiver.recv().unwrap();
        }
        let other = sender.clone();
        let thread = thread::spawn(move || other.send(2));
        sender.send(3).unwrap();
        assert!(receiver.try_recv().is_ok());
        drop(receiver);
        let _ = thread.join().unwrap();
    });
    assert!(report.executions > 2, "{report}");
}

/// What a sender that waits for room does not have yet is nobody's.
#[test]
fn who_tries_to_send_is_refused_only_if_the_channel_is_full() {
    use weakspot::sync::Arc;
    use weakspot::sync::atomic::{AtomicBool, Ordering::SeqCst};
    for bound in [1, 2] {
        let seen: std::sync::Arc<std::sync::Mutex<std::collections::BTreeSet<_>>> = std::sync::Arc::default();
        let all = seen.clone();
        let report = Builder::default().check(move || {
            let (sender, receiver) = mpsc::sync_channel(bound);
            let starts = Arc::new(AtomicBool::new(false));
            for _ in 0..bound {
                sender.send(1).unwrap();
            }
            let (other, starting) = (sender.clone(), starts.clone());
            let waiting = thread::spawn(move || sender.send(2).is_ok());
            let trying = thread::spawn(move || {
                starting.store(true, SeqCst);
                other.try_send(3)
            });
            for _ in 0..bound {
                receiver.recv().unwrap();
            }
            let next = receiver.try_recv();
            let is_empty = next == Err(TryRecvError::Empty) && !starts.load(SeqCst);
            drop(receiver);
            let (is_sent, tried) = (waiting.join().unwrap(), trying.join().unwrap());
            // Nothing was there when it started, and nothing came.
            assert!(!is_empty || is_sent || tried != Err(TrySendError::Full(3)), "refused by an empty channel");
            all.lock().unwrap().insert((next.ok(), is_sent, tried.map_err(|error| error.to_string())));
        });
        assert!(!report.is_failure(), "{report}");
        let seen = seen.lock().unwrap();
        // The sender that waits is overtaken, and gets its message back.
        assert!(seen.contains(&(Some(3), false, Ok(()))), "{bound}: {seen:?}");
        assert!(seen.contains(&(None, false, Ok(()))), "{bound}: {seen:?}");
    }
}
