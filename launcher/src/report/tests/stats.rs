//! The table of `--stats`.

use transport_lapi::bootstrap::control::{ControlMessage, MessageCounts, ProtocolCounts};

use super::{exit_log, ms};
use crate::report::stats;

#[test]
fn the_numbers_of_ranks_are_added_up() {
    let mut job = exit_log(3);
    assert_eq!(
        stats(&job),
        "mpjrun: --stats: no rank has come to its end, where it sends its numbers\n"
    );
    let eager = |messages| ProtocolCounts { messages, bytes: 80, unexpected: 1 };
    for (rank, messages) in [(0, 10), (2, u64::MAX)] {
        let counters = MessageCounts {
            eager: eager(messages),
            received: 5,
            fallbacks: 2,
            unexpected_bytes: 64 * rank as u64,
            dropped: 1 + rank as u64,
            ..MessageCounts::default()
        };
        job.note(rank, ControlMessage::Leaving { counters }, ms(1));
        for (name, times) in
            [("Scan by doubling", 3), ("Barrier by hosts", u64::MAX), ("Scan by doubling", 4)]
        {
            job.note(rank, ControlMessage::Chosen { name: name.to_owned(), times }, ms(1));
        }
    }
    let expected = "\
mpjrun: messages sent, by protocol; unexpected ones came before their receive
mpjrun: rank                 eager  bytes  unexpected  rendezvous  bytes  unexpected  received  most unexpected bytes
mpjrun:    0                    10     80           1           0      0           0         5                      0
mpjrun:    2  18446744073709551615     80           1           0      0           0         5                    128
mpjrun:  all  18446744073709551615    160           2           0      0           0        10                    128
mpjrun: 4 messages went by rendezvous for want of unexpected-message memory (MPJ_EARLY_LIMIT)
mpjrun: Barrier by hosts was chosen 18446744073709551615 times
mpjrun: Scan by doubling was chosen 14 times
mpjrun: 4 packets were dropped that strangers had sent, or that had lost their turn
mpjrun: ranks that have not sent their numbers: 1
";
    assert_eq!(stats(&job), expected);
}
