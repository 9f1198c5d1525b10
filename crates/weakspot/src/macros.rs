//! `thread_local!` and `lazy_static!`, as in std and in the crate `lazy_static`.

/// Declares thread-local values: one for each thread of the model. Mirrors [`std::thread_local!`].
///
/// ```
/// use std::cell::Cell;
///
/// weakspot::thread_local! {
///     static COUNT: Cell<u32> = Cell::new(0);
/// }
///
/// weakspot::model(|| {
///     COUNT.set(1);
///     let other = weakspot::thread::spawn(|| COUNT.get());
///     assert_eq!(other.join().unwrap(), 0);
///     assert_eq!(COUNT.get(), 1);
/// });
/// ```
#[macro_export]
macro_rules! thread_local {
    () => {};
    ($(#[$attribute:meta])* $visibility:vis static $name:ident: $type:ty = $init:expr; $($rest:tt)*) => {
        $crate::thread_local!($(#[$attribute])* $visibility static $name: $type = $init);
        $crate::thread_local!($($rest)*);
    };
    ($(#[$attribute:meta])* $visibility:vis static $name:ident: $type:ty = $init:expr) => {
        $(#[$attribute])*
        $visibility static $name: $crate::thread::LocalKey<$type> = {
            fn __init() -> $type {
                $init
            }
            fn __outside(
                f: &mut dyn ::core::ops::FnMut(&$type),
            ) -> ::core::result::Result<(), $crate::rt::standard::thread::AccessError> {
                $crate::rt::standard::thread_local! {
                    static OUTSIDE: $type = __init();
                }
                OUTSIDE.try_with(|value| f(value))
            }
            $crate::thread::LocalKey::new(__init, __outside)
        };
    };
}

/// Declares statics that are made on first use: once in each execution of a model. Mirrors the crate `lazy_static`.
///
/// ```
/// use weakspot::sync::Mutex;
///
/// weakspot::lazy_static! {
///     static ref NAMES: Mutex<Vec<String>> = Mutex::new(Vec::new());
/// }
///
/// weakspot::model(|| {
///     assert!(NAMES.lock().unwrap().is_empty());
///     NAMES.lock().unwrap().push("one".to_owned());
/// });
/// ```
#[macro_export]
macro_rules! lazy_static {
    ($(#[$attribute:meta])* static ref $name:ident: $type:ty = $init:expr; $($rest:tt)*) => {
        $crate::__lazy_static!($(#[$attribute])* () $name, $type, $init);
        $crate::lazy_static!($($rest)*);
    };
    ($(#[$attribute:meta])* pub static ref $name:ident: $type:ty = $init:expr; $($rest:tt)*) => {
        $crate::__lazy_static!($(#[$attribute])* (pub) $name, $type, $init);
        $crate::lazy_static!($($rest)*);
    };
    ($(#[$attribute:meta])* pub($($where:tt)+) static ref $name:ident: $type:ty = $init:expr; $($rest:tt)*) => {
        $crate::__lazy_static!($(#[$attribute])* (pub($($where)+)) $name, $type, $init);
        $crate::lazy_static!($($rest)*);
    };
    () => {};
}

/// One declaration of `lazy_static!`.
#[macro_export]
#[doc(hidden)]
macro_rules! __lazy_static {
    ($(#[$attribute:meta])* ($($visibility:tt)*) $name:ident, $type:ty, $init:expr) => {
        #[allow(missing_copy_implementations, missing_docs, non_camel_case_types, dead_code)]
        $(#[$attribute])*
        $($visibility)* struct $name {
            __private_field: (),
        }
        #[doc(hidden)]
        #[allow(non_upper_case_globals)]
        $($visibility)* static $name: $name = $name { __private_field: () };
        impl ::core::ops::Deref for $name {
            type Target = $type;
            #[track_caller]
            fn deref(&self) -> &$type {
                fn __init() -> $type {
                    $init
                }
                // loom asks for no `Sync`. Which of the two constants is meant depends on whether the type has it.
                struct __Of<T>(::core::marker::PhantomData<T>);
                #[allow(dead_code)]
                trait __Otherwise<T> {
                    const USERS: $crate::lazy_static::Users<T> = $crate::lazy_static::Users::OF_A_MODEL;
                }
                impl<T> __Otherwise<T> for __Of<T> {}
                #[allow(dead_code)]
                impl<T: ::core::marker::Sync> __Of<T> {
                    const USERS: $crate::lazy_static::Users<T> = $crate::lazy_static::Users::ALL;
                }
                static LAZY: $crate::lazy_static::Lazy<$type> =
                    $crate::lazy_static::Lazy::new(__init, &<__Of<$type>>::USERS);
                LAZY.get()
            }
        }
    };
}
