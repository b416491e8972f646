//! Ranks whose client has names of its own for calls and spaces, or none.

use transport_lapi::bootstrap::control::Vocabulary;

use super::*;

/// Two ranks in these waits, of a client with this vocabulary.
fn shown(vocabulary: Vocabulary, waits: [Wait; 2]) -> String {
    let mut job = joined(2);
    for task in 0..2 {
        let told =
            ControlMessage::Vocabulary { first: 0, contexts: 1, vocabulary: vocabulary.clone() };
        job.note(task as usize, told, ms(2));
    }
    on_request(&job, &waiting(waits))
}

fn in_call(code: u16, wait: Wait) -> Wait {
    Wait { call: CallCode(code), ..wait }
}

#[test]
fn a_client_is_reported_in_its_own_names() {
    let calls = [("meet", true), ("fetch", false), ("await", false)];
    let vocabulary = Vocabulary::new(calls, "bundle", "everybody");
    let meeting = Wait { operation: CallCode(1), space: on(3), ..in_call(1, recv(None, 4)) };
    let fetching = Wait { open: 2, ..in_call(3, recv(0, 5)) };
    let expected = "\
mpjrun: state of the job 1.00 s after start
mpjrun:   ranks  blocked in            peer    tag  bundle     bytes  phase                       seconds
mpjrun:   0      meet                  others    -  1              -  others have not come there  0.50
mpjrun:   1      await (2 open): recv  rank 0    5  everybody      8  no message has come         0.50
mpjrun:   chain: 1 waits for 0 (await: recv tag 5) -> 0 waits for others (meet on bundle 1)
mpjrun:   meet, call 4 on bundle 1: rank 0 has come; who else belongs to it is not known
";
    assert_eq!(shown(vocabulary, [meeting, fetching]), expected);
}

#[test]
fn calls_of_which_nothing_is_known_are_those_of_their_client() {
    let unknown = Wait { since: ms(500), ..Wait::default() };
    let shown = shown(Vocabulary::of_client("am2"), [unknown, unknown]);
    assert!(shown.contains("mpjrun:   0-1    a call of am2  - "), "{shown}");
}

/// Such a call is taken for one that does not wait for all.
#[test]
fn a_call_without_a_name_is_a_number() {
    let collective = Wait { operation: CallCode(17), space: on(1), ..in_call(17, recv(1, 4)) };
    let expected = "\
mpjrun: state of the job 1.00 s after start
mpjrun:   ranks  blocked in  peer    tag  space  bytes  phase                seconds
mpjrun:   0      call 17     rank 1    -  all        8  no message has come  0.50
mpjrun:   1      call 65535  rank 0    9  all        8  no message has come  0.50
mpjrun:   cycle: 0 waits for 1 (call 17) -> 1 waits for 0 (call 65535 tag 9) -> 0
";
    let shown = shown(Vocabulary::default(), [collective, in_call(u16::MAX, recv(0, 9))]);
    assert_eq!(shown, expected);
}

#[test]
fn a_wait_of_which_nothing_is_known_is_a_call() {
    let unknown = Wait { since: ms(500), ..Wait::default() };
    let fence = Wait { phase: Phase::Others, ..unknown };
    let expected = "\
mpjrun: state of the job 1.00 s after start
mpjrun:   ranks  blocked in  peer    tag  space  bytes  phase                       seconds
mpjrun:   0      a call      -         -  -          -  -                           0.50
mpjrun:   1      a call      others    -  -          -  others have not come there  0.50
mpjrun:   cycle: 0 waits for any rank (a call) -> 1 waits for any rank (a call) -> 0
";
    assert_eq!(shown(Vocabulary::default(), [unknown, fence]), expected);
}
