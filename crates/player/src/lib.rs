//! A run as one page that needs nothing else: its steps, what every node knows after each of them, and,
//! where the run is one of a mutant, what should have happened.
//!
//! [`record()`] runs a trace again and keeps what a page shows; [`page()`] makes the HTML file of it.
//! [`Contacts`] is a run on an evolving graph, and [`contacts_page()`] its page.
//! [`asset()`] has the parts of that page for others that show runs.

mod contacts;
mod page;
mod record;
mod rules;

pub use contacts::{Contacts, Entry, Instant, Label, MOST_INSTANTS};
pub use page::{asset, contacts_page, page};
pub use record::{
    MOST_NODES, MOST_STEPS, PlayerError, Recording, Rest, Window, check_nodes, record,
};
