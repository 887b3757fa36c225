//! Resources by colour, or by number where there are too many colours to tell apart.

use catraca_core::{Claim, ResourceId};

/// Light enough for dark numbers on them, and none of them red.
const COLOURS: [&str; 8] =
    ["#ffc845", "#7cc4f2", "#8ad29a", "#cfa3e6", "#f5a8cc", "#b9b9b9", "#c8d64a", "#d0a97a"];

/// How the resources of a group are distinguished.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Resources {
    /// There is only one.
    Single,
    /// Each has a colour.
    Coloured,
    /// Their numbers are written.
    Numbered,
}

impl Resources {
    pub(crate) fn new(count: u32) -> Self {
        match count as usize {
            0 | 1 => Resources::Single,
            few if few <= COLOURS.len() => Resources::Coloured,
            _ => Resources::Numbered,
        }
    }

    /// The colours of a claim, if its resources have any.
    pub(crate) fn colours(self, claim: &Claim) -> Vec<&'static str> {
        match self {
            Resources::Coloured => claim.resources().iter().map(|&one| colour(one)).collect(),
            Resources::Single | Resources::Numbered => Vec::new(),
        }
    }

    /// The numbers of a claim, if they are to be written.
    pub(crate) fn numbers(self, claim: &Claim) -> Option<String> {
        (self == Resources::Numbered).then(|| list(claim))
    }
}

/// The colour of a resource of a group that has no more of them than there are colours.
pub(crate) fn colour(resource: ResourceId) -> &'static str {
    COLOURS[resource.0 as usize % COLOURS.len()]
}

/// The numbers of all resources of a claim.
pub(crate) fn list(claim: &Claim) -> String {
    claim.resources().iter().map(ToString::to_string).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn few_resources_have_colours_and_many_have_numbers() {
        let claim = Claim::of([ResourceId(7), ResourceId(2)]);
        let shown = |count| {
            let resources = Resources::new(count);
            (resources.colours(&claim).len(), resources.numbers(&claim))
        };
        assert_eq!(shown(1), (0, None));
        assert_eq!(shown(8), (2, None));
        assert_eq!(shown(9), (0, Some("2 7".to_owned())));
    }
}
