//! A lock whose token is here costs no memory once it is known.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails loudly")]

mod support;

use std::pin::pin;
use std::task::{Context, Poll, Waker};

use support::group;

#[tokio::test]
async fn acquiring_and_releasing_a_known_lock_allocates_nothing() {
    let nodes = group(1, "naimi-trehel").await;
    let take = || {
        let mut request = pin!(nodes[0].lock("x").into_future());
        let mut context = Context::from_waker(Waker::noop());
        match request.as_mut().poll(&mut context) {
            Poll::Ready(guard) => drop(guard.unwrap()),
            Poll::Pending => panic!("the token is here"),
        }
    };
    take();
    let counted = allocation_counter::measure(|| (0..100).for_each(|_| take()));
    assert_eq!(counted.count_total, 0);
}
