//! The texts by which peers describe connections.

use std::time::Duration;

use mpt_original::{AuthKind, DescribedPath, Description, DescriptionError, MAX_DESCRIPTION};

use crate::saved::{SAVED, address, described};

fn parse(text: &str) -> Result<Description, DescriptionError> {
    Description::parse(text.as_bytes())
}

#[test]
fn a_description_as_the_original_writes_it_is_read() {
    assert_eq!(parse(SAVED), Ok(described()));
    assert_eq!(parse(&format!("{SAVED}\0")), Ok(described()), "a string may end with a zero byte");
    assert_eq!(parse(SAVED.trim_end()), Ok(described()), "the last line needs no newline");
    assert_eq!(
        parse(&SAVED.to_uppercase().replace("ETH1", "eth1")).map(|read| read.paths.len()),
        Ok(2)
    );
}

#[test]
fn a_description_reads_back_as_written() {
    let text = described().to_text();
    assert!(text.starts_with(";;;;;"), "the original drops four characters of this comment");
    assert_eq!(parse(&text), Ok(described()));
    let mut largest = described();
    largest.name = "n".repeat(127);
    largest.paths = vec![largest.paths[1].clone(); 20];
    largest.networks = vec![largest.networks[0]; 20];
    let text = largest.to_text();
    assert!(text.len() < MAX_DESCRIPTION, "{}", text.len());
    assert_eq!(parse(&text), Ok(largest));
}

#[test]
fn missing_keys_have_the_defaults_of_the_original() {
    let least = ";;;;;\n[connection]\nip_local = fd00::3\nip_remote = fd00::2\npath_count = 1\n\
                 [path_0]\npublic_ipaddr = 192.0.2.1\nkeepalive_time = 255";
    let description = parse(least).expect("a description");
    let Description { name, local_port, local_command_port, reorder_window, max_delay, .. } =
        &description;
    assert_eq!((&**name, *local_port, *local_command_port), ("connection", 0, 65001));
    assert_eq!((description.remote_port, description.remote_command_port), (65000, 65050));
    assert_eq!((*reorder_window, *max_delay), (0, Duration::from_millis(100)));
    assert_eq!((description.auth, description.networks.len()), (AuthKind::None, 0));
    let DescribedPath { interface, private, gateway, remote, .. } = &description.paths[0];
    assert_eq!(interface, "unnamed_path");
    assert_eq!([private, gateway, remote], [&address("0.0.0.0"); 3]);
    let path = &description.paths[0];
    assert_eq!((path.dead_time.as_secs(), path.weight_in, path.weight_out), (765, 1, 1));
    assert!(!path.down);
}

#[test]
fn values_out_of_bounds_are_refused_with_their_key_or_line() {
    use DescriptionError::{Begin, Line, Long, Missing, Sections, Value};
    let without = |line: &str| SAVED.replace(&format!("{line}\n"), "");
    let with = |key: &str, value: &str| {
        let start = SAVED.find(key).expect("the key");
        let end = start + SAVED[start..].find('\n').expect("its end");
        format!("{}{key} = {value}{}", &SAVED[..start], &SAVED[end..])
    };
    for (text, error) in [
        (String::new(), Begin),
        (";;;;".to_owned(), Begin),
        (SAVED.replace(";;;;;;;###", ";;;;[a]"), Begin),
        (format!("{SAVED}{}", ";".repeat(MAX_DESCRIPTION)), Long),
        (SAVED.replace("office", "öffice"), Line(3)),
        (format!("{SAVED}dst_addr = 0.0.0.0/0\n"), Line(49)),
        (SAVED.replace("[path_1]", "[path_0]"), Line(33)),
        (SAVED.replace("[path_1]", "[path_2]"), Sections),
        (SAVED.replace("[connection]", "[tun_0]"), Sections),
        (format!("{SAVED}[path_2]\n"), Sections),
        (with("path_count", "1"), Sections),
        (with("path_count", "3"), Sections),
        (with("path_count", "0"), Value("path_count")),
        (with("path_count", "21"), Value("path_count")),
        (with("path_count", "99999999999999999999"), Value("path_count")),
        (with("path_count", "-1"), Value("path_count")),
        (with("path_count", "+2"), Value("path_count")),
        (with("path_count", "0x2"), Value("path_count")),
        (with("path_count", ""), Value("path_count")),
        (with("network_count", "21"), Value("network_count")),
        (with("network_count", "0"), Sections),
        (with("name", &"n".repeat(128)), Value("name")),
        (with("name", ""), Value("name")),
        (with("name", "\"a;b\""), Value("name")),
        (with("name", "a\\"), Line(3)),
        (with("ip_ver", "6"), Value("ip_ver")),
        (with("ip_ver", "5"), Value("ip_ver")),
        (with("ip_local", "10.0.0.3/24"), Value("ip_local")),
        (with("ip_local", "fd00::1"), Value("ip_ver")),
        (without("ip_local         = 10.0.0.3"), Missing("ip_local")),
        (with("local_port", "65536"), Value("local_port")),
        (with("reorder_window", "10001"), Value("reorder_window")),
        (with("max_buffdelay_msec", "65536"), Value("max_buffdelay_msec")),
        (with("auth_type", "3"), Value("auth_type")),
        (with("interface_name", "eth1; reboot"), Value("interface_name")),
        (with("interface_name", "$(reboot)"), Value("interface_name")),
        (with("interface_name", "sixteen-letters-"), Value("interface_name")),
        (with("public_ipaddr", "private_ipaddr"), Value("public_ipaddr")),
        (with("gw_ipaddr", "fd00::1"), Value("ip_ver")),
        (without("public_ipaddr    = 192.0.2.1"), Missing("public_ipaddr")),
        (with("keepalive_time", "256"), Value("keepalive_time")),
        (with("dead_time", "65536"), Value("dead_time")),
        (with("weight_in", "0"), Value("weight_in")),
        (with("weight_out", "10001"), Value("weight_out")),
        (with("src_addr", "192.168.3.0/33"), Value("src_addr")),
        (with("src_addr", "192.168.3.0/+4"), Value("src_addr")),
        (with("dst_addr", "::/0"), Value("ip_ver")),
        (without("dst_addr         = 0.0.0.0/0"), Missing("dst_addr")),
    ] {
        // A mark of a comment ends a value; the rest of it may be valid.
        let expected = if text.contains("eth1; reboot") { Ok(()) } else { Err(error) };
        assert_eq!(parse(&text).map(drop), expected, "{text}");
    }
    let latin = [SAVED.as_bytes(), b"; \xf6\n"].concat();
    assert_eq!(Description::parse(&latin), Err(Line(49)));
    // The last prefix has the length 0 with or without `/0`.
    for end in 0..SAVED.len() - "/0\n".len() {
        let read = parse(&SAVED[..end]);
        assert!(read != Ok(described()), "cut off after {end} bytes");
    }
}
