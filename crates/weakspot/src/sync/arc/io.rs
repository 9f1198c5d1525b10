//! Shared files: what an [`Arc`] lets one do with the file that it owns.

use std::fs::File;
use std::io::{IoSlice, IoSliceMut, Read, Result, Seek, SeekFrom, Write};

use super::Arc;

impl Read for Arc<File> {
    fn read(&mut self, bytes: &mut [u8]) -> Result<usize> {
        (&**self).read(bytes)
    }

    fn read_vectored(&mut self, slices: &mut [IoSliceMut<'_>]) -> Result<usize> {
        (&**self).read_vectored(slices)
    }

    fn read_to_end(&mut self, bytes: &mut Vec<u8>) -> Result<usize> {
        (&**self).read_to_end(bytes)
    }

    fn read_to_string(&mut self, text: &mut String) -> Result<usize> {
        (&**self).read_to_string(text)
    }
}

impl Write for Arc<File> {
    fn write(&mut self, bytes: &[u8]) -> Result<usize> {
        (&**self).write(bytes)
    }

    fn write_vectored(&mut self, slices: &[IoSlice<'_>]) -> Result<usize> {
        (&**self).write_vectored(slices)
    }

    fn flush(&mut self) -> Result<()> {
        (&**self).flush()
    }
}

impl Seek for Arc<File> {
    fn seek(&mut self, to: SeekFrom) -> Result<u64> {
        (&**self).seek(to)
    }
}

#[cfg(unix)]
mod descriptors {
    use std::os::fd::{AsFd, AsRawFd, BorrowedFd, RawFd};

    use super::Arc;

    impl<T: AsFd + ?Sized> AsFd for Arc<T> {
        fn as_fd(&self) -> BorrowedFd<'_> {
            (**self).as_fd()
        }
    }

    impl<T: AsRawFd> AsRawFd for Arc<T> {
        fn as_raw_fd(&self) -> RawFd {
            (**self).as_raw_fd()
        }
    }
}

#[cfg(windows)]
mod handles {
    use std::os::windows::io::{AsHandle, AsSocket, BorrowedHandle, BorrowedSocket};

    use super::Arc;

    impl<T: AsHandle + ?Sized> AsHandle for Arc<T> {
        fn as_handle(&self) -> BorrowedHandle<'_> {
            (**self).as_handle()
        }
    }

    impl<T: AsSocket> AsSocket for Arc<T> {
        fn as_socket(&self) -> BorrowedSocket<'_> {
            (**self).as_socket()
        }
    }
}
