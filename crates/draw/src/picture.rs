//! A finished picture and the files that it can become.

use std::path::Path;
use std::sync::{Arc, OnceLock};

use catraca_algorithms::SpecError;
use resvg::tiny_skia::{Pixmap, Transform};
use resvg::usvg::fontdb::{Database, Family, Query};
use resvg::usvg::{Options, Tree};

use crate::{pdf, svg};

/// PNG files are drawn at twice the size of the SVG, for sharp text on today's screens, unless
/// that would take more pixels than this.
const MAX_PIXELS: f32 = 40_000_000.0;

/// A picture: SVG text and its size.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Picture {
    svg: String,
    width: u32,
    height: u32,
}

/// Why a picture cannot be drawn or encoded. The texts continue the name of the file in question.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum DrawError {
    /// The trace is too long.
    #[error(
        "has {steps} steps, more than the {max} that can be drawn legibly; \
         choose a window with --from and --to"
    )]
    TooManySteps {
        /// How many there are in the window.
        steps: usize,
        /// The most that are allowed.
        max: usize,
    },
    /// The group is too large.
    #[error(
        "has {nodes} nodes, more than the {max} that can be drawn legibly; use a smaller group"
    )]
    TooManyNodes {
        /// How many there are.
        nodes: u32,
        /// The most that are allowed.
        max: u32,
    },
    /// The trace, or the window of it, has no steps.
    #[error("has no steps to draw; leave --from and --to out or choose a wider window")]
    NoSteps,
    /// An event names a node that the group does not have.
    #[error("names node {node} in event {event}, but the group has {nodes} nodes; record it again")]
    UnknownNode {
        /// Counted from 1.
        event: usize,
        /// The node.
        node: u32,
        /// How many there are.
        nodes: u32,
    },
    /// The clusters of the group cannot be built.
    #[error("describes no group: {0}")]
    Clusters(#[from] SpecError),
    /// The nodes of the algorithm do not point to each other.
    #[error("shows {algorithm}, which has no tree: its nodes do not point to each other")]
    NoTree {
        /// The algorithm's name.
        algorithm: String,
    },
    /// An instant at which nothing happens any more.
    #[error("ends {end}, and there is nothing to draw {at}; choose an earlier instant")]
    AfterEnd {
        /// When the last thing happens, in words.
        end: String,
        /// The instant, in words.
        at: String,
    },
    /// No instant to draw, or too many.
    #[error("can be drawn at 1 to {max} instants in one picture, not {given}")]
    Instants {
        /// How many are asked for.
        given: usize,
        /// The most that are allowed.
        max: usize,
    },
    /// The window of an evolving graph cannot be written out.
    #[error("{0}")]
    Graph(String),
    /// The trace cannot be run again.
    #[error("{0}")]
    Replay(String),
    /// The file name ends in something else.
    #[error("is no picture that can be written: choose a name that ends in .svg, .png or .pdf")]
    Extension,
    /// The system has no fonts.
    #[error(
        "needs a font, and none was found; install a font package such as fonts-dejavu-core, or write .svg"
    )]
    NoFonts,
    /// The picture does not fit into memory, or has no size at all.
    #[error("cannot be {width} by {height} pixels large; choose a smaller scale, or write .svg")]
    Size {
        /// In pixels.
        width: u32,
        /// In pixels.
        height: u32,
    },
    /// The renderer refuses the picture.
    #[error("cannot be drawn ({0}); write .svg instead")]
    Render(String),
}

impl Picture {
    pub(crate) fn new(svg: String, width: u32, height: u32) -> Self {
        Picture { svg, width, height }
    }

    /// The picture as SVG text.
    pub fn svg(&self) -> &str {
        &self.svg
    }

    /// The width in pixels at scale 1.
    pub fn width(&self) -> u32 {
        self.width
    }

    /// The height in pixels at scale 1.
    pub fn height(&self) -> u32 {
        self.height
    }

    /// The picture as a PNG file, `scale` times as large, with the system's fonts.
    pub fn png(&self, scale: f32) -> Result<Vec<u8>, DrawError> {
        self.rasterise(fonts()?, scale)
    }

    /// The picture as a PDF file of one page, with letters as shapes of the system's fonts.
    pub fn pdf(&self) -> Result<Vec<u8>, DrawError> {
        Ok(pdf::pdf(&self.tree(fonts()?)?))
    }

    /// The contents of a file in this format.
    pub fn encode(&self, format: Format) -> Result<Vec<u8>, DrawError> {
        match format {
            Format::Svg => Ok(self.svg.clone().into_bytes()),
            Format::Png => self.png(self.sharp_scale()),
            Format::Pdf => self.pdf(),
        }
    }

    fn sharp_scale(&self) -> f32 {
        let pixels = self.width as f32 * self.height as f32;
        (MAX_PIXELS / pixels).sqrt().min(2.0)
    }

    /// The picture as the renderer understands it.
    fn tree(&self, fonts: Arc<Database>) -> Result<Tree, DrawError> {
        let options = Options { fontdb: fonts, ..Options::default() };
        Tree::from_str(&self.svg, &options).map_err(|error| DrawError::Render(error.to_string()))
    }

    fn rasterise(&self, fonts: Arc<Database>, scale: f32) -> Result<Vec<u8>, DrawError> {
        // A scale that is not a number becomes a size of zero, which is refused.
        let width = (self.width as f32 * scale).round() as u32;
        let height = (self.height as f32 * scale).round() as u32;
        let mut pixels = Pixmap::new(width, height).ok_or(DrawError::Size { width, height })?;
        let tree = self.tree(fonts)?;
        resvg::render(&tree, Transform::from_scale(scale, scale), &mut pixels.as_mut());
        pixels.encode_png().map_err(|error| DrawError::Render(error.to_string()))
    }
}

/// The formats that pictures are written in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// Lines and letters, sharp at any size.
    Svg,
    /// Dots.
    Png,
    /// Lines and letters, for papers.
    Pdf,
}

impl Format {
    /// The format that the name of a file asks for.
    pub fn of(path: &Path) -> Result<Self, DrawError> {
        let ending = path.extension().map(|ending| ending.to_ascii_lowercase());
        match ending.as_ref().and_then(|ending| ending.to_str()) {
            Some("svg") => Ok(Format::Svg),
            Some("png") => Ok(Format::Png),
            Some("pdf") => Ok(Format::Pdf),
            _ => Err(DrawError::Extension),
        }
    }

    /// Fails if this machine cannot write any picture in this format. Known before there is one.
    pub fn check(self) -> Result<(), DrawError> {
        match self {
            Format::Svg => Ok(()),
            Format::Png | Format::Pdf => fonts().map(drop),
        }
    }
}

/// The fonts of the system, which take a moment to find.
fn fonts() -> Result<Arc<Database>, DrawError> {
    static FONTS: OnceLock<Result<Arc<Database>, DrawError>> = OnceLock::new();
    let load = || {
        let mut fonts = Database::new();
        fonts.load_system_fonts();
        choose_family(&mut fonts)?;
        Ok(Arc::new(fonts))
    };
    FONTS.get_or_init(load).clone()
}

/// Makes sure that text is drawn in some font: where none of the families that pictures ask for is
/// installed, any other is used for 'sans-serif'.
fn choose_family(fonts: &mut Database) -> Result<(), DrawError> {
    let wanted: Vec<Family<'_>> = svg::FAMILIES.iter().map(|&name| Family::Name(name)).collect();
    if fonts.query(&Query { families: &wanted, ..Query::default() }).is_some() {
        return Ok(());
    }
    let names = fonts.faces().flat_map(|face| &face.families).map(|(name, _)| name.as_str());
    let stand_in = names.min_by_key(|name| (!name.contains("Sans"), *name));
    let stand_in = stand_in.ok_or(DrawError::NoFonts)?.to_owned();
    fonts.set_sans_serif_family(stand_in);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::svg::Svg;

    fn sample() -> Picture {
        let mut svg = Svg::new();
        svg.text((10.0, 30.0), "hello", 12.0, r#"class="greeting""#);
        svg.finish(120, 40)
    }

    fn decode(png: &[u8]) -> Pixmap {
        Pixmap::decode_png(png).unwrap()
    }

    #[test]
    fn the_file_name_chooses_the_format() {
        assert_eq!(Format::of(Path::new("a.SVG")), Ok(Format::Svg));
        assert_eq!(Format::of(Path::new("a.Png")), Ok(Format::Png));
        assert_eq!(Format::of(Path::new("a.pdf")), Ok(Format::Pdf));
        for name in ["a.eps", "a", "png"] {
            assert_eq!(Format::of(Path::new(name)), Err(DrawError::Extension));
        }
        assert_eq!(sample().encode(Format::Svg).unwrap(), sample().svg().as_bytes());
        let png = decode(&sample().encode(Format::Png).unwrap());
        assert_eq!((png.width(), png.height()), (240, 80));
        assert!(DrawError::Extension.to_string().contains(".svg, .png or .pdf"));
    }

    #[test]
    fn a_png_has_the_size_of_its_scale_and_shows_the_text() {
        let png = decode(&sample().png(1.5).unwrap());
        assert_eq!((png.width(), png.height()), (180, 60));
        let dark = png.pixels().iter().filter(|pixel| pixel.red() < 128).count();
        assert!(dark > 30, "only {dark} dark pixels");
        let corner = png.pixel(0, 0).unwrap();
        assert_eq!((corner.red(), corner.alpha()), (255, 255), "the background is white");
    }

    #[test]
    fn large_pictures_are_not_doubled() {
        let large = Picture::new(String::new(), 6_000, 5_000);
        assert!(large.sharp_scale() < 1.2);
        assert_eq!(sample().sharp_scale(), 2.0);
    }

    #[test]
    fn without_fonts_the_error_says_what_to_install() {
        let error = choose_family(&mut Database::new()).unwrap_err();
        assert_eq!(error, DrawError::NoFonts);
        assert!(error.to_string().contains("fonts-dejavu-core, or write .svg"));
    }

    #[test]
    fn any_font_stands_in_for_the_ones_that_are_not_installed() {
        let mut fonts = Database::new();
        fonts.load_system_fonts();
        let others: Vec<_> = fonts
            .faces()
            .filter(|face| face.families.iter().all(|(name, _)| name != "DejaVu Sans Mono"))
            .map(|face| face.id)
            .collect();
        others.into_iter().for_each(|id| fonts.remove_face(id));
        choose_family(&mut fonts).unwrap();
        let png = decode(&sample().rasterise(Arc::new(fonts), 1.0).unwrap());
        assert!(png.pixels().iter().any(|pixel| pixel.red() < 128));
    }

    #[test]
    fn impossible_sizes_are_refused() {
        for scale in [0.0, -1.0, f32::NAN, 1e9] {
            assert!(matches!(sample().png(scale), Err(DrawError::Size { .. })), "{scale}");
        }
    }
}
