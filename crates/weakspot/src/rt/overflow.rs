//! Stack overflow of a thread of a model: a message that names the thread, instead of a bare crash.
//!
//! The stack of a coroutine ends in a page that may not be touched. A handler on the alternate signal stack (which the
//! standard library sets up for each OS thread) looks whether that page was hit, says whose it was and ends the process.
//! Other faults go to whoever handled them before.
//!
//! A relaxed execution is run for real, so if a delayed store makes the code use memory that was freed, that happens,
//! and the process may crash. What was known of the violation is left as a [`note`] and printed then.

use std::cell::Cell;

thread_local! {
    /// The lowest address of the stack of the coroutine that runs, which is in the page that may not be touched; 0: none.
    static GUARD: Cell<usize> = const { Cell::new(0) };
    /// Its number.
    static THREAD: Cell<u32> = const { Cell::new(0) };
    /// The test that the OS thread runs, if it is known. Its name is leaked: it is small, and needed once.
    static TEST: Cell<&'static str> = const { Cell::new("") };
    /// What a crash means.
    static NOTE: Cell<Option<&'static str>> = const { Cell::new(None) };
}

/// What a crash means at present, if it means anything: set while relaxed executions are tried out.
pub(crate) fn note(text: Option<&'static str>) {
    NOTE.set(text);
}

/// A coroutine begins to run, or (with 0) ceases to.
#[inline]
pub(crate) fn running(thread: u32, guard: usize) {
    GUARD.set(guard);
    THREAD.set(thread);
}

#[cfg(not(unix))]
pub(crate) fn install() {}

#[cfg(unix)]
pub(crate) use unix::install;

#[cfg(unix)]
mod unix {
    use std::mem::MaybeUninit;
    use std::sync::Once;
    use std::sync::OnceLock;

    use super::{GUARD, NOTE, TEST, THREAD};

    static INSTALLED: Once = Once::new();
    /// Who handled faults before.
    static BEFORE: OnceLock<libc::sigaction> = OnceLock::new();

    /// Pages are at least this large, and the page at the end of a stack is one.
    const PAGE: usize = 4096;

    /// Puts the handler in place, once.
    pub(crate) fn install() {
        if TEST.get().is_empty() {
            TEST.set(std::thread::current().name().map_or("", |name| format!("{name}: ").leak()));
        }
        INSTALLED.call_once(|| {
            // SAFETY: `sigaction` is given a handler of the right type and valid pointers. The handler uses nothing but
            // thread-locals without destructors, the name of a thread, `write` and what it replaces.
            unsafe {
                let mut action = MaybeUninit::<libc::sigaction>::zeroed().assume_init();
                action.sa_sigaction = handle as *const () as usize;
                action.sa_flags = libc::SA_SIGINFO | libc::SA_ONSTACK;
                let mut before = MaybeUninit::<libc::sigaction>::zeroed().assume_init();
                if libc::sigaction(libc::SIGSEGV, &raw const action, &raw mut before) == 0 {
                    let _ = BEFORE.set(before);
                }
            }
        });
    }

    fn say(text: &[u8]) {
        // SAFETY: the pointer and the length are those of a slice.
        unsafe { libc::write(2, text.as_ptr().cast(), text.len()) };
    }

    /// The name of the thread that runs, if it has one. Its bytes are only read; if the runtime was about to change its
    /// state, nothing is said.
    fn say_name() {
        let Some(Ok(state)) = super::super::current().map(|runtime| runtime.state.try_borrow()) else { return };
        if let Some(name) = state.lanes.get(THREAD.get() as usize).and_then(|lane| lane.name.as_deref()) {
            say(b" (");
            say(name.as_bytes());
            say(b")");
        }
    }

    extern "C" fn handle(signal: libc::c_int, info: *mut libc::siginfo_t, context: *mut libc::c_void) {
        // SAFETY: the system calls this with a valid `info`.
        let address = unsafe { (*info).si_addr() }.addr();
        let guard = GUARD.get();
        if guard != 0 && (guard..guard + PAGE).contains(&address) {
            let mut digits = [b'0'; 10];
            let mut number = THREAD.get();
            for digit in digits.iter_mut().rev() {
                *digit = b'0' + (number % 10) as u8;
                number /= 10;
            }
            let first = digits.iter().position(|&digit| digit != b'0').unwrap_or(digits.len() - 1);
            say(b"\nweakspot: ");
            say(TEST.get().as_bytes());
            say(b"thread ");
            say(&digits[first..]);
            say_name();
            say(b" of the model has overflowed its stack (`thread::Builder::stack_size` or RUST_MIN_STACK give it more)\n");
            // SAFETY: ends the process.
            unsafe { libc::abort() };
        }
        if let Some(note) = NOTE.take() {
            say(note.as_bytes());
        }
        pass_on(signal, info, context);
    }

    /// Lets whoever was there before handle the fault.
    fn pass_on(signal: libc::c_int, info: *mut libc::siginfo_t, context: *mut libc::c_void) {
        match BEFORE.get() {
            Some(before) if before.sa_flags & libc::SA_SIGINFO != 0 && before.sa_sigaction > 1 => {
                // SAFETY: the handler that was installed with this flag has this type.
                let handler = unsafe {
                    std::mem::transmute::<usize, extern "C" fn(libc::c_int, *mut libc::siginfo_t, *mut libc::c_void)>(
                        before.sa_sigaction,
                    )
                };
                handler(signal, info, context);
            }
            _ => {
                // SAFETY: without a handler the fault comes again and ends the process.
                unsafe { libc::signal(signal, libc::SIG_DFL) };
            }
        }
    }
}
