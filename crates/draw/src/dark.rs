//! The colours of pictures on dark paper: for pages that embed the SVG.

use std::fmt::Write;

use crate::svg::PALETTE;

/// What each colour of our pictures becomes, but for the palette.
const COLOURS: [(&str, &str); 23] = [
    // Paper, ink, and what is between.
    ("#ffffff", "#1b1d22"),
    ("#222222", "#e6e6ea"),
    ("#e4e4e4", "#383b44"),
    ("#c4c4c4", "#4a4e59"),
    ("#8c8c8c", "#8f939e"),
    ("#6f6f6f", "#a9adb8"),
    ("#555555", "#b4b8c2"),
    ("#e9e9e9", "#3a3d46"),
    // Bands and boxes of clusters.
    ("#eef4fa", "#1f2833"),
    ("#faf4e8", "#2e2a20"),
    ("#f7f9fb", "#202329"),
    // Inside, and wrong.
    ("#ffc845", "#8a6100"),
    ("#8a6100", "#ffc845"),
    ("#fff0c2", "#5c4a14"),
    ("#ffb400", "#ffb400"),
    ("#c8102e", "#ff6b7d"),
    // Resources, on which light numbers stand now.
    ("#7cc4f2", "#1f6390"),
    ("#8ad29a", "#2b6e3c"),
    ("#cfa3e6", "#6b3f85"),
    ("#f5a8cc", "#8f3d66"),
    ("#b9b9b9", "#5f636e"),
    ("#c8d64a", "#666f12"),
    ("#d0a97a", "#78552a"),
];

/// The palette, as light as it has to be on dark paper.
pub(crate) const DARK_PALETTE: [&str; 8] =
    ["#5eb3ea", "#3fca9b", "#c58ce6", "#f0964a", "#ee93c4", "#8fd6f5", "#c9c94f", "#b3b3b3"];

/// Rules of style, for whoever prefers dark pages, that give the pictures in elements that `scope` selects
/// the colours of dark paper.
pub fn dark_style(scope: &str) -> String {
    let mut rules = String::from("@media (prefers-color-scheme: dark) {\n");
    let palette = PALETTE.into_iter().zip(DARK_PALETTE);
    for (light, dark) in COLOURS.into_iter().chain(palette).filter(|(light, dark)| light != dark) {
        for property in ["fill", "stroke", "stop-color"] {
            let _ = writeln!(rules, "{scope} [{property}=\"{light}\"] {{ {property}: {dark}; }}");
        } // Writing to a String cannot fail.
    }
    rules.push_str("}\n");
    rules
}

#[cfg(test)]
mod tests {
    use super::*;

    /// How light a colour is, from 0 to 1, as people see it.
    fn lightness(colour: &str) -> f64 {
        let part = |at: usize| {
            let part = f64::from(u8::from_str_radix(&colour[at..at + 2], 16).unwrap()) / 255.0;
            if part <= 0.04045 { part / 12.92 } else { ((part + 0.055) / 1.055).powf(2.4) }
        };
        0.2126 * part(1) + 0.7152 * part(3) + 0.0722 * part(5)
    }

    fn contrast(one: &str, other: &str) -> f64 {
        let (one, other) = (lightness(one), lightness(other));
        (one.max(other) + 0.05) / (one.min(other) + 0.05)
    }

    #[test]
    fn lines_of_the_palette_stand_out_from_light_and_from_dark_paper() {
        for colour in PALETTE {
            assert!(contrast(colour, "#ffffff") >= 2.9, "{colour}");
        }
        for colour in DARK_PALETTE {
            assert!(contrast(colour, "#1b1d22") >= 4.5, "{colour}");
        }
    }

    /// Whoever adds a colour to a picture adds what it becomes on dark paper.
    #[test]
    fn every_colour_in_the_source_has_a_dark_one() {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/src");
        for file in std::fs::read_dir(folder).unwrap() {
            let path = file.unwrap().path();
            let text = std::fs::read_to_string(&path).unwrap();
            let drawing = text.split("#[cfg(test)]").next().unwrap();
            if path.ends_with("dark.rs") {
                continue;
            }
            for (at, _) in drawing.match_indices("\"#") {
                let colour: String = drawing[at + 1..].chars().take(7).collect();
                let is_colour = colour[1..].chars().all(|digit| digit.is_ascii_hexdigit());
                let known = COLOURS.iter().any(|(light, _)| *light == colour);
                let known = known || PALETTE.contains(&colour.as_str());
                assert!(!is_colour || known, "{colour} of {}", path.display());
            }
        }
    }

    #[test]
    fn rules_hold_within_their_scope_only() {
        let style = dark_style("figure");
        assert!(style.contains("figure [fill=\"#ffffff\"] { fill: #1b1d22; }"));
        assert!(
            style.lines().filter(|line| line.contains('[')).all(|line| line.starts_with("figure "))
        );
    }

    #[test]
    fn text_of_the_player_can_be_read_on_its_page_and_on_its_cards() {
        let style = include_str!("../../player/assets/player.css");
        let (light, dark) = style.split_once("@media").unwrap();
        for rules in [light, dark.split_once('}').unwrap().0] {
            let colour = |name: &str| {
                let (_, rest) = rules.split_once(&format!("--{name}: ")).unwrap();
                let given = rest.split(';').next().unwrap();
                if given == "#fff" { "#ffffff".to_string() } else { given.to_string() }
            };
            for paper in ["back", "card"] {
                for text in ["ink", "soft", "good", "bad", "k0"] {
                    let seen = contrast(&colour(text), &colour(paper));
                    assert!(seen >= 4.5, "{text} on {paper}: {seen:.2}");
                }
            }
        }
    }

    #[test]
    fn the_player_has_the_same_palette() {
        let style = include_str!("../../player/assets/player.css");
        let (light, dark) = style.split_once("@media").unwrap();
        let dark = dark.split_once('}').unwrap().0;
        for (number, (one, other)) in PALETTE.into_iter().zip(DARK_PALETTE).enumerate() {
            assert!(light.contains(&format!("--k{number}: {one};")), "{one}");
            assert!(dark.contains(&format!("--k{number}: {other};")), "{other}");
        }
    }
}
