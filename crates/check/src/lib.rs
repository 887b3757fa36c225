//! Exhaustive exploration of the algorithms: every order in which the events of a small group can
//! happen.
//!
//! The checker drives the same algorithm values as the simulator and the daemon do. A [`World`] is
//! a whole group at one instant; [`GroupModel`] says what can happen next and what has to hold
//! ([properties](catraca_core::property)); [`check`] goes through every world that can be reached and reports the shortest
//! way to a broken property as a [trace](catraca_trace::Trace) that can be replayed and drawn.
//!
//! ```
//! use catraca_algorithms::Spec;
//! use catraca_check::{Options, Verdict, check};
//! use catraca_core::property;
//!
//! let spec = Spec::new("ricart-agrawala", 2);
//! let report = check(&spec, &Options::of(&spec)?, &mut |_| {})?;
//! assert_eq!(report.verdict, Verdict::Holds);
//! assert_eq!((report.states, report.depth), (179, 16));
//!
//! let report = check(&spec.clone().broken("no-tie-break"), &Options::of(&spec)?, &mut |_| {})?;
//! let Verdict::Violated(violation) = report.verdict else { unreachable!() };
//! assert_eq!(violation.property, property::MUTUAL_EXCLUSION);
//! assert_eq!(violation.what, "nodes 0 and 1 are inside at the same time");
//! assert_eq!(violation.trace.events.len(), 6);
//! # Ok::<(), catraca_algorithms::SpecError>(())
//! ```
//!
//! [`group`] explores whole members in the same way, the values that the daemon steps, with the clients
//! of each: what stands between a client and an algorithm, which alone knows one requester per node.
//! [`views`] explores groups of them that change: with leases, a registry, and a member that fails.
//!
//! [`position`] is a run whose steps somebody chooses one by one, and [`outlook`](outlook()) says what can
//! still happen from there.
//!
//! # Decisions
//!
//! **A model of its own.** [`GroupModel`] implements [`stateright::Model`] directly, not through
//! stateright's actors. The algorithms already are state machines with effects, and the world can
//! then hold what actors have no place for: the phase of each application, the requests it will
//! still make, the last fence, the crashes still to come.
//!
//! **A search of its own.** stateright's parallel search works through its queue in an order that
//! depends on the threads, so the counterexample it finds is not always the shortest, nor the same
//! one twice; it also keeps the whole path of every state that waits. The search here goes level by
//! level and decides what is new in the order of a plain queue, so counts, depth and counterexample
//! are the same for any number of threads, and the counterexample has as few steps as possible. It
//! keeps eight bytes a state for the way back. stateright's explorer remains the second opinion: a
//! test has both count the states of the same models.
//!
//! **Fingerprints.** Of a state that has been expanded only 64 bits are kept, a keyed hash. If two
//! states share one, the second is not explored, and what only it leads to is missed. Among n states
//! there are n(n-1)/2 pairs, each of which shares one with probability 2⁻⁶⁴, so the probability that any
//! does is about n²/2⁶⁵: 10¹⁴/2⁶⁵ = 2.7·10⁻⁶ for 10⁷ states, 10¹⁸/2⁶⁵ = 2.7·10⁻² for 10⁹. The keys are
//! fixed, so a run can be repeated exactly, and would miss the same states again.
//!
//! **Waiting.** 'Nobody waits for ever' is broken by a world in which somebody waits and nothing can
//! happen any more, and by a cycle: a run that comes back to the same world again and again while
//! somebody waits, under weak fairness. That is, what stays possible happens some time: a message
//! arrives, a timer runs out, whoever is inside leaves, the detector tells of a crash. Nobody has to
//! ask or to crash. The number of worlds is finite, so every run without end contains a cycle; since
//! requests and crashes are limited, it consists of deliveries and timers alone, with nobody inside. A
//! strongly connected component of such steps has a fair run if and only if whatever is possible in
//! all of its worlds happens on one of its steps. The components are looked for once every world
//! has been seen, from the worlds to which a step led back; where no step does, and so in most
//! algorithms, that costs nothing. An exploration that a limit has ended says nothing of cycles.
//!
//! **Timers.** A timer that is set can run out at any moment, whatever its duration: an algorithm
//! has to be safe however slow its nodes and channels are.
//!
//! **Crashes.** Any node may crash between any two steps and in the middle of any step, up to a given
//! number of nodes. What was on its way to it is lost, what it has sent still arrives, and it is no
//! longer inside. A node that crashes in the middle of a step has sent some of the messages of that
//! step: every part of them is explored, because the links to different nodes are independent; on a
//! FIFO network a message leaves after the earlier ones to the same node. Of a step with more than five
//! messages it is every part from the first one on. Every other
//! node is told by the detector, each at any later step: the detector may be as slow as it likes, but
//! it is never wrong. 'Nobody waits for ever' speaks of the living. An algorithm's own invariant
//! speaks of a whole group, so it is not looked at once somebody has crashed; the token may be lost
//! then, but not doubled.

mod choice;
mod claims;
mod counterexample;
mod explore;
pub mod group;
mod jobs;
mod memory;
mod model;
mod network;
mod outlook;
mod position;
mod property;
mod search;
mod survey;
pub mod views;
mod walk;
mod world;

pub use choice::{Choice, ChoiceError, What};
pub use claims::Claims;
pub use explore::{Limits, Options, Progress, Report, Verdict, Violation, check, check_group};
pub use model::{GroupModel, Move};
pub use network::Network;
pub use outlook::{Bound, Breach, Effort, Outlook, outlook};
pub use position::{Breaks, OnTheWay, Position, Possible, position};
pub use world::{Action, Application, Fault, Suspicion, Taken, World};
