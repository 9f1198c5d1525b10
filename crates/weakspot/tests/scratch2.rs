#![allow(missing_docs, clippy::unwrap_used, clippy::pedantic)]
use weakspot::cell::UnsafeCell;
use weakspot::sync::atomic::{AtomicBool, AtomicPtr, AtomicUsize, Ordering::*, fence};
use weakspot::sync::{Arc, Condvar, Mutex, RwLock};
use weakspot::{Builder, Report, hint, thread};

fn check(name: &str, body: impl Fn() + Send + Sync + 'static) -> Report {
    let report = Builder::default().check(body);
    println!("=== {name}: {report}");
    report
}
#[test]
fn sb() {
    let r = check("sb relaxed", || {
        let x = Arc::new(AtomicUsize::new(0));
        let y = Arc::new(AtomicUsize::new(0));
        let (x2, y2) = (x.clone(), y.clone());
        let a = thread::spawn(move || {
            x2.store(1, Relaxed);
            y2.load(Relaxed)
        });
        let b = thread::spawn(move || {
            y.store(1, Relaxed);
            x.load(Relaxed)
        });
        assert!(a.join().unwrap() + b.join().unwrap() > 0);
    });
    let weakspot::Impact::Harmful(h) = r.impact.unwrap() else { panic!() };
    let mut b = Builder::default();
    b.replay = Some(h.schedule);
    let r = b.check(|| {
        let x = Arc::new(AtomicUsize::new(0));
        let y = Arc::new(AtomicUsize::new(0));
        let (x2, y2) = (x.clone(), y.clone());
        let a = thread::spawn(move || {
            x2.store(1, Relaxed);
            y2.load(Relaxed)
        });
        let b = thread::spawn(move || {
            y.store(1, Relaxed);
            x.load(Relaxed)
        });
        assert!(a.join().unwrap() + b.join().unwrap() > 0);
    });
    println!("=== replay {r}");
    check("sb benign", || {
        let x = Arc::new(AtomicUsize::new(0));
        let y = Arc::new(AtomicUsize::new(0));
        let (x2, y2) = (x.clone(), y.clone());
        let a = thread::spawn(move || {
            x2.store(1, Relaxed);
            y2.load(Relaxed)
        });
        let b = thread::spawn(move || {
            y.store(1, Relaxed);
            x.load(Relaxed)
        });
        let _ = a.join().unwrap() + b.join().unwrap();
    });
    check("dekker cell", || {
        let x = Arc::new(AtomicBool::new(false));
        let y = Arc::new(AtomicBool::new(false));
        let d = SendIt(Arc::new(UnsafeCell::new(0)));
        let (x2, y2, d2) = (x.clone(), y.clone(), SendIt(d.0.clone()));
        let a = thread::spawn(move || {
            let d2 = d2;
            x2.store(true, Release);
            if !y2.load(Acquire) {
                d2.0.with_mut(|p| unsafe { *p += 1 });
            }
            x2.store(false, Release);
        });
        y.store(true, Release);
        if !x.load(Acquire) {
            d.0.with_mut(|p| unsafe { *p += 1 });
        }
        y.store(false, Release);
        a.join().unwrap();
    });
    check("abba", || {
        let a = Arc::new(Mutex::new(()));
        let b = Arc::new(Mutex::new(()));
        let (a2, b2) = (a.clone(), b.clone());
        let t = thread::spawn(move || {
            let _b = b2.lock().unwrap();
            let _a = a2.lock().unwrap();
        });
        {
            let _a = a.lock().unwrap();
            let _b = b.lock().unwrap();
        }
        t.join().unwrap();
    });
    check("no marker", || {
        let f = Arc::new(AtomicBool::new(false));
        let f2 = f.clone();
        let t = thread::spawn(move || while !f2.load(Acquire) {});
        f.store(true, Release);
        t.join().unwrap();
    });
    check("race", || {
        let d = SendIt(Arc::new(UnsafeCell::new(0)));
        let d2 = SendIt(d.0.clone());
        let t = thread::spawn(move || {
            let d2 = d2;
            d2.0.with_mut(|p| unsafe { *p += 1 });
        });
        d.0.with(|p| unsafe { *p });
        t.join().unwrap();
    });
}
struct SendIt<T>(T);
unsafe impl<T> Send for SendIt<T> {}
