//! Progress output during a run: a bar on a terminal, nothing elsewhere.

use indicatif::{ProgressBar, ProgressStyle};
use mpj_bench::bundle::Bundle;
use mpj_bench::campaign::Watcher;
use mpj_bench::contender::Contender;
use mpj_bench::model::Launch;
use mpj_bench::store::Writer;

/// Shows the progress, and writes every finished launch to the file.
pub struct Progress {
    bar: ProgressBar,
    writer: Option<Writer>,
    /// Failed launches and other problems, one line each.
    pub complaints: Vec<String>,
}

impl Progress {
    /// Creates the progress bar for this many launches.
    pub fn new(launches: usize, writer: Option<Writer>) -> Self {
        let style = ProgressStyle::with_template("{bar:30} {pos}/{len} {msg} (about {eta} left)");
        let bar = ProgressBar::new(launches as u64);
        bar.set_style(style.expect("the template is right"));
        Self { bar, writer, complaints: Vec::new() }
    }

    /// Removes the bar.
    pub fn finish(&self) {
        self.bar.finish_and_clear();
    }

    fn complain(&mut self, line: String) {
        self.bar.suspend(|| eprintln!("mpj-bench: {line}"));
        self.complaints.push(line);
    }
}

impl Watcher for Progress {
    fn begins(&mut self, round: usize, bundle: &Bundle, contender: &Contender) {
        let name = bundle.name();
        let label = &contender.info.label;
        self.bar.set_message(format!("round {}: {name}, {label}", round + 1));
        // A run may need more rounds than planned.
        if self.bar.length() == Some(self.bar.position()) {
            self.bar.inc_length(1);
        }
    }

    fn ended(&mut self, launch: &Launch) {
        self.bar.inc(1);
        if let Some(reason) = &launch.failure {
            let Launch { runtime, benchmark, ranks, round, .. } = launch;
            let round = round + 1;
            self.complain(format!(
                "{runtime}: {benchmark} on {ranks} ranks, round {round}: {reason}"
            ));
        }
        let written = self.writer.as_mut().map_or(Ok(()), |writer| writer.append(launch));
        if let Err(error) = written {
            self.writer = None;
            self.complain(error.to_string());
        }
    }
}
