#![allow(missing_docs, clippy::unwrap_used, clippy::pedantic)]
use weakspot::cell::UnsafeCell;
use weakspot::sync::atomic::{AtomicBool, AtomicPtr, AtomicUsize, Ordering::*, fence};
use weakspot::sync::{Arc, Condvar, Mutex, RwLock};
use weakspot::{Builder, Report, hint, thread};

fn check(name: &str, body: impl Fn() + Send + Sync + 'static) -> Report {
    let report = Builder::default().check(body);
    println!("--- {name}: {report}");
    report
}

#[test]
fn all() {
    check("iriw", || {
        let x = Arc::new(AtomicUsize::new(0));
        let y = Arc::new(AtomicUsize::new(0));
        let mut t = vec![];
        let x1 = x.clone();
        t.push(thread::spawn(move || x1.store(1, SeqCst)));
        let y1 = y.clone();
        t.push(thread::spawn(move || y1.store(1, SeqCst)));
        let (x1, y1) = (x.clone(), y.clone());
        t.push(thread::spawn(move || {
            x1.load(SeqCst);
            y1.load(SeqCst);
        }));
        let (x1, y1) = (x.clone(), y.clone());
        t.push(thread::spawn(move || {
            y1.load(SeqCst);
            x1.load(SeqCst);
        }));
        for t in t {
            t.join().unwrap();
        }
    });
    check("1 writer 3 readers", || {
        let x = Arc::new(AtomicUsize::new(0));
        let mut t = vec![];
        let x1 = x.clone();
        t.push(thread::spawn(move || x1.store(1, SeqCst)));
        for _ in 0..3 {
            let x1 = x.clone();
            t.push(thread::spawn(move || {
                x1.load(SeqCst);
            }));
        }
        for t in t {
            t.join().unwrap();
        }
    });
    check("lost update", || {
        let x = Arc::new(AtomicUsize::new(0));
        let t: Vec<_> = (0..2)
            .map(|_| {
                let x = x.clone();
                thread::spawn(move || {
                    let v = x.load(SeqCst);
                    x.store(v + 1, SeqCst);
                })
            })
            .collect();
        for t in t {
            t.join().unwrap();
        }
        assert_eq!(x.load(SeqCst), 2);
    });
    for n in [2, 3] {
        check(&format!("tas lock {n}"), move || {
            let l = Arc::new(AtomicBool::new(false));
            let d = Arc::new(UnsafeCell::new(0));
            let t: Vec<_> = (0..n)
                .map(|_| {
                    let l = l.clone();
                    let d = SendIt(d.clone());
                    thread::spawn(move || {
                        let d = d;
                        while l.swap(true, Acquire) {
                            hint::spin_loop();
                        }
                        d.0.with_mut(|p| unsafe { *p += 1 });
                        l.store(false, Release);
                    })
                })
                .collect();
            for t in t {
                t.join().unwrap();
            }
            d.with(|p| assert_eq!(unsafe { *p }, n));
        });
        check(&format!("cas lock {n}"), move || {
            let l = Arc::new(AtomicBool::new(false));
            let d = Arc::new(UnsafeCell::new(0));
            let t: Vec<_> = (0..n)
                .map(|_| {
                    let l = l.clone();
                    let d = SendIt(d.clone());
                    thread::spawn(move || {
                        let d = d;
                        while l.compare_exchange(false, true, Acquire, Relaxed).is_err() {
                            thread::yield_now();
                        }
                        d.0.with_mut(|p| unsafe { *p += 1 });
                        l.store(false, Release);
                    })
                })
                .collect();
            for t in t {
                t.join().unwrap();
            }
            d.with(|p| assert_eq!(unsafe { *p }, n));
        });
        check(&format!("ttas lock {n}"), move || {
            let l = Arc::new(AtomicBool::new(false));
            let t: Vec<_> = (0..n)
                .map(|_| {
                    let l = l.clone();
                    thread::spawn(move || {
                        while l.swap(true, Acquire) {
                            while l.load(Relaxed) {
                                hint::spin_loop();
                            }
                        }
                        l.store(false, Release);
                    })
                })
                .collect();
            for t in t {
                t.join().unwrap();
            }
        });
        check(&format!("mutex {n}"), move || {
            let m = Arc::new(Mutex::new(0));
            let t: Vec<_> = (0..n)
                .map(|_| {
                    let m = m.clone();
                    thread::spawn(move || {
                        *m.lock().unwrap() += 1;
                    })
                })
                .collect();
            for t in t {
                t.join().unwrap();
            }
            assert_eq!(*m.lock().unwrap(), n);
        });
        check(&format!("rwlock {n}"), move || {
            let m = Arc::new(RwLock::new(0));
            let t: Vec<_> = (0..n)
                .map(|i| {
                    let m = m.clone();
                    thread::spawn(move || {
                        if i == 0 {
                            *m.write().unwrap() += 1;
                        } else {
                            let _ = *m.read().unwrap();
                        }
                    })
                })
                .collect();
            for t in t {
                t.join().unwrap();
            }
        });
    }
    check("relaxed lock", || {
        let l = Arc::new(AtomicBool::new(false));
        let d = Arc::new(UnsafeCell::new(0));
        let t: Vec<_> = (0..2)
            .map(|_| {
                let l = l.clone();
                let d = SendIt(d.clone());
                thread::spawn(move || {
                    let d = d;
                    while l.swap(true, Relaxed) {
                        hint::spin_loop();
                    }
                    d.0.with_mut(|p| unsafe { *p += 1 });
                    l.store(false, Relaxed);
                })
            })
            .collect();
        for t in t {
            t.join().unwrap();
        }
    });
    check("condvar", || {
        let p = Arc::new((Mutex::new(false), Condvar::new()));
        let p2 = p.clone();
        let t = thread::spawn(move || {
            *p2.0.lock().unwrap() = true;
            p2.1.notify_one();
        });
        let mut g = p.0.lock().unwrap();
        while !*g {
            g = p.1.wait(g).unwrap();
        }
        drop(g);
        t.join().unwrap();
    });
    check("lost wakeup", || {
        let p = Arc::new((Mutex::new(false), Condvar::new(), AtomicBool::new(false)));
        let p2 = p.clone();
        let t = thread::spawn(move || {
            p2.2.store(true, SeqCst);
            p2.1.notify_one();
        });
        let mut g = p.0.lock().unwrap();
        while !p.2.load(SeqCst) {
            g = p.1.wait(g).unwrap();
        }
        drop(g);
        t.join().unwrap();
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
    check("park", || {
        let f = Arc::new(AtomicBool::new(false));
        let f2 = f.clone();
        let me = thread::current();
        let t = thread::spawn(move || {
            f2.store(true, Release);
            me.unpark();
        });
        while !f.load(Acquire) {
            thread::park();
        }
        t.join().unwrap();
    });
    check("livelock", || {
        let f = Arc::new(AtomicBool::new(false));
        let f2 = f.clone();
        let t = thread::spawn(move || {
            while !f2.load(Acquire) {
                hint::spin_loop();
            }
        });
        t.join().unwrap();
    });
    check("spin wait", || {
        let f = Arc::new(AtomicBool::new(false));
        let f2 = f.clone();
        let t = thread::spawn(move || {
            while !f2.load(Acquire) {
                hint::spin_loop();
            }
        });
        f.store(true, Release);
        t.join().unwrap();
    });
    check("treiber", || {
        struct Node {
            v: usize,
            next: *mut Node,
        }
        let head = Arc::new(AtomicPtr::<Node>::new(std::ptr::null_mut()));
        let t: Vec<_> = (0..2)
            .map(|i| {
                let h = head.clone();
                thread::spawn(move || {
                    let n = Box::into_raw(Box::new(Node { v: i, next: std::ptr::null_mut() }));
                    let mut cur = h.load(Relaxed);
                    loop {
                        unsafe {
                            (*n).next = cur;
                        }
                        match h.compare_exchange(cur, n, AcqRel, Relaxed) {
                            Ok(_) => break,
                            Err(c) => cur = c,
                        }
                    }
                })
            })
            .collect();
        let mut cur = head.load(Acquire);
        let mut popped = 0;
        while !cur.is_null() {
            let next = unsafe { (*cur).next };
            match head.compare_exchange(cur, next, AcqRel, Acquire) {
                Ok(n) => {
                    popped += unsafe { Box::from_raw(n) }.v;
                    break;
                }
                Err(c) => cur = c,
            }
        }
        for t in t {
            t.join().unwrap();
        }
        let mut cur = head.load(Acquire);
        while !cur.is_null() {
            let b = unsafe { Box::from_raw(cur) };
            popped += b.v;
            cur = b.next;
        }
        assert_eq!(popped, 1);
    });
    check("arc count", || {
        let a = Arc::new(0);
        let b = a.clone();
        let t = thread::spawn(move || drop(b));
        let n = Arc::strong_count(&a);
        assert!(n == 1 || n == 2);
        t.join().unwrap();
        assert_eq!(Arc::try_unwrap(a).unwrap(), 0);
    });
    struct D(Arc<AtomicUsize>);
    impl Drop for D {
        fn drop(&mut self) {
            self.0.fetch_add(1, SeqCst);
        }
    }
    check("arc destructor", || {
        let c = Arc::new(AtomicUsize::new(0));
        let a = Arc::new(D(c.clone()));
        let b = a.clone();
        let t = thread::spawn(move || drop(b));
        drop(a);
        let v = c.load(SeqCst);
        assert!(v < 2);
        t.join().unwrap();
        assert_eq!(c.load(SeqCst), 1);
    });
    check("panic", || {
        let x = Arc::new(AtomicUsize::new(0));
        let x2 = x.clone();
        let t = thread::spawn(move || {
            assert_eq!(x2.load(SeqCst), 0, "boo");
        });
        x.store(1, SeqCst);
        t.join().unwrap();
    });
    check("statics", || {
        static X: AtomicUsize = AtomicUsize::new(5);
        let t = thread::spawn(|| X.fetch_add(1, SeqCst));
        X.fetch_add(1, SeqCst);
        t.join().unwrap();
        assert_eq!(X.load(SeqCst), 7);
    });
    check("scope", || {
        let x = AtomicUsize::new(0);
        thread::scope(|s| {
            s.spawn(|| x.fetch_add(1, SeqCst));
            s.spawn(|| x.fetch_add(1, SeqCst));
        });
        assert_eq!(x.into_inner(), 2);
    });
    check("random", || {
        let x = Arc::new(AtomicUsize::new(0));
        let x2 = x.clone();
        let t = thread::spawn(move || x2.store(1, SeqCst));
        static N: std::sync::atomic::AtomicUsize = std::sync::atomic::AtomicUsize::new(0);
        if N.fetch_add(1, std::sync::atomic::Ordering::Relaxed) % 2 == 0 {
            x.load(SeqCst);
        } else {
            x.store(2, SeqCst);
        }
        t.join().unwrap();
    });
    check("too many", || {
        for _ in 0..100 {
            thread::spawn(|| ());
        }
    });
    check("fence sb", || {
        let x = Arc::new(AtomicUsize::new(0));
        let y = Arc::new(AtomicUsize::new(0));
        let (x2, y2) = (x.clone(), y.clone());
        let a = thread::spawn(move || {
            x2.store(1, Relaxed);
            fence(SeqCst);
            y2.load(Relaxed)
        });
        let b = thread::spawn(move || {
            y.store(1, Relaxed);
            fence(SeqCst);
            x.load(Relaxed)
        });
        assert!(a.join().unwrap() + b.join().unwrap() > 0);
    });
}
struct SendIt<T>(T);
unsafe impl<T> Send for SendIt<T> {}
