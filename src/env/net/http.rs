//! A connection as hyper wants it.

use super::conn::Conn;
use hyper::rt::{Read, ReadBufCursor, Write};
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

impl Read for Conn {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        mut cursor: ReadBufCursor<'_>,
    ) -> Poll<io::Result<()>> {
        // SAFETY: glommio hands this memory to `recv` and reads none of it; the cursor advances
        // only over bytes that the kernel has written.
        unsafe {
            let spare = cursor.as_mut();
            let bytes = std::slice::from_raw_parts_mut(spare.as_mut_ptr().cast(), spare.len());
            let count = ready!(self.shared().poll_read(context, bytes))?;
            cursor.advance(count);
        }
        Poll::Ready(Ok(()))
    }
}

impl Write for Conn {
    fn poll_write(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.shared().poll_write(context, bytes)
    }

    fn poll_flush(self: Pin<&mut Self>, _context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _context: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.shared().shutdown(libc::SHUT_WR);
        Poll::Ready(Ok(()))
    }
}
