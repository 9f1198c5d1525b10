//! What an [`Arc`] is made from, and what it does as its value does.

use std::any::Any;
use std::borrow::Cow;
use std::ffi::{CStr, CString, OsStr, OsString};
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync as outside;

use super::Arc;

impl<T: Default> Default for Arc<T> {
    #[track_caller]
    fn default() -> Self {
        Self::new(T::default())
    }
}

impl<T> From<T> for Arc<T> {
    #[track_caller]
    fn from(value: T) -> Self {
        Self::new(value)
    }
}

impl<T: ?Sized> From<outside::Arc<T>> for Arc<T> {
    #[track_caller]
    fn from(arc: outside::Arc<T>) -> Self {
        Self::from_std(arc)
    }
}

impl<T: ?Sized> From<Box<T>> for Arc<T> {
    #[track_caller]
    fn from(value: Box<T>) -> Self {
        Self::from_std(value.into())
    }
}

/// Conversions that the standard library's `Arc` has.
macro_rules! from {
    ($([$($parameter:tt)*] $from:ty => $to:ty;)*) => {$(
        impl<$($parameter)*> From<$from> for Arc<$to> {
            #[track_caller]
            fn from(value: $from) -> Self {
                Self::from_std(value.into())
            }
        }
    )*};
}

from! {
    [T] Vec<T> => [T];
    [T: Clone] &[T] => [T];
    [T: Clone] &mut [T] => [T];
    [T, const N: usize] [T; N] => [T];
    [] &str => str;
    [] &mut str => str;
    [] String => str;
    [] &CStr => CStr;
    [] &mut CStr => CStr;
    [] CString => CStr;
    [] &OsStr => OsStr;
    [] &mut OsStr => OsStr;
    [] OsString => OsStr;
    [] &Path => Path;
    [] &mut Path => Path;
    [] PathBuf => Path;
}

impl From<Arc<str>> for Arc<[u8]> {
    fn from(text: Arc<str>) -> Self {
        // SAFETY: the pointer comes from `into_raw`, and a text is made of bytes.
        unsafe { Self::from_raw(Arc::into_raw(text) as *const [u8]) }
    }
}

impl<T, const N: usize> TryFrom<Arc<[T]>> for Arc<[T; N]> {
    type Error = Arc<[T]>;

    fn try_from(values: Arc<[T]>) -> Result<Self, Arc<[T]>> {
        if values.len() != N {
            return Err(values);
        }
        // SAFETY: the pointer comes from `into_raw`, and there are `N` values.
        Ok(unsafe { Self::from_raw(Arc::into_raw(values).cast()) })
    }
}

impl<'a, B: ?Sized + ToOwned> From<Cow<'a, B>> for Arc<B>
where
    Self: From<&'a B> + From<B::Owned>,
{
    #[track_caller]
    fn from(value: Cow<'a, B>) -> Self {
        match value {
            Cow::Borrowed(value) => Self::from(value),
            Cow::Owned(value) => Self::from(value),
        }
    }
}

macro_rules! empty {
    ($([$($parameter:tt)*] $of:ty;)*) => {$(
        impl<$($parameter)*> Default for Arc<$of> {
            fn default() -> Self {
                // All empty ones may be the same, older than the execution.
                Self::wrap(outside::Arc::default())
            }
        }
    )*};
}

empty! {
    [] str;
    [] CStr;
    [T] [T];
}

impl Arc<dyn Any + Send + Sync> {
    /// The value as what it is, if that is a `T`.
    pub fn downcast<T: Any + Send + Sync>(self) -> Result<Arc<T>, Self> {
        if !(*self).is::<T>() {
            return Err(self);
        }
        let pointer = Self::into_raw(self).cast::<T>();
        // SAFETY: the pointer comes from `into_raw`, and the value is a `T`.
        Ok(unsafe { Arc::from_raw(pointer) })
    }
}

impl<T: ?Sized + std::error::Error> std::error::Error for Arc<T> {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        (**self).source()
    }
}

impl<T> FromIterator<T> for Arc<[T]> {
    #[track_caller]
    fn from_iter<I: IntoIterator<Item = T>>(values: I) -> Self {
        Self::from_std(values.into_iter().collect())
    }
}

impl<T: ?Sized + fmt::Debug> fmt::Debug for Arc<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&**self, f)
    }
}

impl<T: ?Sized + fmt::Display> fmt::Display for Arc<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&**self, f)
    }
}

impl<T: ?Sized> fmt::Pointer for Arc<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Pointer::fmt(&*self.0, f)
    }
}

impl<T: ?Sized + PartialEq> PartialEq for Arc<T> {
    fn eq(&self, other: &Self) -> bool {
        **self == **other
    }
}

impl<T: ?Sized + Eq> Eq for Arc<T> {}

impl<T: ?Sized + PartialOrd> PartialOrd for Arc<T> {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        (**self).partial_cmp(&**other)
    }
}

impl<T: ?Sized + Ord> Ord for Arc<T> {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        (**self).cmp(&**other)
    }
}

impl<T: ?Sized + std::hash::Hash> std::hash::Hash for Arc<T> {
    fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
        (**self).hash(state);
    }
}
