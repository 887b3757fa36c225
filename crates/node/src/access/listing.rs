//! Lists for somebody who may not see every lock.

use catraca_group::{Page, Query, Selection};

use super::{Identity, Rights};

impl Identity {
    /// A page that has only what this one may see. `make` makes pages of everything; it is called again
    /// where a page has nothing to be seen, but more lines follow.
    pub(crate) async fn visible<Making: Future<Output = Option<Page>>>(
        &self,
        mut query: Query,
        mut make: impl FnMut(Query) -> Making,
    ) -> Option<Page> {
        query.names = self.narrowed(query.names);
        loop {
            let mut page = make(query.clone()).await?;
            let last = page.lines.last().map(|line| line.key.clone());
            page.lines.retain(|line| self.sees(&line.key.name));
            match last {
                Some(last) if page.lines.is_empty() && page.more => query.after = Some(last),
                _ => return Some(page),
            }
        }
    }

    /// The same selection, or a smaller one that has everything of it that this one may see: with it
    /// most locks are passed over where they are.
    fn narrowed(&self, selection: Selection) -> Selection {
        let prefix = self.with_rights(|rights| Ok(rights.prefix())).unwrap_or_default();
        match selection {
            Selection::All if !prefix.is_empty() => Selection::Prefix(prefix),
            Selection::Prefix(asked) if prefix.starts_with(&asked) => Selection::Prefix(prefix),
            other => other,
        }
    }
}

impl Rights {
    /// What all names begin with that it covers.
    fn prefix(&self) -> String {
        let mut heads =
            self.names.iter().map(|pattern| pattern.split('*').next().unwrap_or_default());
        let shared = |one: String, other: &str| {
            let both = one.chars().zip(other.chars());
            both.take_while(|(one, other)| one == other).map(|(one, _)| one).collect()
        };
        let first = heads.next().unwrap_or_default().to_string();
        heads.fold(first, shared)
    }
}
