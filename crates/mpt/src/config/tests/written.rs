//! What is written is what is read.

use proptest::prelude::*;

use super::arbitrary;
use crate::config::*;

proptest! {
    #[test]
    fn what_is_written_is_read_as_the_same_settings(settings in arbitrary::settings()) {
        let text = write(&settings);
        prop_assert_eq!(parse(&text).map_err(|problems| (problems, text)), Ok(settings));
    }
}

/// With one line per key that is not the default, in the order of the documentation.
#[test]
fn what_is_written_looks_as_if_by_hand() {
    for text in [super::FULL, SMALL] {
        insta::assert_snapshot!(write(&parse(text).unwrap()));
    }
}

const SMALL: &str = r#"
[[tunnel]]
name = "mpt0"
addresses = [ "10.9.0.1/24" ]
mtu = "auto"
[[tunnel.connection]]
name = 'server'
peer = ["10.9.0.2"]
local_port = 4754
scheduler = "flow"
reorder.window = 0
path = [{ name = "lte", remote = "server.example.org", keepalive = 0.25, dead_time = 0.875 }]
"#;
