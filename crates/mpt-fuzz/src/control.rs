//! Lines on the control socket.

use mpt_control::codec::{self, Lines};
use mpt_control::{Reply, Request};

/// A stream of requests of a client, which the daemon reads in pieces. For any split the lines are
/// the same, and a parsed request is written as it was parsed.
pub fn control_request(bytes: &[u8]) {
    const LIMIT: usize = 256;
    let whole = lines(LIMIT, [bytes]);
    let size = bytes.first().map_or(1, |first| usize::from(*first).max(1));
    assert_eq!(lines(LIMIT, bytes.chunks(size)), whole);
    for line in whole.iter().flatten() {
        if let Ok(request) = codec::decode_request(line) {
            let written = codec::encode_request(&request).expect("it was short enough to be read");
            assert_eq!(read_request(&written), request);
        }
    }
}

/// A line as the daemon answers it: what is understood is written as it was understood.
pub fn status_reply(bytes: &[u8]) {
    let Ok(reply) = codec::decode_reply(bytes) else { return };
    let Ok(written) = codec::encode_reply(&reply) else { return };
    let again = read_reply(&written);
    assert!(agree(&format!("{reply:?}"), &format!("{again:?}")), "{again:?} was {reply:?}");
}

/// Whether two values are the same as they are shown, save for the last digits of fractions: their reader is
/// fast rather than exact to the last bit.
fn agree(a: &str, b: &str) -> bool {
    let words = |text| str::split(text, [' ', ',', '(', ')']);
    let close = |a: &str, b: &str| match (a.parse::<f64>(), b.parse::<f64>()) {
        (Ok(x), Ok(y)) if a.contains(['.', 'e']) => (x - y).abs() <= x.abs() * 1e-12,
        _ => false,
    };
    words(a).count() == words(b).count()
        && words(a).zip(words(b)).all(|(a, b)| a == b || close(a, b))
}

fn read_request(line: &[u8]) -> Request {
    codec::decode_request(one_line(line)).expect("what was written can be read")
}

fn read_reply(line: &[u8]) -> Reply {
    codec::decode_reply(one_line(line)).expect("what was written can be read")
}

fn one_line(written: &[u8]) -> &[u8] {
    let (end, line) = written.split_last().expect("a line is never empty");
    assert!(*end == b'\n' && !line.contains(&b'\n'), "one line");
    line
}

/// The lines that come out, `None` for one that is too long.
fn lines<'a>(limit: usize, pieces: impl IntoIterator<Item = &'a [u8]>) -> Vec<Option<Vec<u8>>> {
    let mut lines = Lines::new(limit);
    let mut found = Vec::new();
    for mut piece in pieces {
        while let Some(line) = lines.take(&mut piece) {
            found.push(line.ok());
        }
        assert!(piece.is_empty() && lines.held() <= limit);
    }
    found
}
