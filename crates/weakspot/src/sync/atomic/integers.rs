//! Atomic integers.

use std::fmt;
use std::panic::Location;
use std::sync::atomic::{self as std_atomic, Ordering};

use super::core::{Access, check_failure_order, check_load_order, check_store_order, common_methods, lowest_bytes};
use crate::rt::slot::Slot;
use crate::rt::{self, Place, Runtime};

macro_rules! atomic_integer {
    ($name:ident, $value:ident, $unsigned:ident) => {
        #[doc = concat!("An atomic `", stringify!($value), "`.")]
        #[derive(Default)]
        pub struct $name {
            slot: Slot<std_atomic::AtomicU64>,
        }

        impl $name {
            /// An atomic with this value.
            #[allow(clippy::cast_lossless, reason = "some of the types are as large as the bits")]
            pub const fn new(value: $value) -> Self {
                Self { slot: Slot::new(std_atomic::AtomicU64::new(value as $unsigned as u64)) }
            }

            common_methods!(
                $value,
                Access<'a, std_atomic::AtomicU64>,
                std::convert::identity,
                rt::current,
                |value: $value| ToBits::to_bits(value as $unsigned),
                |bits: u64| bits as $value
            );

            /// The memory of the value.
            fn outside(&self) -> &std_atomic::$name {
                let value = lowest_bytes(self.slot.memory().as_ptr(), size_of::<$value>());
                // SAFETY: these are the bytes of the value, which is an integer. They live as long as the slot, and nobody
                // holds an exclusive reference to it.
                unsafe { &*value.cast() }
            }

            fn settled(&mut self) -> &mut $value {
                self.slot.settle();
                let value = lowest_bytes(self.slot.memory_mut().get_mut(), size_of::<$value>());
                // SAFETY: as above, and the slot is borrowed exclusively.
                unsafe { &mut *value.cast() }
            }

            atomic_integer!(@fetch $value, fetch_add, "Adds, wrapping around", |old, value| old.wrapping_add(value));
            atomic_integer!(@fetch $value, fetch_sub, "Subtracts, wrapping around", |old, value| old.wrapping_sub(value));
            atomic_integer!(@fetch $value, fetch_and, "Bitwise and", |old, value| old & value);
            atomic_integer!(@fetch $value, fetch_nand, "Bitwise not-and", |old, value| !(old & value));
            atomic_integer!(@fetch $value, fetch_or, "Bitwise or", |old, value| old | value);
            atomic_integer!(@fetch $value, fetch_xor, "Bitwise exclusive or", |old, value| old ^ value);
            atomic_integer!(@fetch $value, fetch_max, "The greater of both", |old, value| old.max(value));
            atomic_integer!(@fetch $value, fetch_min, "The smaller of both", |old, value| old.min(value));
        }

        impl From<$value> for $name {
            fn from(value: $value) -> Self {
                Self::new(value)
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Debug::fmt(&self.peek(), f)
            }
        }
    };
    (@fetch $value:ident, $method:ident, $does:literal, |$old:ident, $operand:ident| $new:expr) => {
        #[doc = concat!($does, "; returns the value before.")]
        #[track_caller]
        pub fn $method(&self, value: $value, order: Ordering) -> $value {
            match rt::current() {
                None => {
                    let $operand = value;
                    self.update_outside(move |$old: $value| Some($new))
                }
                Some(runtime) => {
                    let $operand = value;
                    self.modify(runtime, stringify!($method), order, Location::caller(), move |$old: $value| $new)
                }
            }
        }
    };
}

/// Widening without sign, whatever the width.
trait ToBits {
    fn to_bits(self) -> u64;
}

macro_rules! widen {
    ($($unsigned:ident)*) => {$(
        impl ToBits for $unsigned {
            #[inline]
            #[allow(clippy::cast_lossless, reason = "one of the types is u64, one is usize")]
            fn to_bits(self) -> u64 {
                self as u64
            }
        }
    )*};
}
widen!(u8 u16 u32 u64 usize);

atomic_integer!(AtomicI8, i8, u8);
atomic_integer!(AtomicI16, i16, u16);
atomic_integer!(AtomicI32, i32, u32);
atomic_integer!(AtomicI64, i64, u64);
atomic_integer!(AtomicIsize, isize, usize);
atomic_integer!(AtomicU8, u8, u8);
atomic_integer!(AtomicU16, u16, u16);
atomic_integer!(AtomicU32, u32, u32);
atomic_integer!(AtomicU64, u64, u64);
atomic_integer!(AtomicUsize, usize, usize);
