//! Sends and receives in partitions, with the same partitions on both sides and with others.

use super::*;
use crate::{Input, Output, PROC_NULL};

#[test]
fn partitions_arrive_one_by_one_however_both_sides_divide_the_data() {
    for (theirs, ours) in [(4, 4), (2, 4), (4, 2), (1, 4), (4, 1), (3, 4)] {
        run(2, move |world| {
            let device = world.device();
            let of_all = |partitions: u32| 12 / u64::from(partitions);
            if world.rank() == 0 {
                let data = Input::keeping((100..112).collect());
                let send = world.psend_init(data, theirs, of_all(theirs), 1, 5).unwrap();
                for _ in 0..3 {
                    let request = send.start().unwrap();
                    assert_eq!(send.start().unwrap_err().class(), ErrorClass::Request);
                    // The last ones first.
                    send.ready((1..theirs as usize).rev()).unwrap();
                    world.barrier().unwrap().run().unwrap();
                    world.barrier().unwrap().run().unwrap();
                    send.ready([0]).unwrap();
                    device.iwait(request).unwrap();
                }
            } else {
                let into = Output::keeping(vec![0; 12]);
                let receive = world.precv_init(into, ours, of_all(ours), 0, 5).unwrap();
                for _ in 0..3 {
                    let mut request = Some(receive.start().unwrap());
                    world.barrier().unwrap().run().unwrap();
                    // The first partition of the sender is missing, so that all that overlap it are.
                    for partition in 0..ours as usize {
                        let is_late = (partition as u64) * of_all(ours) < of_all(theirs);
                        while !is_late && !receive.has_arrived(partition).unwrap() {}
                        assert!(!is_late || !receive.has_arrived(partition).unwrap());
                    }
                    assert!(device.itest(&mut request).unwrap().is_none());
                    world.barrier().unwrap().run().unwrap();
                    let status = device.iwait(request.take().unwrap()).unwrap();
                    assert_eq!((status.source, status.tag, status.bytes), (0, 5, 96));
                    assert!((0..ours as usize).all(|one| receive.has_arrived(one).unwrap()));
                }
                assert_eq!(receive.words(), (100..112).collect::<Vec<_>>());
            }
        });
    }
}

#[test]
fn requests_match_in_the_order_in_which_they_were_made() {
    run(2, |world| {
        let device = world.device();
        if world.rank() == 0 {
            let made = [1, 2, 3].map(|word| {
                let tag = if word == 2 { 8 } else { 7 };
                world.psend_init(Input::keeping(vec![word]), 1, 1, 1, tag).unwrap()
            });
            // They start in another order.
            let requests = [2, 0, 1].map(|index: usize| {
                let request = made[index].start().unwrap();
                made[index].ready([0]).unwrap();
                Some(request)
            });
            device.iwaitall(&mut { requests }).unwrap();
        } else {
            let tags = [8, 7, 7];
            let receives = tags.map(|tag| {
                let into = Output::keeping(vec![0]);
                world.precv_init(into, 1, 1, 0, tag).unwrap()
            });
            let requests = [0, 1, 2].map(|index: usize| Some(receives[index].start().unwrap()));
            device.iwaitall(&mut { requests }).unwrap();
            assert_eq!(receives.map(|receive| receive.words()[0]), [2, 1, 3]);
        }
        assert_eq!(sum(world, 1), 2);
    });
}

#[test]
fn partitions_that_do_not_exist_or_are_ready_are_refused() {
    run(1, |world| {
        let device = world.device();
        let send = world.psend_init(Input::keeping(vec![1, 2]), 2, 1, 0, 0).unwrap();
        assert_eq!(send.ready([0]).unwrap_err().class(), ErrorClass::Request);
        let sent = send.start().unwrap();
        send.ready([0]).unwrap();
        let refused = [0, 2].map(|partition| send.ready([partition]).unwrap_err());
        assert!(refused[0].to_string().contains("ready already"), "{}", refused[0]);
        assert!(refused[1].to_string().contains("partition 2 of 2"), "{}", refused[1]);
        send.ready([1]).unwrap();
        // The receiver has room for one word, which is an error of the receive.
        let short = world.precv_init(Output::keeping(vec![0]), 1, 1, 0, 0).unwrap();
        assert!(short.has_arrived(0).unwrap(), "it is not under way");
        assert_eq!(short.has_arrived(1).unwrap_err().class(), ErrorClass::Arg);
        let received = device.iwait(short.start().unwrap()).map_err(Error::from);
        assert_eq!(received.unwrap_err().class(), ErrorClass::Truncate);
        device.iwait(sent).unwrap();
        let long = world.psend_init(Input::keeping(vec![1]), 2, 1, 0, 0).map(drop);
        assert_eq!(long.unwrap_err().class(), ErrorClass::Buffer);
    });
}

#[test]
fn partitions_for_nobody_go_nowhere() {
    run(1, |world| {
        let device = world.device();
        let send = world.psend_init(Input::keeping(vec![1, 2]), 2, 1, PROC_NULL, 0).unwrap();
        let mut sent = Some(send.start().unwrap());
        assert!(device.itest(&mut sent).unwrap().is_none());
        send.ready(0..2).unwrap();
        device.iwait(sent.take().unwrap()).unwrap();
        let into = Output::keeping(vec![7]);
        let receive = world.precv_init(into, 1, 1, PROC_NULL, 0).unwrap();
        let status = device.iwait(receive.start().unwrap()).unwrap();
        assert_eq!((status.source, status.tag, status.bytes), (u32::MAX, -1, 0));
        assert_eq!(receive.words(), [7]);
    });
}

#[test]
fn tags_of_sends_that_are_gone_are_used_again() {
    let mut tags = PartitionTags::default();
    let kept = [5, 1 << 20].map(|partitions| tags.take(partitions).unwrap());
    assert_eq!((kept, tags.take(0)), ([0, 5], Some(0)));
    for _ in 0..5_000 {
        let base = tags.take(1 << 20).unwrap();
        assert!(base >= 5 + (1 << 20), "{base} is in use");
        tags.give_back(base);
    }
    assert_eq!(tags.take(i32::MAX as u32), None);
    tags.give_back(0);
    tags.give_back(5);
    assert_eq!(tags.take(i32::MAX as u32), Some(0));
    assert_eq!(tags.take(1), None);
}
