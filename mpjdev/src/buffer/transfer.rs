//! Sends and receives of buffers.
//!
//! A send copies nothing: the two parts of the buffer are the layout that the transport reads from, and if the buffer
//! is cleared meanwhile, it takes new memory. A receive stores the message in memory of exactly its length, which then
//! becomes the buffer.

use std::sync::{Arc, Mutex, PoisonError};

use transport_lapi::bootstrap::waits::Within;
use transport_lapi::{ForeignBytes, Pack, RecvPart, Sink, Source, Unpack};

use super::Buffer;
use super::error::{BufferError, ParseError, TransferError};
use super::wire::Parts;
use crate::call_names::Call;
use crate::device::{Device, Mode};
use crate::error::Error;
use crate::request::{Request, Status};

impl Buffer {
    /// Returns the bytes of the message, in the form that the device's calls send. Nothing is copied.
    ///
    /// # Errors
    /// [`WrongState::Writable`](super::WrongState::Writable).
    pub fn to_source(&self) -> Result<Source, BufferError> {
        self.check_readable()?;
        Ok(Source::Layout(self.parts.clone()))
    }
}

impl Device {
    /// Starts a send of a committed buffer. It may be read, cleared and dropped while the send is under way.
    ///
    /// # Errors
    /// [`WrongState::Writable`](super::WrongState::Writable); as [`Device::isend`].
    pub fn isend_buffer(
        &self,
        buffer: &Buffer,
        dest: usize,
        tag: i32,
        context: u32,
        mode: Mode,
    ) -> Result<Request, TransferError> {
        Ok(self.isend(buffer.to_source()?, dest, tag, context, mode)?)
    }

    /// Sends a committed buffer, and waits until the send is complete.
    ///
    /// # Errors
    /// [`WrongState::Writable`](super::WrongState::Writable); as [`Device::send`].
    ///
    /// ```
    /// use mpjdev::buffer::{Buffer, ElementType};
    /// use mpjdev::{Device, Mode, Options, wireup};
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let adapter = transport_lapi::wireup::in_process(1, 1)?.remove(0).remove(0);
    /// # let device = Device::new(adapter, Options::default())?;
    /// let mut buffer = Buffer::new(32)?;
    /// buffer.put_section_header(ElementType::Long)?;
    /// buffer.write(&[1_i64, 2])?;
    /// buffer.commit();
    /// device.send_buffer(&buffer, 0, 7, 0, Mode::Standard)?;
    ///
    /// let (mut received, status) = device.recv_buffer(None, Some(7), 0)?;
    /// assert_eq!((status.source, received.get_section_header()?), (0, ElementType::Long));
    /// # Ok(())
    /// # }
    /// ```
    pub fn send_buffer(
        &self,
        buffer: &Buffer,
        dest: usize,
        tag: i32,
        context: u32,
        mode: Mode,
    ) -> Result<(), TransferError> {
        Ok(self.send(buffer.to_source()?, dest, tag, context, mode)?)
    }

    /// Waits for a message of `context` from `source` with `tag`, where `None` means any, and receives it as a buffer.
    ///
    /// # Errors
    /// [`TransferError::Malformed`] for a message that does not have the format of a buffer, or for which there is no
    /// memory; the message is consumed. As [`Device::mprobe`] and [`Device::iwait`].
    pub fn recv_buffer(
        &self,
        source: Option<usize>,
        tag: Option<i32>,
        context: u32,
    ) -> Result<(Buffer, Status), TransferError> {
        let _within = Within::call(Call::Recv);
        let message = self.mprobe(source, tag, context)?;
        let status = message.status();
        let Status { source: source_rank, tag, .. } = status;
        let malformed = |violation| TransferError::Malformed { source_rank, tag, violation };
        // If there is no memory, the message is received all the same, into nothing.
        let landing = Landing::new(status.bytes).unwrap_or_default();
        let is_short = landing.len < status.bytes;
        let received =
            self.imrecv(message, landing.to_sink()).and_then(|request| self.iwait(request));
        match received {
            Err(Error::Truncate { .. }) if is_short => {
                Err(malformed(ParseError::Memory { len: status.bytes }))
            }
            Err(error) => Err(error.into()),
            Ok(status) => {
                let buffer = Buffer::from_wire(landing.into_bytes()).map_err(malformed)?;
                Ok((buffer, status))
            }
        }
    }
}

impl Pack for Parts {
    fn size(&self) -> usize {
        self.primary.len() + self.secondary.len()
    }

    fn pack(&self, offset: usize, mut into: RecvPart<'_>) {
        let primary = self.primary.get(offset..).unwrap_or_default();
        let done = into.store(0, ForeignBytes::from_slice(primary));
        if done < into.len() {
            let secondary = &self.secondary[offset + done - self.primary.len()..];
            into.store(done, ForeignBytes::from_slice(secondary));
        }
    }
}

/// Memory that a message is received into, and that nobody borrows meanwhile.
#[derive(Default)]
struct Landing {
    bytes: Arc<Mutex<Vec<u8>>>,
    len: usize,
}

impl Landing {
    /// Allocates `len` bytes without touching them, so bytes that do not arrive take no pages. `None` if there is no
    /// memory.
    fn new(len: usize) -> Option<Self> {
        let bytes = bytemuck::try_zeroed_vec(len).ok()?;
        Some(Self { bytes: Arc::new(Mutex::new(bytes)), len })
    }

    fn to_sink(&self) -> Sink {
        Sink::layout(Self { bytes: self.bytes.clone(), len: self.len })
    }

    fn into_bytes(self) -> Vec<u8> {
        std::mem::take(&mut self.bytes.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Unpack for Landing {
    fn size(&self) -> usize {
        self.len
    }

    fn unpack(&mut self, offset: usize, from: ForeignBytes<'_>) {
        let mut bytes = self.bytes.lock().unwrap_or_else(PoisonError::into_inner);
        from.copy_to(bytes.get_mut(offset..).unwrap_or_default());
    }
}
