//! The page, whose parts that show a run are the player's.

/// A file by its path, with its type.
pub(crate) fn asset(path: &str) -> Option<(&'static str, &'static str)> {
    const SCRIPT: &str = "text/javascript; charset=utf-8";
    const STYLE: &str = "text/css; charset=utf-8";
    let own = match path {
        "/" => Some(("text/html; charset=utf-8", include_str!("../assets/lab.html"))),
        "/lab.css" => Some((STYLE, include_str!("../assets/lab.css"))),
        "/lab.js" => Some((SCRIPT, include_str!("../assets/lab.js"))),
        "/server.js" => Some((SCRIPT, include_str!("../assets/server.js"))),
        "/group.js" => Some((SCRIPT, include_str!("../assets/group.js"))),
        "/choices.js" => Some((SCRIPT, include_str!("../assets/choices.js"))),
        "/checker.js" => Some((SCRIPT, include_str!("../assets/checker.js"))),
        "/exercise.js" => Some((SCRIPT, include_str!("../assets/exercise.js"))),
        _ => None,
    };
    own.or_else(|| {
        let name = path.strip_prefix('/')?;
        let kind = if name.ends_with(".css") { STYLE } else { SCRIPT };
        Some((kind, catraca_player::asset(name)?))
    })
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn everything_that_the_page_names_is_there() {
        let mut open = vec!["/".to_string()];
        let mut seen = BTreeSet::new();
        while let Some(path) = open.pop() {
            let (_, text) = asset(&path).unwrap_or_else(|| panic!("{path} is missing"));
            if !seen.insert(path) {
                continue;
            }
            let quoted = text.split(['"', '\'']).filter_map(|word| {
                let name = word.strip_prefix("./").or(word.strip_prefix('/'))?;
                let is_file = name.ends_with(".js") || name.ends_with(".css");
                is_file.then(|| format!("/{name}"))
            });
            open.extend(quoted);
        }
        assert!(seen.contains("/diagram.js") && seen.contains("/player.css"), "{seen:?}");
        assert!(seen.len() > 8, "{seen:?}");
    }

    #[test]
    fn nothing_is_written_into_the_page_that_its_policy_forbids() {
        let (_, page) = asset("/").unwrap();
        assert!(!page.contains("<style") && !page.contains(" style=") && !page.contains(" on"));
        assert_eq!(
            page.matches("<script").count(),
            page.matches("<script type=\"module\" src=").count()
        );
    }

    #[test]
    fn there_is_nothing_else() {
        for path in ["/x", "", "/../Cargo.toml", "/lab.js/", "//lab.js", "/LAB.JS"] {
            assert_eq!(asset(path), None, "{path}");
        }
    }
}
