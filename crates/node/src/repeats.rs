//! What the operator has been told already, and need not be told again.

use std::collections::VecDeque;

use catraca_group::MOST_MEMBERS;

/// So much is remembered: one thing of each member. What was not repeated for longest goes first.
const MOST: usize = MOST_MEMBERS;

/// What has been told lately.
#[derive(Debug)]
pub(crate) struct Repeats<T>(VecDeque<T>);

impl<T> Default for Repeats<T> {
    fn default() -> Self {
        Repeats(VecDeque::new())
    }
}

impl<T: PartialEq> Repeats<T> {
    /// Whether `what` has yet to be told. From now on it has been.
    pub(crate) fn is_news(&mut self, what: T) -> bool {
        let place = self.0.iter().position(|told| *told == what);
        if let Some(place) = place {
            self.0.remove(place);
        } else if self.0.len() == MOST {
            self.0.pop_front();
        }
        self.0.push_back(what);
        place.is_none()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_is_told_once_and_anything_else_again() {
        let mut told = Repeats::default();
        let calls = [("a", "group"), ("a", "group"), ("b", "group"), ("a", "plan")];
        assert_eq!(calls.map(|call| told.is_news(call)), [true, false, true, true]);
        // Several that call in turn are not news to each other.
        assert_eq!(calls.map(|call| told.is_news(call)), [false; 4]);
    }

    #[test]
    fn what_is_remembered_has_a_limit_and_what_is_repeated_stays() {
        let mut told = Repeats::default();
        assert!(told.is_news(0));
        for other in 1..10 * MOST {
            assert!(told.is_news(other) && !told.is_news(0));
        }
        assert_eq!(told.0.len(), MOST);
        assert!(told.is_news(1), "forgotten long ago");
    }
}
