//! A sheet on which pictures are drawn: lines, shapes and words, in pixels of the finished picture.

use anyhow::{Result, anyhow};
use plotters::coord::Shift;
use plotters::prelude::{
    Circle, Color, DrawingArea, IntoDrawingArea, IntoFont, IntoTextStyle, PathElement, Polygon,
    RGBColor, SVGBackend, ShapeStyle, Text, TextStyle,
};
use plotters::style::FontTransform;
use plotters::style::text_anchor::{HPos, Pos, VPos};

use super::html::escape;

/// Width of every picture; it scales with the page.
pub(super) const WIDTH: f64 = 900.0;

pub(super) const INK: RGBColor = RGBColor(34, 38, 43);
pub(super) const FAINT_INK: RGBColor = RGBColor(92, 99, 107);
pub(super) const RULE: RGBColor = RGBColor(150, 156, 163);
pub(super) const GRID: RGBColor = RGBColor(228, 231, 234);
pub(super) const FAINT_GRID: RGBColor = RGBColor(243, 244, 246);
pub(super) const WHITE: RGBColor = RGBColor(255, 255, 255);

/// plotters places everything on whole units, so a picture is drawn larger and shown smaller.
const FINE: f64 = 4.0;
/// What the SVG backend divides a font's size by.
const FONT_DIVISOR: f64 = 1.24;
const FONT: &str = "system-ui, 'Segoe UI', Roboto, 'Helvetica Neue', Arial, sans-serif";
/// Mean width of a letter over the size of the font, on the wide side of the usual fonts.
const LETTER: f64 = 0.6;

/// Where a word lies relative to the point that it is written at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Anchor {
    Start,
    Middle,
    End,
}

/// How a line is broken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Dash {
    Unbroken,
    Long,
    Short,
    Mixed,
    Fine,
    Dotted,
}

const DASHES: [Dash; 5] = [
    Dash::Long,
    Dash::Short,
    Dash::Mixed,
    Dash::Fine,
    Dash::Dotted,
];

impl Dash {
    /// Lengths of dashes and gaps in turn.
    fn lengths(self) -> &'static [f64] {
        match self {
            Self::Unbroken => &[],
            Self::Long => &[9.0, 4.5],
            Self::Short => &[2.5, 4.0],
            Self::Mixed => &[11.0, 4.5, 2.0, 4.5],
            Self::Fine => &[1.5, 3.5],
            Self::Dotted => &[1.0, 2.5],
        }
    }

    /// The backend draws no dashes, and nothing here is transparent: so the opacity of a line says which it
    /// has, until both are exchanged in the finished text. Cutting lines into dashes made files four times
    /// as large.
    fn opacity(self) -> f64 {
        match self {
            Self::Unbroken => 1.0,
            Self::Long => 0.991,
            Self::Short => 0.992,
            Self::Mixed => 0.993,
            Self::Fine => 0.994,
            Self::Dotted => 0.995,
        }
    }
}

/// How a line is drawn.
#[derive(Clone, Copy, Debug)]
pub(super) struct Stroke {
    pub(super) colour: RGBColor,
    pub(super) width: f64,
    pub(super) dash: Dash,
}

impl Stroke {
    pub(super) fn solid(colour: RGBColor, width: f64) -> Self {
        Self {
            colour,
            width,
            dash: Dash::Unbroken,
        }
    }
}

/// How words are written.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pen {
    pub(super) size: f64,
    pub(super) colour: RGBColor,
    pub(super) bold: bool,
    pub(super) anchor: Anchor,
}

impl Pen {
    pub(super) fn new(size: f64, colour: RGBColor, anchor: Anchor) -> Self {
        Self {
            size,
            colour,
            bold: false,
            anchor,
        }
    }
}

/// What somebody who cannot see a picture is told, and what its axes are.
#[derive(Clone, Debug)]
pub(super) struct Words {
    pub(super) title: String,
    pub(super) subtitle: String,
    pub(super) x: String,
    pub(super) y: String,
}

/// Draws one picture.
pub(super) fn draw(
    height: f64,
    words: &Words,
    body: impl FnOnce(&Canvas<'_>) -> Result<()>,
) -> Result<String> {
    let mut svg = String::new();
    let size = (whole(WIDTH) as u32, whole(height) as u32);
    {
        let root = SVGBackend::with_string(&mut svg, size).into_drawing_area();
        root.fill(&WHITE).map_err(trouble)?;
        let canvas = Canvas { root };
        body(&canvas)?;
        canvas.root.present().map_err(trouble)?;
    }
    // The backend knows neither a shown size apart from the drawn one nor a description.
    let (_, rest) = svg
        .split_once('>')
        .ok_or_else(|| anyhow!("the picture has no beginning"))?;
    let rest = with_dashes(rest);
    let Words {
        title,
        subtitle,
        x,
        y,
    } = words;
    let name = match subtitle.is_empty() {
        true => title.clone(),
        false => format!("{title}: {subtitle}"),
    };
    Ok(format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{WIDTH}\" height=\"{height}\" \
         viewBox=\"0 0 {} {}\" role=\"img\" stroke-linejoin=\"round\" stroke-linecap=\"round\">\n\
         <title>{}</title>\n<desc>Across: {}. Upwards: {}.</desc>{rest}",
        size.0,
        size.1,
        escape(&name),
        escape(x),
        escape(y),
    ))
}

/// Opacities exchanged for the dashes that they stand for.
fn with_dashes(svg: &str) -> String {
    let mut svg = svg.replace(" opacity=\"1\"", "");
    for dash in DASHES {
        let lengths: Vec<String> = dash
            .lengths()
            .iter()
            .map(|length| whole(*length).to_string())
            .collect();
        let opacity = format!(" opacity=\"{}\"", dash.opacity());
        let array = format!(" stroke-dasharray=\"{}\"", lengths.join(","));
        svg = svg.replace(&opacity, &array);
    }
    svg
}

/// How wide some words are, nearly.
pub(super) fn text_width(text: &str, size: f64) -> f64 {
    text.chars().count() as f64 * size * LETTER
}

/// At most so many letters, the middle left out.
pub(super) fn shorten(text: &str, letters: usize) -> String {
    let count = text.chars().count();
    if count <= letters {
        return text.to_owned();
    }
    let head = letters.saturating_sub(1).div_ceil(2);
    let tail = letters.saturating_sub(1 + head);
    let first: String = text.chars().take(head).collect();
    let last: String = text.chars().skip(count - tail).collect();
    format!("{first}…{last}")
}

/// What a picture is drawn with.
pub(super) struct Canvas<'a> {
    root: DrawingArea<SVGBackend<'a>, Shift>,
}

impl Canvas<'_> {
    pub(super) fn line(&self, points: &[(f64, f64)], stroke: Stroke) -> Result<()> {
        let style = ShapeStyle {
            color: stroke.colour.mix(stroke.dash.opacity()),
            filled: false,
            stroke_width: whole(stroke.width) as u32,
        };
        let path: Vec<(i32, i32)> = points.iter().copied().map(fine).collect();
        self.root
            .draw(&PathElement::new(path, style))
            .map_err(trouble)
    }

    /// A filled disc with a line around it.
    pub(super) fn disc(
        &self,
        centre: (f64, f64),
        radius: f64,
        fill: RGBColor,
        edge: Stroke,
    ) -> Result<()> {
        let radius = whole(radius);
        let edge = ShapeStyle {
            color: edge.colour.into(),
            filled: false,
            stroke_width: whole(edge.width) as u32,
        };
        let disc = Circle::new(fine(centre), radius, fill.filled());
        self.root.draw(&disc).map_err(trouble)?;
        let ring = Circle::new(fine(centre), radius, edge);
        self.root.draw(&ring).map_err(trouble)
    }

    /// A filled shape.
    pub(super) fn shape(&self, corners: &[(f64, f64)], colour: RGBColor) -> Result<()> {
        let path: Vec<(i32, i32)> = corners.iter().copied().map(fine).collect();
        self.root.draw(&Polygon::new(path, colour)).map_err(trouble)
    }

    pub(super) fn words(&self, text: &str, at: (f64, f64), pen: Pen) -> Result<()> {
        let h_pos = match pen.anchor {
            Anchor::Start => HPos::Left,
            Anchor::Middle => HPos::Center,
            Anchor::End => HPos::Right,
        };
        let font = (FONT, pen.size * FINE * FONT_DIVISOR).into_font();
        let font = match pen.bold {
            true => font.style(plotters::style::FontStyle::Bold),
            false => font,
        };
        let style: TextStyle<'_> = font
            .transform(FontTransform::None)
            .into_text_style(&self.root)
            .color(&pen.colour)
            .pos(Pos::new(h_pos, VPos::Center));
        // A file of its own must be XML, in which control characters have no place.
        let text = text.replace(char::is_control, "\u{fffd}");
        self.root
            .draw(&Text::new(text, fine(at), style))
            .map_err(trouble)
    }
}

fn trouble<E: std::error::Error + Send + Sync>(error: E) -> anyhow::Error {
    anyhow!("cannot draw: {error}")
}

fn whole(length: f64) -> i32 {
    (length * FINE).round() as i32
}

fn fine((x, y): (f64, f64)) -> (i32, i32) {
    (whole(x), whole(y))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_dashed_line_is_one_line() {
        let words = Words {
            title: "opacity=\"0.991\"".to_owned(),
            subtitle: String::new(),
            x: "x".to_owned(),
            y: "y".to_owned(),
        };
        for (dash, said) in [
            (Dash::Long, "stroke-dasharray=\"36,18\""),
            (Dash::Unbroken, ""),
        ] {
            let svg = draw(20.0, &words, |canvas| {
                let stroke = Stroke {
                    dash,
                    ..Stroke::solid(INK, 1.0)
                };
                canvas.line(&[(0.0, 1.0), (9.0, 1.0)], stroke)
            });
            let svg = svg.expect("draws");
            assert_eq!(svg.matches("<polyline").count(), 1);
            assert_eq!(
                svg.matches("dasharray").count(),
                usize::from(!said.is_empty())
            );
            assert!(
                svg.contains(said) && svg.contains("opacity=&quot;0.991&quot;"),
                "{svg}"
            );
        }
    }

    #[test]
    fn long_names_lose_their_middle() {
        assert_eq!(shorten("wheel", 5), "wheel");
        assert_eq!(shorten("hierarchical-wheel", 9), "hier…heel");
    }

    #[test]
    fn what_is_written_and_said_is_escaped() {
        let words = Words {
            title: "<b>".to_owned(),
            subtitle: "&".to_owned(),
            x: "time, s".to_owned(),
            y: "\"y\"".to_owned(),
        };
        let svg = draw(20.0, &words, |canvas| {
            canvas.words("<i>\u{1}", (5.0, 5.0), Pen::new(12.0, INK, Anchor::Start))
        })
        .expect("draws");
        assert!(svg.contains("<title>&lt;b&gt;: &amp;</title>"), "{svg}");
        assert!(
            svg.contains("&lt;i&gt;\u{fffd}") && !svg.contains("<i>"),
            "{svg}"
        );
        assert!(svg.trim_end().ends_with("</svg>"), "{svg}");
    }
}
