//! What members ask each other, beside what their algorithms say.
//!
//! An algorithm has no word for "no"; it grants, sooner or later. So whoever does not want to wait
//! for others asks the algorithm and, beside it, the other members whether somebody there is inside.
//! Only somebody who is inside counts: a member may have the token of a lock that is free. Lists of
//! the whole group are made in the same way.

use alloc::boxed::Box;
use alloc::string::String;
use alloc::vec::Vec;
use core::time::Duration;

use serde::{Deserialize, Serialize};

use crate::anatomy::Anatomy;
use crate::driver::StepMessage;
use crate::durable::HoldId;
use crate::force::Order;
use crate::listing::{Page, Query};
use crate::membership::ViewMessage;
use crate::refusal::Refusal;
use crate::timed::{Operation, TimedCopy, TimedHold, Which};
use crate::view::Epoch;

/// A member that does not answer in this time does not answer.
pub(crate) const ANSWER_TIME: Duration = Duration::from_secs(2);

/// Everything that one member sends another.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum PeerMessage<'a> {
    /// Of the algorithm that guards a lock.
    #[serde(borrow)]
    Step(StepMessage<'a>),
    /// About a view.
    View(ViewMessage),
    /// Of the failure detector.
    Detector {
        /// The view that it belongs to.
        epoch: Epoch,
        /// What the detector says.
        #[serde(borrow)]
        body: &'a [u8],
    },
    /// What the driver of a member tells that of another; members have nothing to do with it.
    Aside(#[serde(borrow)] &'a [u8]),
    /// A question.
    Ask {
        /// The view that it belongs to.
        epoch: Epoch,
        /// The asker's number for it.
        number: u64,
        /// What is asked.
        question: Question,
    },
    /// The answer to a question.
    Answer {
        /// The view that it belongs to.
        epoch: Epoch,
        /// The asker's number for the question.
        number: u64,
        /// What is answered.
        answer: Answer,
    },
}

/// A question to another member.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Question {
    /// Whether a client there is inside one of these locks, each with one permit.
    IsHeld(Vec<String>),
    /// Who holds and who waits there.
    List(Query),
    /// The newest fence of this lock, of which there are so many permits.
    NewestFence(String, u32),
    /// What is to be done with a timed hold, if it is there.
    Timed(Which, Operation),
    /// What whoever administers the group wants to be done there.
    Order(Order),
    /// To remember a timed hold of the sender.
    Remember(Box<TimedCopy>),
    /// To remember it no more.
    Forget(HoldId),
    /// What is known there of the locks of this name.
    Anatomy(String),
    /// Which members can be reached from there.
    Links,
}

/// An answer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Answer {
    /// To [`Question::IsHeld`].
    IsHeld(bool),
    /// To [`Question::List`].
    List(Page),
    /// To [`Question::NewestFence`]: nothing if nobody was inside there since the view began.
    NewestFence(Option<u64>),
    /// To [`Question::Timed`].
    Timed(Result<Box<TimedHold>, Refusal>),
    /// To [`Question::Order`]: it is done, or there was nothing to do.
    Obeyed(Result<bool, Refusal>),
    /// To [`Question::Remember`]: whether there is room for it.
    Remembered(bool),
    /// To [`Question::Forget`].
    Forgotten,
    /// To [`Question::Anatomy`].
    Anatomy(Box<Anatomy>),
    /// To [`Question::Links`]: of every member of the view, by its place.
    Links(Vec<bool>),
}
