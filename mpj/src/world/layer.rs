//! Spans of the crate `tracing` in a timeline of the job's calls.
//!
//! What records them is [`mpjdev`], where [`span`](crate::span) is recorded, too.

use std::cell::RefCell;

use mpjdev::RecordedSpan;
use tracing_core::Subscriber;
use tracing_core::span::Id;
use tracing_subscriber::Layer;
use tracing_subscriber::layer::Context;
use tracing_subscriber::registry::LookupSpan;

thread_local! {
    /// The spans that this thread is in, the innermost last. One that it has entered twice is there twice.
    static ENTERED: RefCell<Vec<(Id, RecordedSpan)>> = const { RefCell::new(Vec::new()) };
}

/// A layer for subscribers of the crate `tracing`: a timeline of the job (`mpjrun --trace`) shows each of the program's
/// spans under its name while a thread is in it, as it shows those of [`span`](crate::span). Without a timeline nothing
/// happens. Events are not shown.
///
/// ```
/// use tracing_subscriber::layer::SubscriberExt;
///
/// let subscriber = tracing_subscriber::registry().with(mpj::SpanLayer);
/// tracing::subscriber::set_global_default(subscriber).unwrap();
/// mpj::local::run(2, |world| {
///     let _part = tracing::info_span!("assemble").entered();
///     world.barrier().unwrap();
/// })?;
/// # Ok::<(), mpj::local::LocalError>(())
/// ```
#[derive(Debug, Clone, Copy, Default)]
pub struct SpanLayer;

impl<S: Subscriber + for<'lookup> LookupSpan<'lookup>> Layer<S> for SpanLayer {
    fn on_enter(&self, id: &Id, context: Context<'_, S>) {
        if !mpjdev::recorded::has_spans() {
            return;
        }
        let Some(metadata) = context.metadata(id) else { return };
        let place = metadata.file().zip(metadata.line());
        let Some(recorded) = RecordedSpan::begin(metadata.name(), place) else { return };
        // A thread that is ending keeps no spans.
        let _ = ENTERED.try_with(|spans| spans.borrow_mut().push((id.clone(), recorded)));
    }

    fn on_exit(&self, id: &Id, _: Context<'_, S>) {
        let _ = ENTERED.try_with(|spans| {
            let mut spans = spans.borrow_mut();
            let last = spans.iter().rposition(|(entered, _)| entered == id);
            last.map(|place| spans.remove(place))
        });
    }
}
