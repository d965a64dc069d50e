//! The original MPT at the other end, as far as its behaviour is known.
//!
//! The original cannot be run here, so what stands in for it is written from a description of what it
//! does on the wire, step by step and with its defects, and shares no code with our own:
//! [`frames`] has its bytes, [`cycle`] and [`reorder`] its way of sending and receiving, [`commands`]
//! its command protocol and [`machine`] the rest. [`peer`] runs it, in the host at the right and with
//! an [`interface`] of its own; at the left runs our daemon, and what both agree on is in [`meeting`].
//! That the stand-in does what was captured and written down of the original is itself a test.
//! [`twins`] are two daemons of ours that take each other for an original.

mod carrying;
mod commands;
mod cycle;
mod exchanges;
mod frames;
mod hostile;
mod interface;
mod liveness;
mod machine;
mod meeting;
mod peer;
mod reorder;
mod restarts;
mod settings;
pub(crate) mod twins;

use crate::suite::Test;

/// Those that run in both modes.
pub(crate) const TESTS: &[Test] = &[
    ("original::packets_pass_both_ways_in_order", carrying::both_ways),
    ("original::a_path_on_which_the_original_is_silent", liveness::silent),
    ("original::we_tell_what_is_switched_off_and_on", exchanges::ours),
    ("original::a_restart_of_the_original_is_recognised", restarts::peers),
];

/// What neither rights nor threads have to do with.
pub(crate) const TESTS_ONCE: &[Test] = &[
    ("original::the_stand_in_is_true_to_what_is_known", true_to_what_is_known),
    ("original::frames_are_the_originals_byte_for_byte", carrying::frames),
    ("original::packets_take_the_paths_by_their_weights", carrying::weights),
    ("original::a_path_on_which_the_original_does_not_hear_us", liveness::unheard),
    ("original::up_by_a_command_waits_for_no_keepalive", liveness::up_before_heard),
    ("original::all_paths_cut_and_back", liveness::cut),
    ("original::a_path_that_is_down_at_first_at_the_original", liveness::down_at_first),
    ("original::we_are_told_what_is_switched_off_and_on", exchanges::theirs),
    ("original::an_interface_of_the_original_goes_down", exchanges::interface),
    ("original::both_ends_begin_to_tell_at_once", exchanges::collision),
    ("original::commands_are_lost_in_every_round", exchanges::losses),
    ("original::commands_of_who_has_another_key_or_type_are_named", exchanges::disagreeing),
    ("original::a_connection_is_not_created", exchanges::create),
    ("original::commands_of_who_has_not_the_key", hostile::unauthentic),
    ("original::commands_with_other_cookies_than_were_given", hostile::cookies),
    ("original::malformed_commands_are_refused_by_name", hostile::malformed),
    ("original::commands_on_the_data_port_are_dropped", hostile::on_the_data_port),
    ("original::our_restart_is_recognised", restarts::ours),
];

fn true_to_what_is_known() {
    frames::vectors();
    cycle::vectors();
    reorder::rules();
}
