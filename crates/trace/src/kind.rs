//! Kinds of messages by number: one table for all pictures, so that a kind has the same colour in each.

/// So many numbers there are; pictures have a colour for each.
pub const KIND_NUMBERS: usize = 8;

/// The kinds of our algorithms. Those of one algorithm have different numbers, and what means much the same
/// has the same number in different algorithms.
const NUMBERS: [(&str, usize); 24] = [
    ("request", 0),
    ("tree", 0),
    ("reply", 1),
    ("grant", 1),
    ("outside", 1),
    ("inq-ack1", 1),
    ("answer", 1),
    ("release", 2),
    ("ack", 2),
    ("remote", 2),
    ("inq-ack2", 2),
    ("token", 3),
    ("control", 3),
    ("failed", 4),
    ("behind", 4),
    ("are-you-alive", 4),
    ("inquire", 5),
    ("overtaken", 5),
    ("i-am-alive", 5),
    ("yield", 6),
    ("turn", 6),
    ("news", 6),
    ("is-held?", 7),
    ("detector", 7),
];

/// The number of one kind of message of our algorithms.
pub fn kind_number(kind: &str) -> Option<usize> {
    NUMBERS.iter().find(|(known, _)| *known == kind).map(|(_, number)| *number)
}

/// The numbers of all kinds in a picture. Kinds that the table does not know get what the others leave, in
/// their order.
pub fn kind_numbers(kinds: &[&str]) -> Vec<usize> {
    let mut taken: Vec<usize> = kinds.iter().filter_map(|kind| kind_number(kind)).collect();
    let mut free = |at: usize| {
        let number = (0..KIND_NUMBERS).find(|number| !taken.contains(number));
        let number = number.unwrap_or(at % KIND_NUMBERS);
        taken.push(number);
        number
    };
    let number = |(at, kind): (usize, &&str)| kind_number(kind).unwrap_or_else(|| free(at));
    kinds.iter().enumerate().map(number).collect()
}

#[cfg(test)]
mod tests {
    use catraca_algorithms::registry::ENTRIES;
    use catraca_algorithms::{Spec, Visitor};
    use catraca_core::{Algorithm, Message};

    use super::*;

    struct Kinds;

    impl Visitor for Kinds {
        type Output = &'static [&'static str];

        fn visit<A: Algorithm>(self, _: A::Config) -> Self::Output {
            A::Message::KINDS
        }
    }

    #[test]
    fn every_kind_of_every_algorithm_is_in_the_table_and_those_of_one_differ() {
        for entry in ENTRIES {
            let kinds = Spec::new(entry.name, 4).visit(Kinds).unwrap();
            let mut numbers: Vec<usize> = kinds
                .iter()
                .map(|kind| kind_number(kind).unwrap_or_else(|| panic!("{kind} of {}", entry.name)))
                .collect();
            numbers.sort_unstable();
            numbers.dedup();
            assert_eq!(numbers.len(), kinds.len(), "{}: {kinds:?}", entry.name);
            assert!(numbers.iter().all(|&number| number < KIND_NUMBERS));
        }
    }

    #[test]
    fn unknown_kinds_get_what_the_others_leave() {
        assert_eq!(kind_numbers(&["ping", "request", "pong", "token"]), [1, 0, 2, 3]);
        let many: Vec<String> = (0..20).map(|kind| format!("kind {kind}")).collect();
        let many: Vec<&str> = many.iter().map(String::as_str).collect();
        assert!(kind_numbers(&many).iter().all(|&number| number < KIND_NUMBERS));
    }
}
