//! Memory that a model frees is not used again before the execution is over.
//!
//! Otherwise which address the next allocation has would depend on who has freed something before, in an order that no
//! event shows; and a compare-and-swap of pointers would succeed or fail with it. So the model would not be determined by
//! its events. The price: an ABA mistake that needs the allocator to hand out the same memory again is not found.
//!
//! Rust's allocator on Linux is that of the C library, and a program may bring its own `free` and `realloc`: these do. They
//! keep what is freed by a thread of a model and hand on everything else. An allocator that the test itself declares with
//! `#[global_allocator]` keeps working; if it does not end in the C library's, nothing is kept. A program that is linked
//! with the C library statically cannot bring its own `free`: nothing is kept there, either.

use std::cell::RefCell;
use std::ffi::c_void;

/// What an execution has freed.
#[derive(Default)]
pub(crate) struct Quarantine {
    freed: RefCell<Vec<*mut c_void>>,
}

impl Drop for Quarantine {
    fn drop(&mut self) {
        self.release();
    }
}

#[cfg(all(feature = "quarantine", target_os = "linux", target_env = "gnu", not(target_feature = "crt-static")))]
mod symbols {
    use std::ffi::c_void;
    use std::ptr;

    use super::Quarantine;
    use crate::rt::current;

    // SAFETY: the functions of the C library, with their signatures.
    unsafe extern "C" {
        #[link_name = "__libc_free"]
        fn free_now(pointer: *mut c_void);
        #[link_name = "__libc_realloc"]
        fn resize_now(pointer: *mut c_void, size: usize) -> *mut c_void;
    }

    impl Quarantine {
        /// The execution is over: its memory may be used again.
        pub(crate) fn release(&self) {
            for pointer in self.freed.borrow_mut().drain(..) {
                // SAFETY: `keep` was called in place of this.
                unsafe { free_now(pointer) };
            }
        }

        /// Keeps memory that is freed; false if it cannot, because it is about to.
        fn keep(&self, pointer: *mut c_void) -> bool {
            let Ok(mut freed) = self.freed.try_borrow_mut() else { return false };
            freed.push(pointer);
            true
        }
    }

    /// The C library's `free`, but later where a model runs.
    ///
    /// # Safety
    /// As there.
    #[unsafe(no_mangle)]
    pub unsafe extern "C" fn free(pointer: *mut c_void) {
        let kept = !pointer.is_null() && current().is_some_and(|runtime| runtime.quarantine.keep(pointer));
        if !kept {
            // SAFETY: the caller's.
            unsafe { free_now(pointer) };
        }
    }

    /// The C library's `realloc`, but never in place where a model runs.
    ///
    /// # Safety
    /// As there.
    #[unsafe(no_mangle)]
    pub unsafe extern "C" fn realloc(pointer: *mut c_void, size: usize) -> *mut c_void {
        if pointer.is_null() || size == 0 || current().is_none() {
            // SAFETY: the caller's.
            return unsafe { resize_now(pointer, size) };
        }
        // SAFETY: the old memory is the caller's, and the new memory has as many bytes as are copied.
        unsafe {
            let new = libc::malloc(size);
            if !new.is_null() {
                let old = libc::malloc_usable_size(pointer);
                ptr::copy_nonoverlapping(pointer.cast::<u8>(), new.cast::<u8>(), old.min(size));
                free(pointer);
            }
            new
        }
    }
}

#[cfg(not(all(feature = "quarantine", target_os = "linux", target_env = "gnu", not(target_feature = "crt-static"))))]
impl Quarantine {
    /// Nothing was kept.
    pub(crate) fn release(&self) {
        debug_assert!(self.freed.borrow().is_empty());
    }
}
