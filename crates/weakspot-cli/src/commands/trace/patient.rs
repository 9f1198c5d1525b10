//! Input that may be long in coming: pipes and terminals.
//!
//! A read from a pipe returns when somebody has written to it, whatever the limits are and however often Ctrl-C is pressed. So
//! another thread reads, and here it is waited for only as long as the budget says. A thread that still waits when the
//! answer is there ends with the process.

use std::io::{self, Read};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::thread;
use std::time::Duration;

use weakspot_model::task::Budget;

/// Bytes that are read at once.
const CHUNK: usize = 1 << 17;

/// Chunks that may wait to be looked at.
const WAITING: usize = 4;

/// How long it takes at most until a limit is noticed.
const LOOK: Duration = Duration::from_millis(50);

/// Reads what another thread reads, and gives up with [`io::ErrorKind::TimedOut`] when the budget is exhausted.
#[derive(Debug)]
pub struct Patient<'b> {
    chunks: Receiver<io::Result<Vec<u8>>>,
    chunk: Vec<u8>,
    at: usize,
    budget: &'b Budget,
}

impl<'b> Patient<'b> {
    /// Begins to read from what `open` opens, which may take as long as reading.
    pub fn new<R: Read>(open: impl FnOnce() -> io::Result<R> + Send + 'static, budget: &'b Budget) -> Self {
        let (sender, chunks) = sync_channel(WAITING);
        thread::spawn(move || read_all(open, &sender));
        Self { chunks, chunk: Vec::new(), at: 0, budget }
    }
}

/// Sends what can be read, chunk by chunk, until it ends, or fails, or nobody wants it any more.
fn read_all<R: Read>(open: impl FnOnce() -> io::Result<R>, to: &SyncSender<io::Result<Vec<u8>>>) {
    let mut from = match open() {
        Ok(from) => from,
        Err(error) => {
            let _ = to.send(Err(error));
            return;
        }
    };
    loop {
        let mut chunk = vec![0; CHUNK];
        let read = from.read(&mut chunk).map(|length| {
            chunk.truncate(length);
            chunk
        });
        let goes_on = match &read {
            Ok(chunk) => !chunk.is_empty(),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(_) => false,
        };
        if to.send(read).is_err() || !goes_on {
            return;
        }
    }
}

impl Read for Patient<'_> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        while self.at == self.chunk.len() {
            match self.chunks.recv_timeout(LOOK) {
                Ok(chunk) => (self.chunk, self.at) = (chunk?, 0),
                Err(RecvTimeoutError::Disconnected) => return Ok(0),
                Err(RecvTimeoutError::Timeout) if self.budget.exhausted(0).is_some() => {
                    return Err(io::ErrorKind::TimedOut.into());
                }
                Err(RecvTimeoutError::Timeout) => {}
            }
        }
        let read = (&self.chunk[self.at..]).read(into)?;
        self.at += read;
        Ok(read)
    }
}
