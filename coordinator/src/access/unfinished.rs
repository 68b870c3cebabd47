//! Messages that a caller has begun to send and not finished: they lie in memory until they are whole, so all that one
//! token has under way, over all its streams, is bounded.
//!
//! Only lengths are read here: the prefix of each gRPC message says where it ends.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::Bytes;
use http_body::{Body as HttpBody, Frame, SizeHint};
use tonic::Status;
use tonic::body::Body;

use crate::services::errors;

/// A gRPC message begins with a flag and its length.
const PREFIX_LEN: usize = 5;
/// When a refused caller may try again: what it has under way needs about that long.
const RETRY_AFTER: Duration = Duration::from_secs(1);

/// Bytes that one caller has under way.
#[derive(Debug, Default)]
pub(super) struct Unfinished(AtomicU64);

/// A request whose unfinished message counts against its caller; the one that goes over the bound ends with an error.
#[derive(Debug)]
pub(super) struct Counted {
    body: Body,
    caller: Arc<Unfinished>,
    bytes_max: u64,
    messages: Messages,
    /// What of the caller's count is this request's.
    held: u64,
}

impl Counted {
    /// Counts what `body` has under way against `caller`, who may have `bytes_max` in all.
    pub(super) fn new(body: Body, caller: Arc<Unfinished>, bytes_max: u64) -> Counted {
        Counted {
            body,
            caller,
            bytes_max,
            messages: Messages::default(),
            held: 0,
        }
    }

    fn hold(&mut self, bytes: u64) -> u64 {
        let before = self.caller.0.fetch_add(bytes, Ordering::Relaxed);
        let all = before + bytes - self.held;
        self.caller.0.fetch_sub(self.held, Ordering::Relaxed);
        self.held = bytes;
        all
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.hold(0);
    }
}

impl HttpBody for Counted {
    type Data = Bytes;
    type Error = Status;

    fn poll_frame(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Status>>> {
        let frame = ready!(Pin::new(&mut self.body).poll_frame(context));
        if let Some(Ok(frame)) = &frame
            && let Some(data) = frame.data_ref()
        {
            self.messages.pass(data);
            let unfinished = self.messages.unfinished();
            if self.hold(unfinished) > self.bytes_max {
                let message = format!(
                    "more than {} bytes of messages are half sent with this token: finish some before others are begun",
                    self.bytes_max
                );
                return Poll::Ready(Some(Err(errors::exhausted("UNFINISHED_BYTES", message, RETRY_AFTER))));
            }
        }
        Poll::Ready(frame)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

/// Where in its messages a request is.
#[derive(Debug, Default)]
struct Messages {
    prefix: [u8; PREFIX_LEN],
    /// Bytes of the message under way that have come, its prefix included.
    come: u64,
    /// Bytes of its payload that are still to come; 0 while its prefix is not whole.
    left: u64,
}

impl Messages {
    fn pass(&mut self, mut data: &[u8]) {
        while !data.is_empty() {
            let taken = if self.left > 0 {
                self.payload(data)
            } else {
                self.head(data)
            };
            data = &data[taken..];
        }
    }

    /// Takes what `data` has of the prefix.
    fn head(&mut self, data: &[u8]) -> usize {
        let begun = self.come as usize;
        let taken = data.len().min(PREFIX_LEN - begun);
        self.prefix[begun..begun + taken].copy_from_slice(&data[..taken]);
        self.come += taken as u64;
        if begun + taken == PREFIX_LEN {
            let [_, length @ ..] = self.prefix;
            self.left = u32::from_be_bytes(length).into();
            self.end_if_whole();
        }
        taken
    }

    /// Takes what `data` has of the payload.
    fn payload(&mut self, data: &[u8]) -> usize {
        let taken = self.left.min(data.len() as u64);
        self.left -= taken;
        self.come += taken;
        self.end_if_whole();
        taken as usize
    }

    fn end_if_whole(&mut self) {
        if self.left == 0 {
            self.come = 0;
        }
    }

    /// Bytes that have come of a message that is not whole.
    fn unfinished(&self) -> u64 {
        self.come
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn message(len: usize) -> Vec<u8> {
        let mut bytes = vec![0];
        bytes.extend((len as u32).to_be_bytes());
        bytes.resize(PREFIX_LEN + len, 7);
        bytes
    }

    proptest! {
        #[test]
        fn what_lies_behind_the_last_whole_message_is_unfinished_however_it_is_cut(
            lens in proptest::collection::vec(0usize..300, 0..8),
            cuts in proptest::collection::vec(1usize..200, 1..40),
        ) {
            let bytes: Vec<u8> = lens.iter().flat_map(|&len| message(len)).collect();
            let mut ends = vec![0];
            for len in lens {
                ends.push(ends[ends.len() - 1] + PREFIX_LEN + len);
            }
            let (mut messages, mut at) = (Messages::default(), 0);
            for cut in cuts.into_iter().cycle() {
                if at == bytes.len() {
                    break;
                }
                let next = bytes.len().min(at + cut);
                messages.pass(&bytes[at..next]);
                at = next;
                let whole = ends.iter().rev().find(|&&end| end <= at).copied().unwrap_or(0);
                prop_assert_eq!(messages.unfinished(), (at - whole) as u64);
            }
        }
    }

    #[test]
    fn callers_are_told_apart_and_what_ends_is_counted_no_more() {
        let (one, other) = (Arc::new(Unfinished::default()), Arc::new(Unfinished::default()));
        let counted = |caller: &Arc<Unfinished>| Counted::new(Body::empty(), Arc::clone(caller), 100);
        let (mut first, mut second, mut third) = (counted(&one), counted(&one), counted(&other));
        assert_eq!((first.hold(60), second.hold(30), third.hold(10)), (60, 90, 10));
        assert_eq!(second.hold(50), 110);
        drop(first);
        assert_eq!(second.hold(40), 40);
        drop(second);
        assert_eq!(
            (one.0.load(Ordering::Relaxed), other.0.load(Ordering::Relaxed)),
            (0, 10)
        );
    }
}
