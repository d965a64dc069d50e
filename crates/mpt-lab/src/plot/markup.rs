//! Elements of HTML and SVG, which escape whatever text is put into them.
//!
//! Names, titles and reasons come from files and from programs of others. Because a page is built of
//! elements and never of strings, none of them can become markup.

use std::fmt::{self, Display, Write as _};

/// Elements that have no end tag in HTML.
const VOID: [&str; 4] = ["br", "hr", "link", "meta"];

/// Elements in which white space is shown or their text runs on, so that none may be added.
const RUNNING: [&str; 14] = [
    "a", "b", "code", "dd", "desc", "h1", "h2", "h3", "p", "pre", "small", "span", "text", "title",
];

/// An element with its attributes and what is in it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Element {
    name: &'static str,
    attributes: Vec<(&'static str, String)>,
    content: Vec<Node>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Node {
    Element(Element),
    Text(String),
}

impl Element {
    /// An empty element.
    pub fn new(name: &'static str) -> Self {
        Self { name, attributes: Vec::new(), content: Vec::new() }
    }

    /// With an attribute.
    #[must_use]
    pub fn with(mut self, name: &'static str, value: impl Display) -> Self {
        self.attributes.push((name, value.to_string()));
        self
    }

    /// With a length or a place as attribute, to a hundredth of a pixel.
    #[must_use]
    pub fn at(self, name: &'static str, value: f64) -> Self {
        self.with(name, Pixels(value))
    }

    /// With classes as attribute, unless they are none.
    #[must_use]
    pub fn class(self, names: impl Display) -> Self {
        let names = names.to_string();
        if names.is_empty() { self } else { self.with("class", names) }
    }

    /// With a text at the end of its content.
    #[must_use]
    pub fn text(mut self, text: impl Display) -> Self {
        let text = text.to_string();
        if !text.is_empty() {
            self.content.push(Node::Text(text));
        }
        self
    }

    /// With an element at the end of its content.
    #[must_use]
    pub fn child(mut self, child: Self) -> Self {
        self.content.push(Node::Element(child));
        self
    }

    /// With elements at the end of its content.
    #[must_use]
    pub fn children(mut self, children: impl IntoIterator<Item = Self>) -> Self {
        self.content.extend(children.into_iter().map(Node::Element));
        self
    }

    /// Whether there is nothing in it.
    pub fn is_empty(&self) -> bool {
        self.content.is_empty()
    }

    /// How many elements of this name are in it, at any depth.
    pub fn count(&self, name: &str) -> usize {
        let inside = |node: &Node| match node {
            Node::Element(child) => child.count(name) + usize::from(child.name == name),
            Node::Text(_) => 0,
        };
        self.content.iter().map(inside).sum()
    }
}

impl Display for Element {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "<{}", self.name)?;
        for (name, value) in &self.attributes {
            write!(f, " {name}=\"")?;
            escape(f, value)?;
            f.write_char('"')?;
        }
        f.write_char('>')?;
        if VOID.contains(&self.name) {
            return Ok(());
        }
        let only_elements = self.content.iter().all(|node| matches!(node, Node::Element(_)));
        let lines = only_elements && self.content.len() > 1 && !RUNNING.contains(&self.name);
        for node in &self.content {
            if lines {
                f.write_char('\n')?;
            }
            match node {
                Node::Element(child) => child.fmt(f)?,
                // No parser looks for entities inside a style sheet, and ours holds none.
                Node::Text(text) if self.name == "style" => f.write_str(text)?,
                Node::Text(text) => escape(f, text)?,
            }
        }
        if lines {
            f.write_char('\n')?;
        }
        write!(f, "</{}>", self.name)
    }
}

/// A length or a place, to a hundredth of a pixel and without needless zeros.
#[derive(Clone, Copy, Debug)]
pub struct Pixels(pub f64);

impl Display for Pixels {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // A drawing without a part is better than one that no browser reads.
        let value = if self.0.is_finite() { self.0 } else { 0.0 };
        let rounded = (value * 100.0).round() / 100.0;
        // Minus zero is as good as zero and shorter.
        write!(f, "{}", if rounded == 0.0 { 0.0 } else { rounded })
    }
}

fn escape(f: &mut fmt::Formatter<'_>, text: &str) -> fmt::Result {
    for character in text.chars() {
        match character {
            '&' => f.write_str("&amp;")?,
            '<' => f.write_str("&lt;")?,
            '>' => f.write_str("&gt;")?,
            // Every value of ours stands in double quotes, so that single ones may stay.
            '"' => f.write_str("&quot;")?,
            // Control characters are permitted neither in HTML nor in XML.
            control if control.is_control() && !"\n\t".contains(control) => {
                f.write_char(char::REPLACEMENT_CHARACTER)?;
            }
            other => f.write_char(other)?,
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whatever_is_put_in_stays_text() {
        let hostile = "</p><script>alert(\"1\" & '2')</script>\u{1}";
        let element = Element::new("p").with("title", hostile).text(hostile);
        let text = element.to_string();
        assert_eq!(text.matches('<').count(), 2, "{text}");
        assert_eq!(text.matches('"').count(), 2, "{text}");
        assert!(!text.contains('\u{1}'), "{text}");
        assert!(text.contains("&quot;1&quot; &amp; '2'"), "{text}");
    }

    #[test]
    fn lines_are_broken_only_at_invisible_places() {
        let item = |text: &str| Element::new("li").text(text);
        let list = Element::new("ul").children([item("a"), item("b")]);
        assert_eq!(list.to_string(), "<ul>\n<li>a</li>\n<li>b</li>\n</ul>");
        let bold = |text: &str| Element::new("b").text(text);
        let line = Element::new("p").children([bold("a"), bold("b")]);
        assert_eq!(line.to_string(), "<p><b>a</b><b>b</b></p>");
        assert_eq!(
            Element::new("meta").with("charset", "utf-8").to_string(),
            "<meta charset=\"utf-8\">"
        );
        assert_eq!(list.count("li"), 2);
    }

    #[test]
    fn a_place_is_always_a_number() {
        let shown: Vec<_> = [1.0, 1.005, 2.126, -0.001, f64::NAN, f64::INFINITY]
            .map(|value| Pixels(value).to_string())
            .into();
        assert_eq!(shown, ["1", "1", "2.13", "0", "0", "0"]);
    }
}
