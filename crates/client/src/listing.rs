//! Who holds and who waits, page by page.

use catraca_group::{Page, Query};

use crate::connection::Connection;
use crate::error::ClientError;

/// The pages of a listing. Each is as of when it is asked for: what changes between two pages may be
/// missing, or be there twice, but a holder that stays is there once.
pub struct Pages {
    connection: Connection,
    /// What to ask next, unless that was the last page.
    query: Option<Query>,
}

impl Pages {
    /// The pages of `query`, asked for over `connection`.
    pub fn new(connection: Connection, query: Query) -> Self {
        Pages { connection, query: Some(query) }
    }

    /// The next page, or nothing after the last one.
    pub async fn next_page(&mut self) -> Result<Option<Page>, ClientError> {
        let Some(query) = self.query.take() else { return Ok(None) };
        let page = self.connection.page(query.clone()).await?;
        // A page that promises more and has nothing would be asked for again and again.
        if let Some(last) = page.lines.last().filter(|_| page.more) {
            self.query = Some(Query { after: Some(last.key.clone()), ..query });
        }
        Ok(Some(page))
    }
}
