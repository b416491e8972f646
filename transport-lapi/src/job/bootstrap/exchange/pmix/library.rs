//! The library of PMIx, loaded when a job needs it: a handful of functions, with the types that they take.
//!
//! The types are those of every version from 2 on. Functions that only newer versions have are not used, and neither are
//! the macros of the header.
//!
//! - PX1: the types have the layout of the header, which the tests state in numbers. Texts in arrays end with a zero.
//! - PX2: the library is never unloaded: it has threads.
//! - PX3: a function keeps no pointer to its arguments.
//! - PX4: what `PMIx_Get` returns was allocated with `malloc`, and so was the text of a value that is one.

#![expect(unsafe_code, reason = "calls a library in C")]

use std::error::Error;
use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::io;
use std::mem::{ManuallyDrop, MaybeUninit};
use std::ptr;

use libloading::Library;

use crate::adapter::TaskId;

/// Length of the name of a job, with the zero.
const NAMESPACE: usize = 256;
/// Length of a key, with the zero.
const KEY: usize = 512;
/// The number that stands for all ranks of a job.
const WILDCARD: u32 = u32::MAX - 1;
const SUCCESS: c_int = 0;
const NOT_FOUND: c_int = -46;
/// Types of values.
const BOOL: u16 = 1;
const STRING: u16 = 3;
const UINT32: u16 = 14;
/// Values are for all ranks.
const GLOBAL: u8 = 3;

/// `pmix_proc_t`.
#[derive(Clone, Copy)]
#[repr(C)]
struct Proc {
    namespace: [c_char; NAMESPACE],
    rank: u32,
}

/// `pmix_value_t`.
#[repr(C)]
struct Value {
    kind: u16,
    data: Data,
}

/// The data of a value, of which only three kinds are used.
#[repr(C)]
union Data {
    flag: bool,
    number: u32,
    text: *mut c_char,
    longest: [u64; 3],
}

/// `pmix_info_t`.
#[repr(C)]
struct Info {
    key: [c_char; KEY],
    flags: u32,
    value: Value,
}

impl Info {
    /// The directive called `key`, which is on.
    fn on(key: &CStr) -> Self {
        let mut info = Self {
            key: [0; KEY],
            flags: 0,
            value: Value { kind: BOOL, data: Data { longest: [0; 3] } },
        };
        for (place, byte) in info.key.iter_mut().zip(key.to_bytes()) {
            *place = *byte as c_char;
        }
        info.value.data.flag = true;
        info
    }
}

/// The functions.
struct Functions {
    init: unsafe extern "C" fn(*mut Proc, *mut Info, usize) -> c_int,
    put: unsafe extern "C" fn(u8, *const c_char, *mut Value) -> c_int,
    commit: unsafe extern "C" fn() -> c_int,
    fence: unsafe extern "C" fn(*const Proc, usize, *const Info, usize) -> c_int,
    get: unsafe extern "C" fn(
        *const Proc,
        *const c_char,
        *const Info,
        usize,
        *mut *mut Value,
    ) -> c_int,
    abort: unsafe extern "C" fn(c_int, *const c_char, *mut Proc, usize) -> c_int,
    finalize: unsafe extern "C" fn(*const Info, usize) -> c_int,
    error_string: unsafe extern "C" fn(c_int) -> *const c_char,
}

/// Why a call failed: the library's words.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Failure(pub(super) String);

/// A process that is known to the server of PMIx.
pub(super) struct Client {
    functions: Functions,
    own: Proc,
}

/// Loads the library from the first of these places that has it. An error is about the last one.
fn load(places: &[String]) -> io::Result<Functions> {
    let library = |place: &String| {
        // SAFETY: PX2. Its initializers do nothing that depends on the state of this program.
        unsafe { Library::new(place) }.map_err(with_reason)
    };
    let (last, others) = places.split_last().expect("there is a place");
    let library =
        others.iter().find_map(|place| library(place).ok()).map_or_else(|| library(last), Ok)?;
    let library = ManuallyDrop::new(library);
    // SAFETY: PX1: these are the types of the functions; PX2.
    let functions = unsafe { Functions::of(&library) };
    functions.map_err(with_reason)
}

/// The loader's own words, which its error keeps apart.
fn with_reason(error: libloading::Error) -> io::Error {
    let reason = error.source().map(ToString::to_string);
    io::Error::other(reason.unwrap_or_else(|| error.to_string()))
}

impl Functions {
    /// Finds the functions.
    ///
    /// # Safety
    /// PX1, PX2.
    unsafe fn of(library: &Library) -> Result<Self, libloading::Error> {
        // SAFETY: PX1, PX2, as the caller states.
        unsafe {
            Ok(Self {
                init: *library.get(c"PMIx_Init")?,
                put: *library.get(c"PMIx_Put")?,
                commit: *library.get(c"PMIx_Commit")?,
                fence: *library.get(c"PMIx_Fence")?,
                get: *library.get(c"PMIx_Get")?,
                abort: *library.get(c"PMIx_Abort")?,
                finalize: *library.get(c"PMIx_Finalize")?,
                error_string: *library.get(c"PMIx_Error_string")?,
            })
        }
    }
}

impl Client {
    /// Loads the library from one of `places`, and makes this process known to its server.
    pub(super) fn init(places: &[String]) -> io::Result<Result<Self, Failure>> {
        let functions = load(places)?;
        let mut client = Self { functions, own: Proc { namespace: [0; NAMESPACE], rank: 0 } };
        // SAFETY: PX1, PX3: there is room for the process, and no directive.
        let status = unsafe { (client.functions.init)(&raw mut client.own, ptr::null_mut(), 0) };
        Ok(client.check(status).map(|()| client))
    }

    /// Returns the rank of this process.
    pub(super) fn rank(&self) -> u32 {
        self.own.rank
    }

    /// Puts a text.
    pub(super) fn put(&self, key: &str, text: &str) -> Result<(), Failure> {
        let (key, text) = (c_string(key), c_string(text));
        let mut data = Data { longest: [0; 3] };
        data.text = text.as_ptr().cast_mut();
        let mut value = Value { kind: STRING, data };
        // SAFETY: PX1, PX3: the library copies the key and the text, and changes neither.
        self.check(unsafe { (self.functions.put)(GLOBAL, key.as_ptr(), &raw mut value) })
    }

    /// Waits for all ranks, and gets what they have put.
    pub(super) fn fence(&self) -> Result<(), Failure> {
        // SAFETY: it has no arguments.
        self.check(unsafe { (self.functions.commit)() })?;
        let collect = Info::on(c"pmix.collect");
        // SAFETY: PX1, PX3: no list of processes stands for all of this job; there is one directive.
        self.check(unsafe { (self.functions.fence)(ptr::null(), 0, &raw const collect, 1) })
    }

    /// Gets a text that `rank` has put; `None` if it has put none, or something else.
    pub(super) fn text(&self, rank: TaskId, key: &str) -> Result<Option<String>, Failure> {
        let text = |value: &Value| {
            let is_text = value.kind == STRING;
            // SAFETY: PX1: all bits are a pointer, and those of a value of this type are a text's or null.
            let text =
                is_text.then_some(unsafe { value.data.text }).filter(|text| !text.is_null())?;
            // SAFETY: PX1, and PX4: it has not been freed.
            let owned = unsafe { CStr::from_ptr(text) }.to_string_lossy().into_owned();
            // SAFETY: PX4; nothing uses it any more.
            unsafe { libc::free(text.cast()) };
            Some(owned)
        };
        self.get(rank, &c_string(key), text)
    }

    /// Gets a number that the server knows of `rank`, or, if that is `None`, of the job.
    pub(super) fn number(&self, rank: Option<TaskId>, key: &CStr) -> Result<Option<u32>, Failure> {
        // SAFETY: PX1: all bits are a number.
        let number = |value: &Value| (value.kind == UINT32).then_some(unsafe { value.data.number });
        self.get(rank.unwrap_or(WILDCARD), key, number)
    }

    fn get<T>(
        &self,
        rank: u32,
        key: &CStr,
        read: impl FnOnce(&Value) -> Option<T>,
    ) -> Result<Option<T>, Failure> {
        let proc = Proc { rank, ..self.own };
        // Otherwise, it would wait for a value that nobody has put.
        let at_once = Info::on(c"pmix.immediate");
        let mut value = MaybeUninit::new(ptr::null_mut());
        // SAFETY: PX1, PX3: there is one directive, and room for a pointer.
        let status = unsafe {
            let (key, into) = (key.as_ptr(), value.as_mut_ptr());
            (self.functions.get)(&raw const proc, key, &raw const at_once, 1, into)
        };
        if status == NOT_FOUND {
            return Ok(None);
        }
        self.check(status)?;
        // SAFETY: it was initialized here.
        let value = unsafe { value.assume_init() };
        // SAFETY: PX4: it is a value or a null pointer.
        let found = unsafe { value.as_ref() }.and_then(read);
        // SAFETY: PX4; `read` has freed what the value points to, if it is of a type that is expected.
        unsafe { libc::free(value.cast::<c_void>()) };
        Ok(found)
    }

    /// Ends the job.
    pub(super) fn abort(&self, code: i32, why: &str) -> Result<(), Failure> {
        let why = c_string(why);
        // SAFETY: PX3: no list of processes stands for all of this job.
        self.check(unsafe { (self.functions.abort)(code, why.as_ptr(), ptr::null_mut(), 0) })
    }

    /// Leaves the job.
    pub(super) fn finalize(&self) -> Result<(), Failure> {
        // SAFETY: there is no directive.
        self.check(unsafe { (self.functions.finalize)(ptr::null(), 0) })
    }

    fn check(&self, status: c_int) -> Result<(), Failure> {
        if status == SUCCESS {
            return Ok(());
        }
        // SAFETY: it takes any number.
        let text = unsafe { (self.functions.error_string)(status) };
        // SAFETY: it returns a constant text or a null pointer.
        let text = (!text.is_null()).then(|| unsafe { CStr::from_ptr(text) });
        let text = text.map_or("error".into(), CStr::to_string_lossy);
        Err(Failure(format!("{text}, {status}")))
    }
}

/// The text for C, up to its first zero.
fn c_string(text: &str) -> CString {
    let text = text.split('\0').next().unwrap_or_default();
    CString::new(text).expect("it has no zero")
}

#[cfg(test)]
mod tests {
    use std::mem::{align_of, offset_of, size_of};

    use super::*;

    /// The numbers are those of the header of PMIx 4.2.
    #[test]
    fn the_types_have_the_layout_of_the_header() {
        assert_eq!([size_of::<Proc>(), offset_of!(Proc, rank)], [260, 256]);
        assert_eq!([size_of::<Data>(), size_of::<Value>(), align_of::<Value>()], [24, 32, 8]);
        assert_eq!(offset_of!(Value, data), 8);
        assert_eq!([size_of::<Info>(), align_of::<Info>()], [552, 8]);
        assert_eq!([offset_of!(Info, flags), offset_of!(Info, value)], [512, 520]);
    }

    #[test]
    fn a_library_that_is_missing_is_an_error() {
        let missing = load(&["libno-such-thing.so.2".to_owned()]).err().expect("no such library");
        assert!(missing.to_string().contains("libno-such-thing.so.2"), "{missing}");
    }

    #[test]
    fn a_text_for_c_ends_at_its_zero() {
        assert_eq!(c_string("a\0b").as_c_str(), c"a");
    }
}
