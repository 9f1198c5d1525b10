//! Atomic integers.

use std::fmt;
use std::panic::Location;
use std::sync::atomic::{self as std_atomic, Ordering};

use super::core::{Access, Memory, check_failure_order, common_methods};
use crate::rt::objects::Stamp;
use crate::rt::{self, Place, Runtime};

macro_rules! atomic_integer {
    ($name:ident, $value:ident, $unsigned:ident) => {
        #[doc = concat!("An atomic `", stringify!($value), "`.")]
        #[derive(Default)]
        pub struct $name {
            value: std_atomic::$name,
            stamp: Stamp,
        }

        impl Memory for std_atomic::$name {
            #[inline]
            fn get(&self) -> u64 {
                ToBits::to_bits(self.load(Ordering::Relaxed) as $unsigned)
            }

            #[inline]
            fn set(&self, bits: u64) {
                self.store(bits as $value, Ordering::Relaxed);
            }
        }

        impl $name {
            /// An atomic with this value.
            pub const fn new(value: $value) -> Self {
                Self { value: std_atomic::$name::new(value), stamp: Stamp::new() }
            }

            common_methods!(
                $value,
                Access<'a, std_atomic::$name>,
                std::convert::identity,
                rt::current,
                |value: $value| ToBits::to_bits(value as $unsigned),
                |bits: u64| bits as $value
            );

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
                fmt::Debug::fmt(&self.value, f)
            }
        }
    };
    (@fetch $value:ident, $method:ident, $does:literal, |$old:ident, $operand:ident| $new:expr) => {
        #[doc = concat!($does, "; returns the value before.")]
        #[track_caller]
        pub fn $method(&self, value: $value, order: Ordering) -> $value {
            match rt::current() {
                None => {
                    self.stamp.written_outside();
                    self.value.$method(value, order)
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
