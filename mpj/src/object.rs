//! Messages that are one object: any value that serde can serialize. The codec is that of `mpjdev::buffer::codec`, which
//! says why.
//!
//! A collective call moves objects of different lengths in two steps: first the lengths, then the bytes. A rank that
//! cannot give its object says so in place of the length, and takes part in the rest of the call, so that no rank hangs.

use std::any::type_name;
use std::sync::atomic::Ordering;

use mpjdev::buffer::codec::{self, CodecError};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::collective::Partition;
use crate::communicator::{Communicator, PointToPoint};
use crate::envelope::{Source, Status, Tag};
use crate::error::{Error, ObjectError};
use crate::point_to_point::Message;

/// What a rank sends in place of a length if it has no object.
const ABSENT: u64 = u64::MAX;

/// # Objects
impl PointToPoint {
    /// Sends an object: any value that serde can serialize.
    ///
    /// The message is the value in CBOR, in which fields have their names, so all attributes of serde work, and a
    /// receiver of another type gets an error. `Some(None)` arrives as `None`, and values of more than 256 levels, such as
    /// long linked lists, are refused where they arrive. Texts, and bytes in `serde_bytes`, are copied once at each end; vectors of
    /// numbers are faster as buffers, by [`PointToPoint::send`].
    ///
    /// # Errors
    /// As [`PointToPoint::send`]; [`ObjectError::Encode`]; [`ObjectError::TooLong`], see
    /// [`Communicator::set_object_limit`]. Nothing was sent then.
    ///
    /// ```
    /// use std::collections::BTreeMap;
    ///
    /// #[derive(serde::Serialize, serde::Deserialize, Debug, PartialEq)]
    /// enum Task {
    ///     Count { text: String, words: BTreeMap<String, u32> },
    ///     Stop,
    /// }
    ///
    /// mpj::local::run(2, |world| {
    ///     if world.rank() == 0 {
    ///         world.send_object(&Task::Count { text: "b a".into(), words: [("a".into(), 1)].into() }, 1, 0).unwrap();
    ///         world.send_object(&Task::Stop, 1, 0).unwrap();
    ///     } else {
    ///         let (task, status) = world.recv_object::<Task>(mpj::ANY_SOURCE, 0).unwrap();
    ///         assert!(matches!(task, Task::Count { words, .. } if words["a"] == 1));
    ///         assert_eq!(world.recv_object::<Task>(status.source, 0).unwrap().0, Task::Stop);
    ///     }
    /// })?;
    /// # Ok::<(), mpj::local::LocalError>(())
    /// ```
    #[track_caller]
    pub fn send_object<T: Serialize + ?Sized>(
        &self,
        object: &T,
        dest: usize,
        tag: i32,
    ) -> Result<(), Error> {
        let bytes = self.step(self.encoded(object).map_err(Error::from))?;
        self.send(&bytes, dest, tag)
    }

    /// Receives an object that [`PointToPoint::send_object`] has sent. The type may differ from that of the sender as far
    /// as serde allows it: what was sent as a `str` is received as a `String`.
    ///
    /// # Errors
    /// As [`PointToPoint::recv_vec`]; [`ObjectError::Decode`], which names the sender, the type and what is wrong;
    /// [`ObjectError::Refused`], see [`Communicator::set_object_limit`]. The message is consumed.
    ///
    /// ```
    /// mpj::local::run(2, |world| {
    ///     let other = 1 - world.rank();
    ///     world.send_object(&("pi", 3.14, [0_u8; 3]), other, 0).unwrap();
    ///     let ((name, value, _), _) = world.recv_object::<(String, f64, [u8; 3])>(other, 0).unwrap();
    ///     assert_eq!((&*name, value), ("pi", 3.14));
    /// })?;
    /// # Ok::<(), mpj::local::LocalError>(())
    /// ```
    #[track_caller]
    pub fn recv_object<T: DeserializeOwned>(
        &self,
        source: impl Into<Source>,
        tag: impl Into<Tag>,
    ) -> Result<(T, Status), Error> {
        self.mprobe(source, tag)?.recv_object()
    }

    /// Encodes an object, unless it is too long.
    fn encoded<T: Serialize + ?Sized>(&self, object: &T) -> Result<Vec<u8>, ObjectError> {
        let mut bytes = Vec::new();
        self.encode(object, &mut bytes)?;
        Ok(bytes)
    }

    /// Appends an encoded object, unless it is too long, and returns its length.
    fn encode<T: Serialize + ?Sized>(
        &self,
        object: &T,
        into: &mut Vec<u8>,
    ) -> Result<u64, ObjectError> {
        let (before, limit, type_name) = (into.len(), self.object_limit(), type_name::<T>());
        match codec::encode(object, into, before.saturating_add(limit)) {
            Ok(()) => Ok((into.len() - before) as u64),
            Err(CodecError::TooLong { .. }) => Err(ObjectError::TooLong { type_name, limit }),
            Err(error) => Err(ObjectError::Encode { type_name, cause: error.to_string() }),
        }
    }

    /// Refuses an object that is too long.
    fn check_length(&self, source_rank: usize, bytes: u64) -> Result<usize, ObjectError> {
        let limit = self.object_limit();
        let len = usize::try_from(bytes).ok().filter(|len| *len <= limit);
        len.ok_or(ObjectError::Refused { source_rank, bytes, limit })
    }

    fn object_limit(&self) -> usize {
        self.device.object_limit().load(Ordering::Relaxed)
    }
}

impl Message {
    /// Receives the message as an object; see [`PointToPoint::recv_object`].
    ///
    /// # Errors
    /// As [`PointToPoint::recv_object`].
    ///
    /// ```
    /// mpj::local::run(1, |world| {
    ///     world.send_object(&Some("text"), 0, 4).unwrap();
    ///     let message = world.mprobe(0, 4).unwrap();
    ///     assert_eq!(message.recv_object::<Option<String>>().unwrap().0.as_deref(), Some("text"));
    /// })?;
    /// # Ok::<(), mpj::local::LocalError>(())
    /// ```
    #[track_caller]
    pub fn recv_object<T: DeserializeOwned>(self) -> Result<(T, Status), Error> {
        let (on, Status { source, tag, bytes, .. }) = (self.communicator.clone(), self.status());
        if let Err(refused) = on.check_length(source, bytes as u64) {
            self.discard();
            return on.answer(Err(refused));
        }
        let (bytes, status) = self.recv_vec()?;
        Ok((on.step(decoded(&bytes, source, Some(tag)).map_err(Error::from))?, status))
    }
}

/// Decodes the object of a rank.
fn decoded<T: DeserializeOwned>(
    bytes: &[u8],
    source_rank: usize,
    tag: Option<i32>,
) -> Result<T, ObjectError> {
    codec::decode(bytes).map_err(|error| ObjectError::Decode {
        source_rank,
        tag,
        bytes: bytes.len(),
        type_name: type_name::<T>(),
        cause: error.to_string(),
    })
}

/// Encoded objects of all ranks, one behind the other.
struct Gathered {
    blocks: Partition,
    lengths: Vec<u64>,
    bytes: Vec<u8>,
}

impl Gathered {
    /// Makes room for objects of these lengths.
    fn with_room(on: &Communicator, lengths: Vec<u64>) -> Result<Self, ObjectError> {
        let present = lengths.iter().enumerate().map(|(rank, length)| match *length {
            ABSENT => Ok(0),
            length => on.check_length(rank, length),
        });
        let blocks = Partition::packed(present.collect::<Result<Vec<_>, _>>()?);
        let bytes = room(blocks.end())?;
        Ok(Self { blocks, lengths, bytes })
    }

    /// Returns the objects in the order of ranks, with `own` as that of this rank.
    fn objects<T: DeserializeOwned>(
        &self,
        rank: usize,
        own: T,
    ) -> impl Iterator<Item = Result<T, ObjectError>> {
        let mut own = Some(own);
        let mut rest = &self.bytes[..];
        self.lengths.iter().enumerate().map(move |(source, length)| {
            let (object, after) = rest.split_at(self.blocks.count(source));
            rest = after;
            match own.take_if(|_| source == rank) {
                Some(own) => Ok(own),
                None if *length == ABSENT => Err(ObjectError::Absent { rank: source }),
                None => decoded(object, source, None),
            }
        })
    }
}

/// Makes room for encoded objects.
fn room(bytes: usize) -> Result<Vec<u8>, ObjectError> {
    bytemuck::try_zeroed_vec(bytes).map_err(|()| ObjectError::NoRoom { bytes })
}

/// Returns what a rank sends in place of its object's length.
fn length(encoded: &Result<Vec<u8>, ObjectError>) -> u64 {
    encoded.as_ref().map_or(ABSENT, |bytes| bytes.len() as u64)
}

/// # Objects
impl Communicator {
    /// Sets the most bytes that an encoded object may have, on all communicators of this context of the rank; 1 GiB
    /// unless a program sets another limit. Senders refuse longer objects before they send, receivers before they take
    /// memory. All ranks should set the same limit: a collective call is left half done by a receiver with a lower one.
    ///
    /// ```
    /// mpj::local::run(1, |world| {
    ///     world.set_object_limit(100);
    ///     let error = world.send_object(&vec!["word"; 100], 0, 0).unwrap_err();
    ///     assert!(error.to_string().contains("more than 100 bytes"));
    ///     # world.barrier().unwrap();
    /// })?;
    /// # Ok::<(), mpj::local::LocalError>(())
    /// ```
    pub fn set_object_limit(&self, bytes: usize) {
        self.device.object_limit().store(bytes, Ordering::Relaxed);
    }

    /// Gives the root's object to all ranks (MPI_Bcast). The root passes `Some`, the others pass `None`.
    ///
    /// # Errors
    /// As [`Communicator::broadcast`] and [`PointToPoint::recv_object`]; at a root that cannot give its object those of
    /// [`PointToPoint::send_object`] or [`ObjectError::None`], and then on the others [`ObjectError::Absent`].
    ///
    /// ```
    /// mpj::local::run(3, |world| {
    ///     let settings = (world.rank() == 0).then(|| vec![("steps".to_owned(), 100)]);
    ///     let settings = world.broadcast_object(settings, 0).unwrap();
    ///     assert_eq!(settings[0], ("steps".to_owned(), 100));
    /// })?;
    /// # Ok::<(), mpj::local::LocalError>(())
    /// ```
    #[doc(alias = "MPI_Bcast")]
    #[track_caller]
    pub fn broadcast_object<T: Serialize + DeserializeOwned>(
        &self,
        object: Option<T>,
        root: usize,
    ) -> Result<T, Error> {
        if self.rank() != root {
            let mut len = 0;
            self.broadcast(&mut len, root)?;
            let mut bytes = self.room_for(root, len)?;
            self.broadcast(&mut bytes, root)?;
            return self.object(decoded(&bytes, root, None));
        }
        let object = object.ok_or(ObjectError::None);
        let encoded = object.as_ref().map_err(Clone::clone).and_then(|object| self.encoded(object));
        self.broadcast(&mut length(&encoded), root)?;
        self.broadcast(&mut self.object(encoded)?, root)?;
        self.object(object)
    }

    /// Collects the objects of all ranks at the root, in the order of ranks (MPI_Gatherv). The other ranks get `None`.
    ///
    /// # Errors
    /// As [`Communicator::gather`], [`PointToPoint::send_object`] and [`PointToPoint::recv_object`]; at the root
    /// [`ObjectError::Absent`] if a rank could not give its object.
    ///
    /// ```
    /// mpj::local::run(3, |world| {
    ///     let names = world.gather_objects(format!("rank {}", world.rank()), 1).unwrap();
    ///     assert_eq!(names.map(|names| names.join(", ")).as_deref(),
    ///         (world.rank() == 1).then_some("rank 0, rank 1, rank 2"));
    /// })?;
    /// # Ok::<(), mpj::local::LocalError>(())
    /// ```
    #[doc(alias = "MPI_Gatherv")]
    #[track_caller]
    pub fn gather_objects<T: Serialize + DeserializeOwned>(
        &self,
        object: T,
        root: usize,
    ) -> Result<Option<Vec<T>>, Error> {
        let Some(gathered) = self.gather_encoded(&object, root)? else { return Ok(None) };
        self.object(gathered.objects(root, object).collect()).map(Some)
    }

    /// Collects the objects of all ranks at every rank, in the order of ranks (MPI_Allgatherv).
    ///
    /// # Errors
    /// As [`Communicator::gather_objects`], on every rank.
    ///
    /// ```
    /// mpj::local::run(3, |world| {
    ///     let names = world.all_gather_objects("*".repeat(world.rank())).unwrap();
    ///     assert_eq!(names, ["", "*", "**"]);
    /// })?;
    /// # Ok::<(), mpj::local::LocalError>(())
    /// ```
    #[doc(alias = "MPI_Allgatherv")]
    #[track_caller]
    pub fn all_gather_objects<T: Serialize + DeserializeOwned>(
        &self,
        object: T,
    ) -> Result<Vec<T>, Error> {
        let own = self.encoded(&object);
        let mut lengths = vec![0; self.size()];
        self.all_gather(&length(&own), &mut lengths)?;
        let mut gathered = self.object(Gathered::with_room(self, lengths))?;
        let sent = own.as_deref().unwrap_or_default();
        self.all_gatherv(sent, &mut gathered.bytes, &gathered.blocks)?;
        let objects = own.and_then(|_| gathered.objects(self.rank(), object).collect());
        self.object(objects)
    }

    /// Gives object `r` of the root to rank `r` (MPI_Scatterv). The root passes one object for each rank, the others pass
    /// `None`.
    ///
    /// # Errors
    /// As [`Communicator::broadcast_object`]; [`ObjectError::Count`] at a root that has not one object for each rank.
    ///
    /// ```
    /// mpj::local::run(3, |world| {
    ///     let words = (world.rank() == 0).then(|| ["no", "one", "waits"].map(String::from).into());
    ///     let word = world.scatter_objects(words, 0).unwrap();
    ///     assert_eq!(word, ["no", "one", "waits"][world.rank()]);
    /// })?;
    /// # Ok::<(), mpj::local::LocalError>(())
    /// ```
    #[doc(alias = "MPI_Scatterv")]
    #[track_caller]
    pub fn scatter_objects<T: Serialize + DeserializeOwned>(
        &self,
        objects: Option<Vec<T>>,
        root: usize,
    ) -> Result<T, Error> {
        if self.rank() != root {
            let mut len = 0;
            self.scatter(&[0_u64; 0], &mut len, root)?;
            let mut bytes = self.room_for(root, len)?;
            self.scatterv(&[0_u8; 0], &Partition::packed([]), &mut bytes, root)?;
            return self.object(decoded(&bytes, root, None));
        }
        let encoded = self.encoded_parts(objects.as_deref());
        let lengths = match &encoded {
            Ok((lengths, _)) => lengths.clone(),
            Err(_) => vec![ABSENT; self.size()],
        };
        self.scatter(&lengths, &mut 0_u64, root)?;
        let (lengths, bytes) = self.object(encoded)?;
        let blocks = Partition::packed(lengths.into_iter().map(|length| length as usize));
        self.scatterv(&bytes, &blocks, &mut [0_u8; 0], root)?;
        let mut objects = objects.unwrap_or_default();
        Ok(objects.swap_remove(root))
    }

    /// Combines the objects of all ranks at the root by `combine`, in the order of ranks: the first argument is the
    /// result for the lower ranks. `combine` runs at the root only, and the other ranks get `None`. The root has the
    /// encoded objects of all ranks in memory. For an element of a buffer, [`Communicator::reduce`] is faster.
    ///
    /// # Errors
    /// As [`Communicator::gather_objects`].
    ///
    /// ```
    /// use std::collections::BTreeMap;
    /// mpj::local::run(3, |world| {
    ///     let text = ["to be", "or not", "to be"][world.rank()];
    ///     let mut words = BTreeMap::new();
    ///     for word in text.split(' ') {
    ///         *words.entry(word.to_owned()).or_insert(0) += 1;
    ///     }
    ///     let total = world.reduce_objects(words, |mut all, more| {
    ///         for (word, count) in more {
    ///             *all.entry(word).or_insert(0) += count;
    ///         }
    ///         all
    ///     }, 0).unwrap();
    ///     assert!(world.rank() > 0 || total.unwrap()["be"] == 2);
    /// })?;
    /// # Ok::<(), mpj::local::LocalError>(())
    /// ```
    #[track_caller]
    pub fn reduce_objects<T: Serialize + DeserializeOwned>(
        &self,
        object: T,
        mut combine: impl FnMut(T, T) -> T,
        root: usize,
    ) -> Result<Option<T>, Error> {
        let Some(gathered) = self.gather_encoded(&object, root)? else { return Ok(None) };
        let mut objects = gathered.objects(root, object);
        let first = objects.next().expect("a communicator has a rank");
        let combined = objects.try_fold(self.object(first)?, |all, next| Ok(combine(all, next?)));
        self.object(combined).map(Some)
    }

    /// Collects encoded objects at the root, without the root's own.
    #[track_caller]
    fn gather_encoded<T: Serialize>(
        &self,
        object: &T,
        root: usize,
    ) -> Result<Option<Gathered>, Error> {
        if self.rank() != root {
            let own = self.encoded(object);
            self.gather(&length(&own), &mut [0_u64; 0], root)?;
            let sent = own.as_deref().unwrap_or_default();
            self.gatherv(sent, &mut [0_u8; 0], &Partition::packed([]), root)?;
            return self.object(own).map(|_| None);
        }
        let mut lengths = vec![0; self.size()];
        self.gather(&0_u64, &mut lengths, root)?;
        let mut gathered = self.object(Gathered::with_room(self, lengths))?;
        self.gatherv(&[0_u8; 0], &mut gathered.bytes, &gathered.blocks, root)?;
        Ok(Some(gathered))
    }

    /// Encodes the objects that the root of a scatter gives to the others, one behind the other, with their lengths. Its
    /// own has no bytes.
    fn encoded_parts<T: Serialize>(
        &self,
        objects: Option<&[T]>,
    ) -> Result<(Vec<u64>, Vec<u8>), ObjectError> {
        let (objects, ranks) = (objects.ok_or(ObjectError::None)?, self.size());
        if objects.len() != ranks {
            return Err(ObjectError::Count { objects: objects.len(), ranks });
        }
        let (mut lengths, mut all) = (vec![0; ranks], Vec::new());
        for (rank, object) in objects.iter().enumerate().filter(|(rank, _)| *rank != self.rank()) {
            lengths[rank] = self.encode(object, &mut all)?;
        }
        Ok((lengths, all))
    }

    /// Makes room for the object of the root, which has announced this length.
    fn room_for(&self, root: usize, length: u64) -> Result<Vec<u8>, Error> {
        let len = match length {
            ABSENT => Err(ObjectError::Absent { rank: root }),
            length => self.check_length(root, length),
        };
        self.object(len.and_then(room))
    }

    /// Passes on a step of a call; the error handler sees an error.
    fn object<T>(&self, outcome: Result<T, ObjectError>) -> Result<T, Error> {
        self.step(outcome.map_err(Error::from))
    }
}
