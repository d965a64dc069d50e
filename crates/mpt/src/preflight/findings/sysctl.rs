//! Commands that set a number of the kernel.

/// The command that sets a number below `/proc/sys`.
pub(super) fn set_sysctl(name: &str, value: impl std::fmt::Display) -> String {
    format!("sysctl -w {}={value}", mpt_io::sysctl::with_dots(name))
}
