//! The few shapes we need, as SVG text.

use std::fmt::Write;

/// Width of a character of the font, which has a fixed pitch.
pub const CHARACTER: f64 = 7.3;

pub fn width(text: &str) -> f64 {
    text.chars().count() as f64 * CHARACTER
}

pub fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '&' => out.push_str("&amp;"),
            '"' => out.push_str("&quot;"),
            // Control characters are no XML.
            c if c.is_control() => out.push(' '),
            c => out.push(c),
        }
    }
    out
}

/// How a line looks.
#[derive(Clone, Copy)]
pub struct Pen {
    pub colour: &'static str,
    pub width: f64,
    pub dashed: bool,
}

#[derive(Default)]
pub struct Canvas {
    body: String,
}

#[derive(Clone, Copy)]
pub enum Anchor {
    Start,
    Middle,
    End,
}

impl Canvas {
    pub fn text(&mut self, (x, y): (f64, f64), anchor: Anchor, class: &str, text: &str) {
        let anchor = match anchor {
            Anchor::Start => "start",
            Anchor::Middle => "middle",
            Anchor::End => "end",
        };
        let _ = writeln!(
            self.body,
            "<text x=\"{x:.1}\" y=\"{y:.1}\" text-anchor=\"{anchor}\" class=\"{class}\">{}</text>",
            escape(text)
        );
    }

    /// A rounded box by its left, middle height, width and height.
    pub fn rounded(&mut self, (x, y): (f64, f64), (w, h): (f64, f64), class: &str) {
        let _ = writeln!(
            self.body,
            "<rect x=\"{x:.1}\" y=\"{:.1}\" width=\"{w:.1}\" height=\"{h:.1}\" rx=\"5\" class=\"{class}\"/>",
            y - h / 2.0
        );
    }

    pub fn circle(&mut self, (x, y): (f64, f64), r: f64, class: &str) {
        let _ = writeln!(
            self.body,
            "<circle cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"{r}\" class=\"{class}\"/>"
        );
    }

    /// A line through the points with rounded corners, and a head at its end.
    pub fn line(&mut self, points: &[(f64, f64)], pen: Pen, head: bool) {
        let Some((first, rest)) = points.split_first() else {
            return;
        };
        let mut path = format!("M{:.1} {:.1}", first.0, first.1);
        let mut at = *first;
        for (i, p) in rest.iter().enumerate() {
            match rest.get(i + 1) {
                // Corners are cut off where both legs are long enough.
                Some(next) => {
                    let (a, b) = (towards(*p, at, 5.0), towards(*p, *next, 5.0));
                    let _ = write!(
                        path,
                        " L{:.1} {:.1} Q{:.1} {:.1} {:.1} {:.1}",
                        a.0, a.1, p.0, p.1, b.0, b.1
                    );
                }
                None => {
                    let _ = write!(path, " L{:.1} {:.1}", p.0, p.1);
                }
            }
            at = *p;
        }
        let dash = if pen.dashed {
            " stroke-dasharray=\"5 3\""
        } else {
            ""
        };
        let _ = writeln!(
            self.body,
            "<path d=\"{path}\" fill=\"none\" stroke=\"{}\" stroke-width=\"{}\"{dash}/>",
            pen.colour, pen.width
        );
        if let (true, [.., before, end]) = (head, points) {
            self.head(*before, *end, pen);
        }
    }

    fn head(&mut self, from: (f64, f64), tip: (f64, f64), pen: Pen) {
        let length = ((tip.0 - from.0).powi(2) + (tip.1 - from.1).powi(2)).sqrt();
        let (dx, dy) = match length > 0.0 {
            true => ((tip.0 - from.0) / length, (tip.1 - from.1) / length),
            false => (0.0, 1.0),
        };
        let (back, side) = (7.0 + pen.width, 3.0 + pen.width / 2.0);
        let base = (tip.0 - back * dx, tip.1 - back * dy);
        let _ = writeln!(
            self.body,
            "<path d=\"M{:.1} {:.1} L{:.1} {:.1} L{:.1} {:.1} Z\" fill=\"{}\"/>",
            tip.0,
            tip.1,
            base.0 - side * dy,
            base.1 + side * dx,
            base.0 + side * dy,
            base.1 - side * dx,
            pen.colour
        );
    }

    /// Puts another drawing on this one, moved.
    pub fn place(&mut self, (x, y): (f64, f64), other: &Canvas) {
        let body = &other.body;
        let _ = writeln!(
            self.body,
            "<g transform=\"translate({x:.1} {y:.1})\">\n{body}</g>"
        );
    }

    pub fn finish(&self, (w, h): (f64, f64), title: &str) -> String {
        format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{w:.0}\" height=\"{h:.0}\" \
             viewBox=\"0 0 {w:.0} {h:.0}\">\n<title>{}</title>\n<style>{STYLE}</style>\n\
             <rect width=\"100%\" height=\"100%\" fill=\"#ffffff\"/>\n{}</svg>\n",
            escape(title),
            self.body
        )
    }
}

/// The point `by` away from `p` in the direction of `other`, or half-way if that is nearer.
fn towards(p: (f64, f64), other: (f64, f64), by: f64) -> (f64, f64) {
    let (dx, dy) = (other.0 - p.0, other.1 - p.1);
    let length = (dx * dx + dy * dy).sqrt().max(1e-9);
    let by = by.min(length / 2.0);
    (p.0 + dx / length * by, p.1 + dy / length * by)
}

const STYLE: &str = "text{font:12px 'DejaVu Sans Mono',Menlo,Consolas,monospace;fill:#1f2933}\
.name{font-weight:bold;font-size:14px}.small{font-size:10px;fill:#52606d}.edge{font-size:9px;fill:#52606d;paint-order:stroke;stroke:#ffffff;stroke-width:3px}\
.put{font-size:9px;fill:#ffffff;font-weight:bold}.label{fill:#0b6e4f;font-weight:bold}.on{fill:#ffffff;font-weight:bold}\
.step{fill:#f0f4f8;stroke:#9fb3c8}.touch{fill:#e3f2fd;stroke:#4a90c2}\
.wait{fill:#fff4e5;stroke:#d9822b}.place{fill:#ffffff;stroke:#52606d}\
.end{fill:#d9e2ec;stroke:#52606d}.fence{fill:#0b6e4f;stroke:#084c37}\
.read{fill:#ffffff;stroke:#4a90c2}.write{fill:#e3f2fd;stroke:#4a90c2}\
.bad{stroke:#c62828;stroke-width:2}";
