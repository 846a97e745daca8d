//! A sheet on which pictures are drawn: lines, shapes and words, in pixels of the finished picture.

use anyhow::{Result, anyhow};
use plotters::coord::Shift;
use plotters::prelude::{
    DrawingArea, IntoDrawingArea, IntoFont, IntoTextStyle, PathElement, Polygon, RGBColor,
    SVGBackend, ShapeStyle, Text, TextStyle,
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

/// How a line is drawn.
#[derive(Clone, Copy, Debug)]
pub(super) struct Stroke {
    pub(super) colour: RGBColor,
    pub(super) width: f64,
    /// Lengths of dashes and gaps in turn; empty for an unbroken line.
    pub(super) dashes: &'static [f64],
}

impl Stroke {
    pub(super) fn solid(colour: RGBColor, width: f64) -> Self {
        Self {
            colour,
            width,
            dashes: &[],
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
            color: stroke.colour.into(),
            filled: false,
            stroke_width: whole(stroke.width) as u32,
        };
        for piece in pieces(points, stroke.dashes) {
            let path: Vec<(i32, i32)> = piece.into_iter().map(fine).collect();
            self.root
                .draw(&PathElement::new(path, style))
                .map_err(trouble)?;
        }
        Ok(())
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

/// A line cut into its dashes.
fn pieces(points: &[(f64, f64)], dashes: &[f64]) -> Vec<Vec<(f64, f64)>> {
    if dashes.is_empty() {
        return vec![points.to_vec()];
    }
    let mut pieces = Vec::new();
    let mut pattern = dashes
        .iter()
        .copied()
        .cycle()
        .zip([true, false].into_iter().cycle());
    let Some((mut left, mut inked)) = pattern.next() else {
        return vec![points.to_vec()];
    };
    let mut piece: Vec<(f64, f64)> = points.first().copied().into_iter().collect();
    for pair in points.windows(2) {
        let (mut from, to) = (pair[0], pair[1]);
        loop {
            let length = (to.0 - from.0).hypot(to.1 - from.1);
            if length <= left {
                left -= length;
                piece.push(to);
                break;
            }
            let part = left / length;
            from = (
                from.0 + (to.0 - from.0) * part,
                from.1 + (to.1 - from.1) * part,
            );
            piece.push(from);
            if inked {
                pieces.push(std::mem::take(&mut piece));
            }
            piece = vec![from];
            if let Some((length, ink)) = pattern.next() {
                (left, inked) = (length.max(0.5), ink);
            }
        }
    }
    if inked && piece.len() > 1 {
        pieces.push(piece);
    }
    pieces
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dashes_leave_their_gaps_and_end_where_the_line_ends() {
        let line = [(0.0, 0.0), (10.0, 0.0)];
        assert_eq!(pieces(&line, &[]), vec![line.to_vec()]);
        let cut = pieces(&line, &[4.0, 2.0]);
        assert_eq!(
            cut,
            vec![vec![(0.0, 0.0), (4.0, 0.0)], vec![(6.0, 0.0), (10.0, 0.0)]]
        );
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
