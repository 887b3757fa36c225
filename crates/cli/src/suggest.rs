//! The nearest name to a wrong one.

/// How alike two names must be, from 0 to 1, for one to be suggested for the other.
const ALIKE: f64 = 0.7;

/// One line that says that there is no such thing, what may have been meant, and what there is.
pub(crate) fn unknown(what: &str, name: &str, valid: &[&str]) -> String {
    let lower = name.to_lowercase();
    let nearest = valid
        .iter()
        .map(|candidate| (strsim::jaro_winkler(&lower, candidate), candidate))
        .max_by(|(a, _), (b, _)| a.total_cmp(b))
        .filter(|(likeness, _)| *likeness >= ALIKE);
    let guess = nearest.map_or(String::new(), |(_, nearest)| format!(" Did you mean '{nearest}'?"));
    format!("there is no {what} '{name}'.{guess} There are: {}", valid.join(", "))
}

#[cfg(test)]
mod tests {
    use super::unknown;

    #[test]
    fn a_typing_error_finds_the_name_that_was_meant() {
        let names = ["lamport", "maekawa", "raymond"];
        assert!(unknown("algorithm", "lampport", &names).contains("Did you mean 'lamport'?"));
        assert!(unknown("algorithm", "Lamport", &names).contains("Did you mean 'lamport'?"));
        assert!(!unknown("algorithm", "xyz", &names).contains("Did you mean"));
        assert!(unknown("algorithm", "xyz", &names).ends_with("lamport, maekawa, raymond"));
    }
}
