//! A network for jobs of many tasks: each task has one mailbox, from which it takes frames in the order in which they were
//! sent. So a job takes memory for each task, not for each pair of tasks. There is always room.

#![expect(unsafe_code, reason = "an adapter promises its contract")]

use std::collections::VecDeque;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use parking_lot::Mutex;
use transport_lapi::adapter::{
    Adapter, AdapterError, Caps, Doorbell, Endpoint, Events, Frame, Losses, Parts, Pieces, Post,
    TaskId, Ticket,
};
use transport_lapi::{AnyAdapter, ForeignBytes, Piece};

/// One task of a job whose tasks have mailboxes.
pub struct MailboxAdapter {
    me: Endpoint,
    office: Arc<Office>,
    near: Range<TaskId>,
}

/// The mailboxes of all tasks.
struct Office {
    boxes: Vec<Mailbox>,
    losses: AtomicUsize,
}

struct Mailbox {
    bell: Arc<dyn Doorbell>,
    letters: Mutex<Letters>,
    is_lost: AtomicBool,
}

/// See [`Mailbox`].
#[derive(Default)]
struct Letters {
    /// Origin, head and body.
    waiting: VecDeque<(TaskId, Vec<u8>, Vec<u8>)>,
    /// The tasks that have sent the task a frame, or got one from it.
    peers: Vec<TaskId>,
}

/// Makes the adapters of one context, for tasks with these bells.
pub fn in_context(context: usize, bells: Vec<Arc<dyn Doorbell>>) -> Vec<MailboxAdapter> {
    let num_tasks = bells.len();
    let office = Arc::new(Office::new(bells));
    let adapter = |task| MailboxAdapter {
        me: Endpoint { task, num_tasks, context },
        office: office.clone(),
        near: 0..0,
    };
    (0..num_tasks as TaskId).map(adapter).collect()
}

/// Makes the adapter of task 0 in a job of `num_tasks`, of which there are no others; `near` as in [`Parts`].
pub fn alone(num_tasks: usize, near: Range<TaskId>, bell: Arc<dyn Doorbell>) -> MailboxAdapter {
    let office = Arc::new(Office::new(vec![bell]));
    MailboxAdapter { me: Endpoint { task: 0, num_tasks, context: 0 }, office, near }
}

impl MailboxAdapter {
    /// Returns a function that counts, for a task, those that have sent it a frame or got one from it.
    pub fn peers(&self) -> impl Fn(TaskId) -> usize + Send + Sync + use<> {
        let office = self.office.clone();
        move |task| office.boxes[task as usize].letters.lock().peers.len()
    }
}

impl Office {
    fn new(bells: Vec<Arc<dyn Doorbell>>) -> Self {
        let open =
            |bell| Mailbox { bell, letters: Mutex::default(), is_lost: AtomicBool::new(false) };
        Self { boxes: bells.into_iter().map(open).collect(), losses: AtomicUsize::new(0) }
    }
}

// SAFETY: A7 to A9 and A11: bodies are copied inside the call, and there are no one-sided operations.
unsafe impl Adapter for MailboxAdapter {
    fn endpoint(&self) -> Endpoint {
        self.me
    }

    fn caps(&self, _: TaskId) -> Caps {
        Caps {
            name: "mailboxes",
            max_head: 256,
            max_inline: 256,
            max_body: 4 << 10,
            pieces: Pieces::new(4 << 10, [4 << 10; 3]),
            copies_bodies: true,
            gets: None,
            puts: false,
            atomics: false,
        }
    }

    fn parts(&self) -> Parts {
        let bell = self.office.boxes[self.me.task as usize].bell.clone();
        let losses = Arc::new(OfOne { task: self.me.task, office: self.office.clone() });
        let (near, neighbours) = (self.near.clone(), self.office.boxes.len());
        let (area, peer_memory, wait_records, hosts) = (None, None, None, None);
        Parts { bell, losses, area, peer_memory, wait_records, near, neighbours, hosts }
    }

    fn try_send(
        &mut self,
        target: TaskId,
        head: &[u8],
        body: Piece<'_>,
        _: Ticket,
    ) -> Result<Post, AdapterError> {
        let mailbox = &self.office.boxes[target as usize];
        let mut letters = mailbox.letters.lock();
        let own = self.me.task;
        letters.waiting.push_back((own, head.to_vec(), body.to_vec()));
        let is_new = !letters.peers.contains(&own);
        if is_new {
            letters.peers.push(own);
        }
        drop(letters);
        if is_new && target != own {
            let peers = &mut self.office.boxes[own as usize].letters.lock().peers;
            if !peers.contains(&target) {
                peers.push(target);
            }
        }
        mailbox.bell.ring();
        Ok(Post::Taken)
    }

    fn poll(
        &mut self,
        _: Option<TaskId>,
        budget: usize,
        events: &mut dyn Events,
    ) -> Result<usize, AdapterError> {
        let mailbox = &self.office.boxes[self.me.task as usize];
        let mut found = 0;
        while found < budget {
            let letter = mailbox.letters.lock().waiting.pop_front();
            let Some((origin, head, body)) = letter else { break };
            events.frame(Frame { origin, head: &head, body: ForeignBytes::from_slice(&body) });
            found += 1;
        }
        Ok(found)
    }

    fn detach(&mut self) -> bool {
        true
    }
}

impl From<MailboxAdapter> for AnyAdapter {
    fn from(adapter: MailboxAdapter) -> Self {
        Self::brought(adapter)
    }
}

/// The losses of a job, for one task.
struct OfOne {
    task: TaskId,
    office: Arc<Office>,
}

impl Losses for OfOne {
    fn count(&self) -> usize {
        self.office.losses.load(Ordering::Acquire) // SYNC: losses of mailboxes
    }

    fn is_lost(&self, task: TaskId) -> bool {
        let mailbox = self.office.boxes.get(task as usize);
        mailbox.is_some_and(|mailbox| mailbox.is_lost.load(Ordering::Acquire)) // SYNC: losses of mailboxes
    }

    fn declare(&self) {
        let Office { boxes, losses } = &*self.office;
        boxes[self.task as usize].is_lost.store(true, Ordering::Release); // SYNC: losses of mailboxes
        losses.fetch_add(1, Ordering::Release); // SYNC: losses of mailboxes
        boxes.iter().for_each(|mailbox| mailbox.bell.ring());
    }
}
