//! An agent's part in the search for deadlocks: it watches the ranks of its host, tells when they are still, and answers
//! whether they have been since. [`crate::hang::agreement`] says what follows. Owned by the agent's poll loop, which passes
//! it the time.

use std::time::{Duration, Instant};

use transport_lapi::bootstrap::control::agents::News;
use transport_lapi::bootstrap::waits::JobView;

use crate::hang::watch::{self, Stage, Stillness, Watch};

/// See the module's head.
pub(crate) struct HostWatch {
    /// The place of the host.
    host: u32,
    watch: Watch,
    /// Time between two looks.
    interval: Duration,
    next_look: Instant,
    /// The number of the stillness that was told last.
    told: Option<u64>,
    /// The round in which an answer is due.
    asked: Option<u64>,
}

impl HostWatch {
    /// Looks at the ranks of a host in intervals of this length.
    pub(crate) fn new(host: u32, interval: Duration) -> Self {
        let next_look = Instant::now() + interval;
        Self { host, watch: Watch::new(true, None), interval, next_look, told: None, asked: None }
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

    /// The answer that is due once all ranks are gone, and nobody looks at them any more.
    pub(crate) fn last_answer(self) -> Option<News> {
        let answer = |round| News::HasBeenStill { host: self.host, round, still: false };
        self.asked.map(answer)
    }

    /// Looks at the ranks if it is time, and tells what there is to tell. `is_gone` says of which ranks nothing more will
    /// come.
    pub(crate) fn look(
        &mut self,
        view: &JobView,
        is_gone: impl Fn(usize) -> bool,
        now: Instant,
        news: &mut Vec<News>,
    ) {
        if now < self.next_look {
            return;
        }
        let begun = Instant::now();
        let stage = |place| if is_gone(place) { Stage::Ended } else { Stage::Running };
        self.watch.look(view, stage, now);
        let found = self.watch.stillness();
        self.tell(found, news);
        // It may last, if other hosts compute.
        let pause = if found.is_some() { self.interval } else { self.watch.pause(self.interval) };
        self.next_look = now + pause.max(4 * begun.elapsed());
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
        let mut watch = HostWatch::new(0, Duration::from_secs(1));
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
