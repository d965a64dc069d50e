//! The configuration file.

/// A text that may be a configuration. It is accepted, or refused with a report that says where.
pub fn config(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    let Err(refused) = mpt::check_text(text) else { return };
    assert!(!refused.spans.is_empty(), "what is refused has a problem");
    for span in &refused.spans {
        assert!(span.start <= span.end && span.end <= text.len(), "{span:?} of {}", text.len());
    }
    assert!(refused.spans.is_sorted_by_key(|span| span.start), "in the order of the text");
    assert!(refused.report.starts_with("error: ") && refused.report.contains("--> text:"));
}
