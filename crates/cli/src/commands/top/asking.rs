//! What `catraca top` asks a node, and the task that asks it.

use std::time::Duration;

use catraca_client::protocol::ForcedHold;
use catraca_client::{
    ClientError, Connection, Credentials, Line, LineKey, Nodes, Query, Selection, Status,
};
use tokio::sync::{mpsc, watch};
use tokio::time::{Instant, sleep};

use crate::commands::locks::printable;
use crate::service::administrator;

/// From one look to the next.
const PERIOD: Duration = Duration::from_secs(1);
/// A node with very many locks makes each page slowly: no look takes more of its time than this and the
/// page that has begun.
const BUDGET: Duration = Duration::from_millis(150);
/// The most lines of a look.
const MOST_LINES: usize = 5000;

/// What is to be looked at.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct LookRequest {
    /// The node to ask, and those to ask if it does not answer.
    pub(super) nodes: Vec<String>,
    /// Which locks.
    pub(super) names: Selection,
    /// After which line to begin; nothing for the first one.
    pub(super) after: Option<LineKey>,
    /// A lock of which everything is to be told.
    pub(super) inspected: Option<String>,
    /// Nothing, until something else is wished.
    pub(super) is_paused: bool,
}

/// What a look has found.
#[derive(Clone, Debug)]
pub(super) struct Sample {
    /// Which node has answered.
    pub(super) address: String,
    /// How it is doing.
    pub(super) status: Status,
    /// Who holds and who waits.
    pub(super) locks: Listing,
    /// The same of the lock that is inspected.
    pub(super) inspected: Option<Listing>,
}

/// Some lines of a list.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Listing {
    /// In the order of names, holders first.
    pub(super) lines: Vec<Line>,
    /// Whether there are more after these.
    pub(super) more: bool,
    /// Members that did not answer.
    pub(super) silent: Vec<String>,
}

/// Holds that are to end: only those that were seen, whoever has the lock by then.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Meant {
    pub(super) name: String,
    pub(super) fences: Vec<u64>,
    /// Whose they are, for people.
    pub(super) whose: String,
}

/// What came of a wish.
pub(super) struct Answer {
    pub(super) wish: LookRequest,
    pub(super) result: Result<Sample, ClientError>,
}

/// Looks again and again, as is wished last, until nobody wants to know.
pub(super) async fn look(
    shown: Credentials,
    mut wishes: watch::Receiver<LookRequest>,
    answers: mpsc::Sender<Answer>,
) {
    let mut connection = None;
    loop {
        let wish = wishes.borrow_and_update().clone();
        if !wish.is_paused {
            let sampling = sample(&mut connection, &shown, &wish);
            let result = tokio::select! {
                result = sampling => result,
                changed = wishes.changed() => {
                    if changed.is_err() {
                        return;
                    }
                    // An answer that is still to come would be taken for that to the next question.
                    connection = None;
                    continue;
                }
            };
            if result.is_err() {
                connection = None;
            }
            if answers.send(Answer { wish, result }).await.is_err() {
                return;
            }
        }
        tokio::select! {
            () = sleep(PERIOD) => {}
            changed = wishes.changed() => if changed.is_err() {
                return;
            },
        }
    }
}

/// One look.
pub(super) async fn sample(
    connection: &mut Option<(Vec<String>, Connection)>,
    shown: &Credentials,
    wish: &LookRequest,
) -> Result<Sample, ClientError> {
    let connection = match connection {
        Some((nodes, open)) if *nodes == wish.nodes => open,
        other => {
            let nodes = Nodes::at(&wish.nodes).showing(shown.clone());
            let open = Connection::open_any(nodes).await?;
            &mut other.insert((wish.nodes.clone(), open)).1
        }
    };
    let status = connection.status().await?;
    let query = Query {
        whole_group: true,
        names: wish.names.clone(),
        after: wish.after.clone(),
        limit: u32::MAX,
    };
    let locks = list(connection, query).await?;
    let inspected = match &wish.inspected {
        Some(name) => {
            let names = Selection::Name(name.clone());
            let query = Query { whole_group: true, names, after: None, limit: u32::MAX };
            Some(list(connection, query).await?)
        }
        None => None,
    };
    let address = connection.address().to_string();
    Ok(Sample { address, status, locks, inspected })
}

/// Ends the holds that are meant, and says what came of it.
pub(super) async fn force(nodes: Nodes, meant: Meant) -> String {
    let Meant { name, fences, .. } = &meant;
    let forcing = async {
        let mut connection = Connection::open_any(nodes).await?;
        connection.force_release(name, fences, &administrator()).await
    };
    match forcing.await {
        Ok(forced) => {
            let who = |hold: &ForcedHold| format!("{} at {}", printable(&hold.label), hold.member);
            let who: Vec<String> = forced.iter().map(who).collect();
            format!("released '{}' of {}", printable(name), who.join(", "))
        }
        Err(error) => format!("'{}' is not released: {error}", printable(name)),
    }
}

async fn list(connection: &mut Connection, mut query: Query) -> Result<Listing, ClientError> {
    let begin = Instant::now();
    let mut listing = Listing::default();
    loop {
        let page = connection.page(query.clone()).await?;
        query.after = page.lines.last().map(|line| line.key.clone());
        listing.more = page.more && !page.lines.is_empty();
        listing.lines.extend(page.lines);
        listing.silent.extend(page.silent);
        let is_enough = listing.lines.len() >= MOST_LINES || begin.elapsed() >= BUDGET;
        if !listing.more || is_enough {
            listing.silent.sort_unstable();
            listing.silent.dedup();
            return Ok(listing);
        }
    }
}
