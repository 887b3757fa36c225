//! The interactive lab: a page whose user is the scheduler.
//!
//! The server keeps nothing. A state is a [`Link`]: a group, and the steps that it has taken. The page sends
//! the link, the server takes the steps on the checker's world and answers with what every node knows and
//! what can happen next ([`state`]), or with what can still happen from there ([`explore`]). So a link
//! reproduces a state, undo is a shorter link, and a server that is restarted has forgotten nothing.
//!
//! ```
//! use catraca_explorer::{Link, state};
//!
//! let link: Link = "algorithm=naimi-trehel&nodes=2&steps=a1.m1-0".parse()?;
//! let state = state(&link)?;
//! assert_eq!(state["possible"][1]["words"], "token 0 from 0 arrives at 1");
//! # Ok::<(), catraca_explorer::Refusal>(())
//! ```

mod answer;
mod assets;
mod catalogue;
mod host;
mod link;
mod server;

pub use answer::{MOST_SECONDS, MOST_STATES, Question, explore, state};
pub use catalogue::catalogue;
pub use link::{LONGEST_LINK, Link, MOST_NODES, MOST_STEPS, Refusal};
pub use server::serve;
