//! Jobs of more tasks than have state from the beginning: what concerns all tasks concerns those, too, to which a task has
//! never spoken.

use mpj_doubles::channels::own_bells;
use mpj_doubles::{hosts, mailboxes};
use transport_lapi::adapter::AdapterError;
use transport_lapi::{
    Arrival, Context, HeaderAction, LapiError, Next, Options, SendRegion, Session,
};

use crate::support::job::run_with;

/// More than any job of one host has.
const MANY: usize = 300;

/// The tasks from which messages have come.
type Task = Context<Vec<u32>>;

fn note(origins: &mut Vec<u32>, message: Arrival<'_>) -> HeaderAction<Vec<u32>> {
    origins.push(message.origin);
    HeaderAction::Then(Next::Nothing)
}

fn tasks() -> Vec<Task> {
    let task = |adapter| {
        let context = Context::init(adapter, Vec::new(), Options::default());
        context.session().unwrap().addr_set(1, note).unwrap();
        context
    };
    mailboxes::in_context(0, own_bells(MANY)).into_iter().map(task).collect()
}

fn send(from: &Task, target: u32) -> Result<(), LapiError> {
    from.session().unwrap().amsend_bytes(target, 1, &[], &[7; 100])
}

fn come(to: &Task) -> Vec<u32> {
    let mut session = to.session().unwrap();
    while session.progress().unwrap() > 0 {}
    std::mem::take(&mut session.state)
}

/// The ranks of a host do not follow each other, so none has state from the beginning.
#[test]
fn ranks_that_are_dealt_out_to_hosts_send_long_messages() {
    let network = |context, bells| Ok(mailboxes::in_context(context, bells));
    let job = hosts::job(&hosts::plan(MANY, |task| task % 10), 1, network).unwrap();
    let task = |adapter| {
        let context = Context::init(adapter, Vec::new(), Options::default());
        context.session().unwrap().addr_set(1, note).unwrap();
        context
    };
    let tasks: Vec<Task> = job.into_iter().flatten().map(task).collect();
    let body = vec![7; 2 << 20];
    // 1 and 11 are of one host, 0 of another one.
    for (from, to) in [(1, 11), (1, 0), (0, 1), (0, 10)] {
        tasks[from].session().unwrap().amsend_bytes(to as u32, 1, &[], &body).unwrap();
        let mut came = Vec::new();
        while came.is_empty() {
            tasks[from].session().unwrap().progress().unwrap();
            came = come(&tasks[to]);
        }
        assert_eq!(came, [from as u32]);
    }
}

#[test]
fn collective_calls_reach_all() {
    run_with(
        mailboxes::in_context(0, own_bells(MANY)),
        Options::default(),
        |_| (),
        |context| {
            let values = context.address_init(u64::from(context.task()) + 1).unwrap();
            assert!(values.into_iter().eq(1..=MANY as u64));
            context.gfence().unwrap();
        },
    );
}

#[test]
fn the_loss_of_a_task_that_was_never_spoken_to_is_noticed() {
    let tasks = tasks();
    tasks[290].session().unwrap().adapter().parts().losses.declare();
    let mut session = tasks[0].session().unwrap();
    assert!(session.notice_losses().unwrap());
    let lost = |error| matches!(error, LapiError::Adapter(AdapterError::PeerLost { task: 290 }));
    assert!(session.check_lost().is_err_and(lost));
    drop(session);
    assert!(send(&tasks[0], 290).is_err_and(lost));
    send(&tasks[0], 289).unwrap();
    assert_eq!(come(&tasks[289]), [0]);
}

#[test]
fn a_task_that_was_never_spoken_to_can_be_given_up() {
    let tasks = tasks();
    let all = |act: fn(&mut Session<Vec<u32>>, u32) -> Result<(), LapiError>| {
        act(&mut tasks[0].session().unwrap(), 270).unwrap();
        act(&mut tasks[270].session().unwrap(), 0).unwrap();
    };
    all(Session::purge_totask);
    let refused = send(&tasks[0], 270);
    assert!(matches!(refused, Err(LapiError::TgtPurged { target: 270 })), "{refused:?}");
    send(&tasks[0], 271).unwrap();
    all(Session::resume_totask);
    assert_eq!((come(&tasks[270]), come(&tasks[0]), come(&tasks[271])), (vec![], vec![], vec![0]));
    send(&tasks[0], 270).unwrap();
    assert_eq!(come(&tasks[270]), [0]);
    for task in [300, u32::MAX] {
        assert!(matches!(send(&tasks[0], task), Err(LapiError::Tgt { num_tasks: MANY, .. })));
        let sent = tasks[0].session().unwrap().try_amsend(task, 1, 0, SendRegion::EMPTY);
        assert!(!sent, "there is no task {task}");
    }
}

#[test]
fn a_fence_waits_for_tasks_that_were_spoken_to() {
    run_with(
        mailboxes::in_context(0, own_bells(MANY)),
        Options::default(),
        |_| Vec::new(),
        |context| {
            let next = (context.task() + 150) % MANY as u32;
            context.session().unwrap().addr_set(1, note).unwrap();
            context.gfence().unwrap();
            send(context, next).unwrap();
            context.fence().unwrap();
            context.gfence().unwrap();
            assert_eq!(come(context).len(), 1);
        },
    );
}
