//! The conformance suite of the device: MPI's rules for point-to-point messages, whatever adapter
//! connects the ranks and whichever protocols carry the messages.
//!
//! [`crate::device_conformance!`] makes the tests of one combination; `tests/backends.rs` lists the
//! combinations. Each test is a function over a [`job::Setup`]; its ranks are threads.

pub mod begun;
pub mod buffers;
pub mod cancel;
pub mod completion;
pub mod contract;
pub mod ending;
pub mod flow;
pub mod job;
pub mod layouts;
pub mod matching;
pub mod probe;
pub mod rank;
pub mod synchronous;
pub mod threads;
pub mod transfer;
pub mod truncation;
pub mod withdrawal;

/// The tests of one way to connect ranks with one set of options, as a module of `#[test]` functions.
#[macro_export]
macro_rules! device_conformance {
    ($name:ident, $adapters:ident, $options:expr) => {
        mod $name {
            use super::*;

            fn setup() -> $crate::conformance::device::job::Setup {
                $crate::conformance::device::job::Setup::new($adapters, $options)
            }

            $crate::device_conformance! { @topics
                transfer {
                    posted_receives_of_every_size
                    unexpected_messages_of_every_size
                    blocking_ping_pong_of_every_size
                    self_sends
                    exchange_of_all_with_all
                    many_to_one
                    ring_of_five
                }
                layouts {
                    strided_messages
                    shapes_that_differ
                }
                buffers {
                    buffers_of_every_size
                    a_buffer_may_be_used_again_at_once
                    messages_that_are_no_buffers
                    writable_buffers_are_not_sent
                }
                matching {
                    messages_do_not_overtake
                    small_messages_do_not_overtake_large_ones
                    wildcards_take_the_earliest_message
                    the_earliest_posted_receive_is_met
                    a_receive_takes_only_what_it_asks_for
                    contexts_are_apart
                }
                synchronous {
                    unexpected_sends_wait_for_the_match
                    posted_receives_end_them
                    the_blocking_form_waits
                    matched_by_a_probed_receive
                    to_oneself
                }
                probe {
                    a_probe_leaves_the_message
                    a_probe_sees_only_what_it_asks_for
                    a_probe_waits
                    a_matched_probe_takes_the_message
                    a_message_may_be_received_while_it_arrives
                    a_long_message_may_be_probed_while_it_arrives
                }
                completion {
                    testing
                    testing_lists
                    looking_without_taking
                    waiting_for_any
                    waiting_for_some
                    waiting_for_all
                    lists_of_empty_places
                    one_failure_in_a_list
                    sends_in_lists
                }
                cancel {
                    a_posted_receive
                    a_receive_that_has_met_its_message
                    a_cancelled_receive_in_a_list
                    other_receives_keep_their_order
                    dropped_requests
                }
                begun {
                    their_client_ends_them
                    in_lists_with_messages
                    a_sleeping_wait_is_woken
                    continuations_follow_them_and_end_them
                    joint_ones_end_with_the_last
                    they_are_left_alone
                    on_a_device_that_has_ended
                }
                withdrawal {
                    messages_that_nobody_takes
                    messages_that_wait_for_room
                    messages_without_credit
                    messages_that_a_probe_has_taken
                    messages_that_have_met_their_receive
                    messages_that_are_taken_meanwhile
                    receives_are_cancelled
                    the_receiver_is_lost_meanwhile
                    contexts_are_idle_again
                }
                truncation {
                    posted_receives
                    unexpected_messages
                    matched_messages
                }
                contract {
                    no_such_rank
                    no_such_tag
                    requests_of_other_devices
                    messages_of_other_devices
                    the_largest_tag
                }
                flow {
                    unexpected_memory_is_bounded
                    unexpected_memory_comes_back
                    credit_that_has_come_is_used
                    statistics_are_exact
                    the_dump_names_what_is_queued
                    the_dump_of_an_idle_device
                }
                threads {
                    threads_with_their_own_tags
                    threads_that_share_one_tag
                    matched_probes_of_several_threads
                    one_thread_receives_what_another_one_sends
                    giving_up_wakes_a_blocked_thread
                    finishing_wakes_a_blocked_thread
                }
                ending {
                    nothing_goes_after_the_end
                    the_end_waits_for_all
                    sends_before_the_end_arrive
                    a_lost_rank_fails_blocked_receives
                    a_lost_rank_fails_no_other_operation
                    a_lost_rank_ends_no_collective_of_others
                    a_lost_member_fails_what_its_collectives_wait_for
                    a_lost_member_spoils_no_message_of_others
                    a_rank_is_lost_in_the_middle_of_long_messages
                    a_lost_rank_fails_blocked_sends
                    a_lost_rank_fails_probes_and_lists
                    a_lost_rank_fails_polling
                    a_lost_rank_fails_the_end
                    a_rank_that_gives_up_is_lost
                }
            }
        }
    };
    (@topics $($topic:ident { $($test:ident)+ })+) => {
        $($crate::device_conformance! { @tests $topic of $topic $($test)+ })+
    };
    (@tests $name:ident of $topic:ident $($test:ident)+) => {
        mod $name {
            $(#[test]
            fn $test() {
                $crate::conformance::device::$topic::$test(&super::setup());
            })+
        }
    };
}
