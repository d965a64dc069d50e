//! Two ends that do not fit: each cause is named in status and log within five seconds, with its code, and nothing is
//! named where all is well.
//!
//! The causes are [`settings`] of the two that contradict each other, [`templates`] that the client does not fit, and the
//! [`network`] between them. [`doctor`] is about what only `mpt doctor` finds, and [`health`] about two ends that fit.
//! [`ends`] are the two daemons and what they say.

mod doctor;
mod ends;
mod health;
mod network;
mod settings;
mod templates;

pub(crate) use self::ends::{await_named, await_problem, without_paths};
pub(crate) use self::health::assert_health;
use crate::site::TWO_LINKS;
use crate::suite::Test;

pub(crate) const TESTS: &[Test] = &[
    ("disagree::another_key", || {
        settings::keys("key = 7\n", "key = 8\n", "with GRE key 8, this connection has 7")
    }),
    ("disagree::a_key_there_only", || {
        settings::keys("", "key = 8\n", "with GRE key 8, this connection has none")
    }),
    ("disagree::a_key_here_only", || {
        settings::keys("key = 7\n", "", "with no GRE key, this connection has 7")
    }),
    ("disagree::another_key_in_extended_framing", settings::another_key_extended),
    ("disagree::another_peer", || settings::another_peer("framing = 'plain'")),
    ("disagree::another_peer_in_extended_framing", || {
        settings::another_peer("framing = 'extended'")
    }),
    ("disagree::another_peer_than_a_server_has_that_names_no_address", || {
        settings::learned(
            |left| left.replace("'10.9.0.2'", "'10.9.0.3'"),
            "addresses",
            "its tunnel address is 10.9.0.1 and ours 10.9.0.3",
        )
    }),
    ("disagree::another_address_than_a_server_expects_that_names_no_address", || {
        settings::learned(
            |left| left.replace("'10.9.0.1/24'", "'10.9.0.7/24'"),
            "addresses",
            "its tunnel address is 10.9.0.7 and ours 10.9.0.2",
        )
    }),
    ("disagree::another_key_than_a_server_has_that_names_no_address", || {
        settings::learned(
            |left| left.replace("framing =", "key = 8\nframing ="),
            "key",
            "with GRE key 8, this connection has none",
        )
    }),
    ("disagree::plain_framing_towards_a_server_that_names_no_address", settings::plain_and_learned),
    ("disagree::another_remote", || settings::another_remote("framing = 'plain'")),
    ("disagree::another_remote_in_extended_framing", || {
        settings::another_remote("framing = 'extended'")
    }),
    ("disagree::blocked_one_way", || network::blocked_one_way("framing = 'plain'")),
    ("disagree::blocked_one_way_in_extended_framing", || {
        network::blocked_one_way("framing = 'extended'")
    }),
    ("disagree::blocked_both_ways", network::blocked_both_ways),
    ("disagree::nothing_listens", || network::nothing_listens(1, TWO_LINKS)),
    ("disagree::nothing_listens_over_ipv6", || {
        network::nothing_listens(2, &crate::site::two_links(6))
    }),
    ("disagree::another_port", settings::another_port),
    ("disagree::another_port_in_extended_framing", settings::another_port_extended),
    ("disagree::rejected_by_a_firewall", network::rejected),
    ("disagree::a_host_that_a_router_does_not_reach", network::unreachable),
    ("disagree::rejected_as_if_nothing_listened", || {
        network::rejected_as_if_closed("framing = 'plain'")
    }),
    ("disagree::rejected_as_if_nothing_listened_in_extended_framing", || {
        network::rejected_as_if_closed("framing = 'extended'")
    }),
    ("disagree::rejected_as_if_nothing_listened_to_either_framing", || {
        network::rejected_as_if_closed("framing = 'auto'")
    }),
    ("disagree::another_framing", settings::another_framing),
    ("disagree::another_version_of_extended_framing", settings::another_version),
    ("disagree::something_else_answers", network::something_else),
    ("disagree::another_kind_of_peer", settings::another_kind),
    ("disagree::a_template_that_does_not_fit", templates::template),
    ("disagree::a_source_that_a_template_does_not_name", || {
        templates::unnamed_source("framing = 'plain'")
    }),
    ("disagree::a_source_that_a_template_does_not_name_in_extended_framing", || {
        templates::unnamed_source("framing = 'extended'")
    }),
    ("disagree::a_second_address_that_a_template_does_not_know", templates::second_address),
    ("disagree::nothing_is_said_where_all_is_well", || health::all_well("")),
    ("disagree::nothing_is_said_where_all_is_well_in_extended_framing", || {
        health::all_well("framing = 'extended'")
    }),
    ("disagree::nothing_is_said_where_all_is_well_and_framing_is_automatic", || {
        health::all_well("framing = 'auto'")
    }),
    ("disagree::copies_of_packets_are_no_loss", health::copies),
    ("disagree::the_doctor_looks_further", doctor::found_by_the_doctor),
    ("disagree::the_doctor_compares_the_settings_of_both_ends", doctor::compared),
    ("disagree::the_doctor_measures_rates_where_asked", doctor::rates),
];
