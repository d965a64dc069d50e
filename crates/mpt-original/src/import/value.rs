//! Values as TOML, as they stand behind the `=` of a setting.

use std::fmt::Write as _;
use std::net::IpAddr;

use mpt_proto::Prefix;

/// What can be the value of a setting.
pub(super) trait Value {
    /// As TOML.
    fn toml(&self) -> String;
}

impl Value for &str {
    fn toml(&self) -> String {
        let mut text = String::from("\"");
        for c in self.chars() {
            match c {
                '"' | '\\' => text.extend(['\\', c]),
                c if c.is_control() => {
                    // Writing to a string cannot fail.
                    let _ = write!(text, "\\u{:04x}", u32::from(c));
                }
                c => text.push(c),
            }
        }
        text.push('"');
        text
    }
}

impl Value for String {
    fn toml(&self) -> String {
        self.as_str().toml()
    }
}

impl Value for IpAddr {
    fn toml(&self) -> String {
        self.to_string().toml()
    }
}

impl Value for Prefix {
    fn toml(&self) -> String {
        self.to_string().toml()
    }
}

impl Value for u16 {
    fn toml(&self) -> String {
        self.to_string()
    }
}

impl Value for i64 {
    fn toml(&self) -> String {
        self.to_string()
    }
}

impl<T: Value> Value for Vec<T> {
    fn toml(&self) -> String {
        let values: Vec<_> = self.iter().map(Value::toml).collect();
        format!("[{}]", values.join(", "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strings_are_escaped_and_lists_bracketed() {
        assert_eq!("a \"b\" \\ \n\u{7f}é".toml(), r#""a \"b\" \\ \u000a\u007fé""#);
        let prefix = Prefix::new([10, 0, 0, 1].into(), 24).expect("a prefix");
        assert_eq!(vec![prefix].toml(), r#"["10.0.0.1/24"]"#);
        assert_eq!(vec![80_u16, 443].toml(), "[80, 443]");
        assert_eq!(IpAddr::from([0; 16]).toml(), r#""::""#);
    }
}
