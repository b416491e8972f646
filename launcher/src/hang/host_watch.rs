//! An agent's part in the search for hangs: it watches the ranks of its host, tells when they are still, and answers
//! whether they have been since, and for how long they have paused. [`crate::hang::agreement`] and
//! [`crate::hang::pauses`] say what follows. Owned by the agent's poll loop, which passes it the time.

use std::time::{Duration, Instant};

use transport_lapi::bootstrap::control::agents::{HostJob, News, Pause};
use transport_lapi::bootstrap::waits::JobView;

use crate::hang::standstill::{self, Standstill};
use crate::hang::watch::{self, Stage, Stillness, Watch};

/// How long ranks that are asked for their queues are not looked at: they wake up.
const WAKING: Duration = Duration::from_millis(250);
/// A look that comes this late shows that the agent was stopped, or its machine was.
const LATE: Duration = Duration::from_secs(1);

/// See the module's head.
pub(crate) struct HostWatch {
    /// The place of the host.
    host: u32,
    watch: Watch,
    /// `None` where deadlocks are ignored.
    standstill: Option<Standstill>,
    /// Time between two looks.
    interval: Duration,
    next_look: Instant,
    /// The number of the stillness that was told last.
    told: Option<u64>,
    /// The round in which an answer is due.
    asked: Option<u64>,
    /// The round in which the length of a pause is due.
    asked_for_pause: Option<u64>,
}

impl HostWatch {
    /// Looks at the ranks of this host of the job; `None` if there is nothing to look for.
    pub(crate) fn of(job: &HostJob, host: u32) -> Option<Self> {
        // The stall is judged elsewhere.
        let stall = job.finds_stalls.then_some(Duration::MAX);
        let standstill = job.finds_deadlocks.then(|| Standstill::new(standstill::SPAN));
        let watch = Watch::new(job.finds_deadlocks, stall);
        let interval = Duration::from_micros(job.looks);
        let is_on = watch.is_on();
        is_on.then(|| Self {
            host,
            watch,
            standstill,
            interval,
            next_look: Instant::now() + interval,
            told: None,
            asked: None,
            asked_for_pause: None,
        })
    }

    /// When [`HostWatch::look`] has something to do.
    pub(crate) fn next_deadline(&self) -> Instant {
        self.next_look
    }

    /// Notes that an answer is due in this round. It needs a look that begins later.
    pub(crate) fn ask(&mut self, round: u64) {
        self.asked = Some(round);
        self.next_look = Instant::now();
    }

    /// Notes that it is to be told for how long the ranks have paused. That needs a look, too.
    pub(crate) fn ask_pause(&mut self, round: u64) {
        self.asked_for_pause = Some(round);
        self.next_look = Instant::now();
    }

    /// Notes that the ranks are woken, which is no progress.
    pub(crate) fn wake(&mut self) {
        let now = Instant::now();
        self.watch.wake();
        self.standstill.iter_mut().for_each(|standstill| standstill.wake(now));
        self.next_look = now + self.interval.max(WAKING);
    }

    /// Begins anew after a suspension, whose time does not count.
    pub(crate) fn start_anew(&mut self) {
        self.watch.start_anew();
        self.standstill.iter_mut().for_each(Standstill::start_anew);
    }

    /// The answers that are due once all ranks are gone, and nobody looks at them any more.
    pub(crate) fn last_answers(self) -> Vec<News> {
        let host = self.host;
        let answer = |round| News::HasBeenStill { host, round, still: false };
        let pause = |round| News::Paused { host, round, pause: Pause::OVER };
        self.asked.map(answer).into_iter().chain(self.asked_for_pause.map(pause)).collect()
    }

    /// Looks at the ranks if it is time, and tells what there is to tell. `stage` says how far a rank has come.
    pub(crate) fn look(
        &mut self,
        view: &JobView,
        stage: impl Fn(usize) -> Stage,
        now: Instant,
        news: &mut Vec<News>,
    ) {
        if now < self.next_look {
            return;
        }
        if now.saturating_duration_since(self.next_look) > LATE {
            self.start_anew();
        }
        let begun = Instant::now();
        self.watch.look(view, &stage, now);
        self.standstill.iter_mut().for_each(|it| it.look_at_host(view, &stage, now));
        let found = self.watch.stillness();
        self.tell(found, news);
        if let Some(round) = self.asked_for_pause.take() {
            let pause = self.pause(now);
            news.push(News::Paused { host: self.host, round, pause });
        }
        // It may last, if other hosts compute.
        let pause = if found.is_some() { self.interval } else { self.watch.pause(self.interval) };
        self.next_look = now + pause.max(4 * begun.elapsed());
    }

    /// For how long the ranks have paused, as the last look has shown.
    fn pause(&mut self, now: Instant) -> Pause {
        let nanos = |lasted: Duration| lasted.as_nanos() as u64;
        let standstill = self.standstill.as_mut();
        Pause {
            is_waited: standstill.as_ref().is_some_and(|it| it.is_waited()),
            stalled: self.watch.paused(now).map(nanos),
            stood: standstill.and_then(|it| it.lasted(now)).map(nanos),
        }
    }

    /// Tells what a look has found.
    fn tell(&mut self, found: Option<Stillness>, news: &mut Vec<News>) {
        let number = found.map(|found| found.number);
        let is_told = number.is_some() && number == self.told;
        if let Some(round) = self.asked.take() {
            news.push(News::HasBeenStill { host: self.host, round, still: is_told });
        }
        if let Some(Stillness { sent, received, .. }) = found.filter(|_| !is_told) {
            self.told = number;
            news.push(News::Still { host: self.host, sent, received });
        }
    }
}

/// What `host` tells when its ranks are all gone; `None` if it cannot be read what they have sent.
pub(crate) fn last_news(view: &JobView, host: u32) -> Option<News> {
    let (sent, received) = watch::traffic(&watch::look(view))?;
    Some(News::Still { host, sent, received })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(number: u64) -> Option<Stillness> {
        Some(Stillness { number, sent: 5, received: 3 })
    }

    /// What is told about looks that find this, the second and later ones after a question.
    fn told(finds: &[Option<Stillness>]) -> Vec<News> {
        let job = HostJob { looks: 1_000_000, finds_deadlocks: true, ..HostJob::default() };
        let mut watch = HostWatch::of(&job, 0).expect("there is something to look for");
        let mut news = Vec::new();
        for (round, found) in (0..).zip(finds) {
            watch.asked = (round > 0).then_some(round);
            watch.tell(*found, &mut news);
        }
        news
    }

    #[test]
    fn a_stillness_is_told_once_and_confirmed_as_long_as_it_lasts() {
        let still = News::Still { host: 0, sent: 5, received: 3 };
        let answer = |round, still| News::HasBeenStill { host: 0, round, still };
        assert_eq!(told(&[found(1), found(1)]), [still.clone(), answer(1, true)]);
        assert_eq!(told(&[None, None]), [answer(1, false)]);
        assert_eq!(
            told(&[found(1), None, found(2)]),
            [still.clone(), answer(1, false), answer(2, false), still.clone()]
        );
        let another = [still.clone(), answer(1, false), still, answer(2, true)];
        assert_eq!(told(&[found(1), found(2), found(2)]), another);
    }
}
