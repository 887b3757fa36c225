//! The event queue: what happens next.
//!
//! Events come out by time, and those of one time in the order in which they were put in. Time
//! never goes back, so a radix heap serves: an event lies in the bucket of the highest bit in which
//! its time differs from now, and moves to a lower bucket when now comes closer. Every event moves
//! at most once a bit, however many there are. All events of one time always share a bucket and
//! keep their order when they move; that is why no sequence number is needed, and why this is
//! written here: the published radix heaps and binary heaps give no order among equals.

use std::collections::VecDeque;

use crate::time::Time;

/// Bucket 0 holds what happens now; bucket b what differs from now in bit b - 1 at the highest.
const BUCKETS: usize = u64::BITS as usize + 1;

/// An emptied bucket larger than this gives its memory back.
const KEPT_CAPACITY: usize = 4096;

/// Events in the order of time, then of insertion.
#[derive(Debug)]
pub struct EventQueue<E> {
    buckets: [VecDeque<(Time, E)>; BUCKETS],
    /// Bit b - 1 is set if bucket b is not empty.
    occupied: u64,
    now: Time,
    len: usize,
    /// How many events were put in for now since now is now.
    caused_now: u64,
}

impl<E> Default for EventQueue<E> {
    fn default() -> Self {
        let buckets = std::array::from_fn(|_| VecDeque::new());
        EventQueue { buckets, occupied: 0, now: Time::ZERO, len: 0, caused_now: 0 }
    }
}

impl<E> EventQueue<E> {
    /// The time of the event that came out last.
    pub fn now(&self) -> Time {
        self.now
    }

    /// How many events are pending.
    pub fn len(&self) -> usize {
        self.len
    }

    /// How many events were put in that happen at the time at which they were put in, since time
    /// last advanced. If this grows without end, time does not advance.
    pub fn caused_now(&self) -> u64 {
        self.caused_now
    }

    /// Whether nothing is pending.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Puts an event in. Its time must not be before now.
    #[inline]
    pub fn push(&mut self, at: Time, event: E) {
        debug_assert!(at >= self.now, "an event in the past");
        self.len += 1;
        self.caused_now += u64::from(at == self.now);
        self.place(at, event);
    }

    /// Puts an event in that happens now, before everything else.
    pub fn push_first(&mut self, event: E) {
        self.len += 1;
        self.caused_now += 1;
        self.buckets[0].push_front((self.now, event));
    }

    #[inline]
    fn place(&mut self, at: Time, event: E) {
        let bucket = (u64::BITS - (at.0 ^ self.now.0).leading_zeros()) as usize;
        self.buckets[bucket].push_back((at, event));
        if bucket > 0 {
            self.occupied |= 1 << (bucket - 1);
        }
    }

    /// Takes the next event out and moves now to its time.
    #[inline]
    pub fn pop(&mut self) -> Option<(Time, E)> {
        if self.buckets[0].is_empty() {
            self.advance()?;
        }
        self.len -= 1;
        self.buckets[0].pop_front()
    }

    /// Moves now to the time of the next event, and all events of that time to bucket 0.
    fn advance(&mut self) -> Option<()> {
        if self.occupied == 0 {
            return None;
        }
        let bucket = self.occupied.trailing_zeros() as usize + 1;
        self.occupied &= !(1 << (bucket - 1));
        let mut moving = std::mem::take(&mut self.buckets[bucket]);
        let times = || moving.iter().map(|(at, _)| *at);
        let (first, last) = times()
            .fold((Time(u64::MAX), Time::ZERO), |(first, last), at| (first.min(at), last.max(at)));
        self.now = first;
        self.caused_now = 0;
        if first == last {
            std::mem::swap(&mut self.buckets[0], &mut moving);
        } else {
            for (at, event) in moving.drain(..) {
                self.place(at, event);
            }
        }
        if moving.capacity() <= KEPT_CAPACITY {
            self.buckets[bucket] = moving;
        }
        Some(())
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;

    #[test]
    fn an_event_that_is_put_first_comes_out_before_those_of_its_time() {
        let mut queue = EventQueue::default();
        for event in ["first", "second"] {
            queue.push(Time(3), event);
        }
        assert_eq!(queue.pop(), Some((Time(3), "first")));
        queue.push_first("between");
        assert_eq!(queue.len(), 2);
        assert_eq!(queue.pop(), Some((Time(3), "between")));
        assert_eq!(queue.pop(), Some((Time(3), "second")));
        queue.push_first("last");
        assert_eq!(queue.pop(), Some((Time(3), "last")));
        assert!(queue.is_empty());
    }

    #[test]
    fn events_that_happen_at_the_time_that_caused_them_are_counted_until_time_advances() {
        let mut queue = EventQueue::default();
        queue.push(Time(5), "later");
        queue.push(Time(5), "later");
        assert_eq!((queue.pop(), queue.caused_now()), (Some((Time(5), "later")), 0));
        queue.push(Time(5), "now");
        queue.push_first("first");
        queue.push(Time(6), "later");
        assert_eq!(queue.caused_now(), 2);
        while queue.pop().is_some_and(|(at, _)| at < Time(6)) {}
        assert_eq!(queue.caused_now(), 0);
    }

    proptest! {
        #[test]
        fn events_come_out_by_time_then_by_insertion(
            steps in prop::collection::vec((0u64..3, 0u64..5000, any::<bool>()), 1..400)
        ) {
            let mut queue = EventQueue::default();
            let mut model = BTreeMap::new();
            for (number, (scale, ahead, take)) in steps.into_iter().enumerate() {
                let at = Time(queue.now().0 + ahead * 1000u64.pow(scale as u32));
                queue.push(at, number);
                model.insert((at, number), ());
                if take {
                    let (expected, ()) = model.pop_first().unwrap();
                    prop_assert_eq!(queue.pop(), Some(expected));
                }
                prop_assert_eq!(queue.len(), model.len());
            }
            while let Some((expected, ())) = model.pop_first() {
                prop_assert_eq!(queue.pop(), Some(expected));
            }
            prop_assert!(queue.is_empty() && queue.pop().is_none());
        }
    }
}
