//! Bundles and the calls on their endpoints that are local: allocation, handlers, segments, tags, translations.

use std::sync::Arc;

use crate::error::Error;
use crate::memory::Segment;
use crate::message::{Message, Returned, Token, check_handler};
use crate::name::{Endpoint, EndpointName, Tag};
use crate::state::{Port, State};
use crate::stats::Stats;
use crate::task::{Am, Core, Inside, is_inside};
use crate::{MAX_BUNDLES, NUM_HANDLERS};
use transport_lapi::SessionGuard;

/// How the threads of a task use a bundle.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BundleKind {
    /// AM_SEQ: one thread at a time.
    Sequential,
    /// AM_PAR: several threads at once. Not supported.
    Parallel,
}

/// A handler of messages. It runs only inside calls of its bundle that say so.
pub(crate) type Handler = Box<dyn FnMut(&mut Token<'_>, Message<'_>) + Send>;

/// A handler of returned messages.
pub(crate) type ReturnHandler = Box<dyn FnMut(&mut Token<'_>, Returned) + Send>;

/// The side of an endpoint that faces the program.
pub(crate) struct Local {
    pub name: EndpointName,
    pub handlers: Vec<Option<Handler>>,
    /// Handler 0; `None` is the default, which panics.
    pub on_return: Option<ReturnHandler>,
}

/// The events that end a wait. AM-2's event that a message can be sent is not offered.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum EventMask {
    /// AM_NOEVENTS: none.
    #[default]
    NoEvents,
    /// AM_NOTEMPTY: a message waits at an endpoint of the bundle.
    NotEmpty,
}

/// A set of endpoints that are polled together (`eb_t`).
///
/// A bundle is sequential: its calls borrow it mutably, so one thread uses it at a time. It may move to another thread.
/// Dropping it frees it (AM_FreeBundle) with its endpoints; inside a handler, the endpoints last until AM-2 is
/// terminated.
pub struct Bundle {
    pub(crate) core: Arc<Core>,
    pub(crate) locals: Vec<Local>,
    pub(crate) mask: EventMask,
    /// The endpoint that is looked at first for the next message.
    pub(crate) turn: usize,
    /// How many barriers [`Bundle::leave`] still has to pass.
    pub(crate) barriers_to_leave: u32,
}

impl Am {
    /// Makes a bundle without endpoints (AM_AllocateBundle).
    ///
    /// # Errors
    /// [`Error::Parallel`], [`Error::TooManyBundles`], [`Error::InHandler`].
    pub fn allocate_bundle(&self, kind: BundleKind) -> Result<Bundle, Error> {
        if kind == BundleKind::Parallel {
            return Err(Error::Parallel { task: self.task() });
        }
        let core = Arc::clone(self.core());
        let mut session = core.session()?;
        if session.state.bundles == MAX_BUNDLES {
            return Err(Error::TooManyBundles { task: core.task() });
        }
        session.state.bundles += 1;
        drop(session);
        Ok(Bundle {
            core,
            locals: Vec::new(),
            mask: EventMask::NoEvents,
            turn: 0,
            barriers_to_leave: 3,
        })
    }
}

impl Drop for Bundle {
    fn drop(&mut self) {
        if is_inside() {
            return;
        }
        self.core.free(self.locals.iter().map(|local| local.name.number));
        if let Ok(mut session) = self.core.session_even_then() {
            session.state.bundles -= 1;
        }
    }
}

/// The calls on a bundle's endpoints that only change the endpoint. All of them fail with [`Error::UnknownEndpoint`] if
/// the handle names no endpoint of this bundle, with [`Error::Terminated`] after AM-2 was terminated, and with
/// [`Error::InHandler`] inside a handler of another bundle.
impl Bundle {
    /// Makes an endpoint (AM_AllocateEndpoint). It has the tag [`Tag::NONE`], so it refuses every message; no segment;
    /// no handlers, but a handler 0 that panics; and 256 translations, none of them mapped.
    ///
    /// # Errors
    /// [`Error::TooManyEndpoints`].
    pub fn allocate_endpoint(&mut self) -> Result<Endpoint, Error> {
        let name = self.core.session()?.state.add_port()?;
        let handlers = std::iter::repeat_with(|| None).take(NUM_HANDLERS).collect();
        self.locals.push(Local { name, handlers, on_return: None });
        Ok(Endpoint { core: self.core.id, number: name.number })
    }

    /// Frees an endpoint (AM_FreeEndpoint). Requests that wait there, or come later, go back to their senders with
    /// [`crate::Status::Unreachable`].
    ///
    /// # Errors
    /// Only those of all calls.
    pub fn free_endpoint(&mut self, endpoint: Endpoint) -> Result<(), Error> {
        let place = self.place(endpoint)?;
        drop(self.core.session()?);
        self.locals.remove(place);
        self.core.free(std::iter::once(endpoint.number));
        Ok(())
    }

    /// Moves an endpoint, with its handlers and the messages that wait there, to another bundle of the same [`Am`]
    /// (AM_MoveEndpoint).
    ///
    /// # Errors
    /// [`Error::ForeignBundle`].
    pub fn move_endpoint(&mut self, endpoint: Endpoint, to: &mut Self) -> Result<(), Error> {
        let place = self.place(endpoint)?;
        let session = self.core.session()?;
        if to.core.id != self.core.id {
            return Err(Error::ForeignBundle { task: self.core.task() });
        }
        to.locals.push(self.locals.remove(place));
        session.wake();
        Ok(())
    }

    /// Returns the endpoint's global name.
    ///
    /// # Errors
    /// Only those of all calls.
    pub fn name(&self, endpoint: Endpoint) -> Result<EndpointName, Error> {
        Ok(self.locals[self.place(endpoint)?].name)
    }

    /// Index of the endpoint among those of this bundle.
    pub(crate) fn place(&self, endpoint: Endpoint) -> Result<usize, Error> {
        let is_it = |local: &Local| local.name.number == endpoint.number;
        let place = self.locals.iter().position(is_it).filter(|_| endpoint.core == self.core.id);
        place.ok_or(Error::UnknownEndpoint { task: self.core.task() })
    }

    /// Runs `call` on the side of the endpoint that faces the network.
    fn at_port<R>(
        &self,
        endpoint: Endpoint,
        call: impl FnOnce(&mut Port) -> Result<R, Error>,
    ) -> Result<R, Error> {
        self.place(endpoint)?;
        let mut session = self.core.session()?;
        call(self.port(&mut session, endpoint)?)
    }

    pub(crate) fn port<'a>(
        &self,
        session: &'a mut SessionGuard<'_, State>,
        endpoint: Endpoint,
    ) -> Result<&'a mut Port, Error> {
        let port = session.state.port(endpoint.number);
        port.ok_or(Error::Terminated { task: self.core.task() })
    }

    /// Sets a handler, or replaces it (AM_SetHandler). It gets the messages of all shapes that name it. It runs only
    /// inside [`Bundle::poll`], requests and exchanges of the endpoint's bundle, and a panic in it leaves that call
    /// after the message was answered. It must not wait for other threads of the task, which may wait for it.
    ///
    /// # Errors
    /// [`Error::HandlerZero`]: see [`Bundle::set_return_handler`].
    pub fn set_handler(
        &mut self,
        endpoint: Endpoint,
        handler: u8,
        function: impl FnMut(&mut Token<'_>, Message<'_>) + Send + 'static,
    ) -> Result<(), Error> {
        check_handler(self.core.task(), handler)?;
        let place = self.place(endpoint)?;
        self.at_port(endpoint, |port| {
            port.registered[usize::from(handler)] = true;
            Ok(())
        })?;
        self.locals[place].handlers[usize::from(handler)] = Some(Box::new(function));
        Ok(())
    }

    /// Sets the first handler from 1 on that is not set, and returns its index (AM_SetHandlerAny).
    ///
    /// # Errors
    /// [`Error::HandlersFull`].
    pub fn set_handler_any(
        &mut self,
        endpoint: Endpoint,
        function: impl FnMut(&mut Token<'_>, Message<'_>) + Send + 'static,
    ) -> Result<u8, Error> {
        let Local { handlers, name, .. } = &self.locals[self.place(endpoint)?];
        let free = handlers.iter().skip(1).position(Option::is_none);
        let handler = free.ok_or(Error::HandlersFull { name: *name })? as u8 + 1;
        self.set_handler(endpoint, handler, function)?;
        Ok(handler)
    }

    /// Sets handler 0, which gets the messages of this endpoint that their receivers have refused (AM_SetHandler). The
    /// default panics, with a text that describes the message.
    ///
    /// # Errors
    /// Only those of all calls.
    pub fn set_return_handler(
        &mut self,
        endpoint: Endpoint,
        function: impl FnMut(&mut Token<'_>, Returned) + Send + 'static,
    ) -> Result<(), Error> {
        let place = self.place(endpoint)?;
        drop(self.core.session()?);
        self.locals[place].on_return = Some(Box::new(function));
        Ok(())
    }

    /// Returns the number of handlers, which is always 256 (AM_GetNumHandlers).
    ///
    /// # Errors
    /// Only those of all calls.
    pub fn num_handlers(&self, endpoint: Endpoint) -> Result<usize, Error> {
        self.at_port(endpoint, |_| Ok(NUM_HANDLERS))
    }

    /// Accepts 256 handlers and refuses all other numbers (AM_SetNumHandlers).
    ///
    /// # Errors
    /// [`Error::HandlerCount`].
    pub fn set_num_handlers(&mut self, endpoint: Endpoint, count: usize) -> Result<(), Error> {
        self.at_port(endpoint, |port| match count {
            NUM_HANDLERS => Ok(()),
            _ => Err(Error::HandlerCount { name: port.name, count }),
        })
    }

    /// Sets the tag (AM_SetTag). Messages that were accepted are not affected.
    ///
    /// # Errors
    /// Only those of all calls.
    pub fn set_tag(&mut self, endpoint: Endpoint, tag: Tag) -> Result<(), Error> {
        self.at_port(endpoint, |port| {
            port.tag = tag;
            Ok(())
        })
    }

    /// Returns the tag (AM_GetTag).
    ///
    /// # Errors
    /// Only those of all calls.
    pub fn tag(&self, endpoint: Endpoint) -> Result<Tag, Error> {
        self.at_port(endpoint, |port| Ok(port.tag))
    }

    /// Sets the segment, where long messages are stored (AM_SetSeg). Messages that were accepted before still go to the
    /// old segment, which is freed when the last of them was handled.
    ///
    /// # Errors
    /// Only those of all calls.
    pub fn set_segment(&mut self, endpoint: Endpoint, bytes: Vec<u8>) -> Result<(), Error> {
        self.at_port(endpoint, |port| {
            port.segment = Some(Segment::new(bytes));
            Ok(())
        })
    }

    /// Takes the segment away from the endpoint; `None` if there is none.
    ///
    /// # Errors
    /// [`Error::SegmentInUse`]; the endpoint keeps the segment.
    pub fn take_segment(&mut self, endpoint: Endpoint) -> Result<Option<Vec<u8>>, Error> {
        self.at_port(endpoint, |port| match port.segment.take().map(Segment::into_bytes) {
            None => Ok(None),
            Some(Ok(bytes)) => Ok(Some(bytes)),
            Some(Err(segment)) => {
                port.segment = Some(segment);
                Err(Error::SegmentInUse { name: port.name })
            }
        })
    }

    /// Returns the length of the segment in bytes; 0 if there is none (AM_GetSeg).
    ///
    /// # Errors
    /// Only those of all calls.
    pub fn segment_len(&self, endpoint: Endpoint) -> Result<usize, Error> {
        self.at_port(endpoint, |port| Ok(port.segment.as_ref().map_or(0, Segment::len)))
    }

    /// Runs `access` on the bytes of the segment, none if there is no segment. Long messages may be stored there before
    /// and after, not meanwhile. `access` can make no call of AM-2: it would fail with [`Error::InHandler`].
    ///
    /// # Errors
    /// Only those of all calls.
    pub fn with_segment<R>(
        &mut self,
        endpoint: Endpoint,
        access: impl FnOnce(&mut [u8]) -> R,
    ) -> Result<R, Error> {
        let segment = self.at_port(endpoint, |port| Ok(port.segment.clone()))?;
        let _inside = Inside::enter();
        Ok(match segment {
            None => access(&mut []),
            Some(segment) => segment.with(access),
        })
    }

    /// Returns what the endpoint has sent and received.
    ///
    /// # Errors
    /// Only those of all calls.
    pub fn stats(&self, endpoint: Endpoint) -> Result<Stats, Error> {
        self.at_port(endpoint, |port| Ok(port.stats))
    }

    /// Maps an index to the endpoint with this name; requests to it will carry this tag (AM_Map). An endpoint accepts
    /// messages only from endpoints that it has mapped.
    ///
    /// # Errors
    /// [`Error::IndexRange`], [`Error::Mapped`], [`Error::UnknownName`], [`Error::Frozen`].
    pub fn map(
        &mut self,
        endpoint: Endpoint,
        index: usize,
        name: EndpointName,
        tag: Tag,
    ) -> Result<(), Error> {
        self.check_name(name)?;
        self.at_port(endpoint, |port| port.table.map(index, name, tag))
    }

    /// Maps the lowest free index, and returns it (AM_MapAny).
    ///
    /// # Errors
    /// [`Error::TableFull`], [`Error::UnknownName`], [`Error::Frozen`].
    pub fn map_any(
        &mut self,
        endpoint: Endpoint,
        name: EndpointName,
        tag: Tag,
    ) -> Result<usize, Error> {
        self.check_name(name)?;
        self.at_port(endpoint, |port| port.table.map_any(name, tag))
    }

    fn check_name(&self, name: EndpointName) -> Result<(), Error> {
        let num_tasks = self.core.context.num_tasks();
        match (name.task as usize) < num_tasks {
            true => Ok(()),
            false => Err(Error::UnknownName { name, num_tasks }),
        }
    }

    /// Frees an index (AM_UnMap).
    ///
    /// # Errors
    /// [`Error::IndexRange`], [`Error::Unmapped`], [`Error::Frozen`].
    pub fn unmap(&mut self, endpoint: Endpoint, index: usize) -> Result<(), Error> {
        self.at_port(endpoint, |port| port.table.unmap(index))
    }

    /// Returns whether an index is mapped (AM_GetTranslationInuse).
    ///
    /// # Errors
    /// [`Error::IndexRange`].
    pub fn is_mapped(&self, endpoint: Endpoint, index: usize) -> Result<bool, Error> {
        match self.at_port(endpoint, |port| port.table.get(index)) {
            Ok(_) => Ok(true),
            Err(Error::Unmapped { .. }) => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Returns the name that an index is mapped to (AM_GetTranslationName).
    ///
    /// # Errors
    /// [`Error::IndexRange`], [`Error::Unmapped`].
    pub fn translation_name(
        &self,
        endpoint: Endpoint,
        index: usize,
    ) -> Result<EndpointName, Error> {
        self.at_port(endpoint, |port| port.table.get(index).map(|(name, _)| name))
    }

    /// Returns the tag of the requests to an index (AM_GetTranslationTag).
    ///
    /// # Errors
    /// [`Error::IndexRange`], [`Error::Unmapped`].
    pub fn translation_tag(&self, endpoint: Endpoint, index: usize) -> Result<Tag, Error> {
        self.at_port(endpoint, |port| port.table.get(index).map(|(_, tag)| tag))
    }

    /// Sets the tag of the requests to an index, at any time (AMX_SetTranslationTag).
    ///
    /// # Errors
    /// [`Error::IndexRange`], [`Error::Unmapped`].
    pub fn set_translation_tag(
        &mut self,
        endpoint: Endpoint,
        index: usize,
        tag: Tag,
    ) -> Result<(), Error> {
        self.at_port(endpoint, |port| port.table.set_tag(index, tag))
    }

    /// Returns the number of translations, mapped or not (AM_GetNumTranslations).
    ///
    /// # Errors
    /// Only those of all calls.
    pub fn num_translations(&self, endpoint: Endpoint) -> Result<usize, Error> {
        self.at_port(endpoint, |port| Ok(port.table.len()))
    }

    /// Sets the number of translations (AM_SetNumTranslations).
    ///
    /// # Errors
    /// [`Error::TableLen`], [`Error::Frozen`].
    pub fn set_num_translations(&mut self, endpoint: Endpoint, len: usize) -> Result<(), Error> {
        self.at_port(endpoint, |port| port.table.set_len(len))
    }

    /// Sets how many requests may be outstanding at each translation, once, before the first request; freezes the
    /// translations (AM_SetExpectedResources). AM-2's number of endpoints has no meaning here and is left out.
    ///
    /// # Errors
    /// [`Error::Depth`] unless `1 <= outstanding <= MAX_OUTSTANDING`; [`Error::Frozen`] the second time.
    pub fn set_expected_resources(
        &mut self,
        endpoint: Endpoint,
        outstanding: usize,
    ) -> Result<(), Error> {
        self.at_port(endpoint, |port| port.table.freeze(outstanding))
    }
}
