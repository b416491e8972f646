//! Loads libfabric at run time: programs are built without it, and a job of one host never loads it.
//!
//! - LF1: the entries are those of libfabric 1.17, asked for by their version, so that they and the structures of
//!   `bindings.rs` agree in newer libraries, too. The library stays loaded until the process ends.

#![expect(unsafe_code, reason = "a library of C is loaded and called")]

use std::error::Error as _;
use std::ffi::{CStr, c_char, c_int, c_void};
use std::sync::OnceLock;

use libloading::os::unix::{Library as Loaded, RTLD_LOCAL, RTLD_NOW};

use super::bindings::{fi_fabric_attr, fi_info, fid_fabric};

const NAME: &str = "libfabric.so.1";
/// What a user does who lacks it.
const REMEDY: &str = "install it on every host (Debian: libfabric1; Fedora: libfabric), or let LD_LIBRARY_PATH name \
                      its folder";

type GetInfo = unsafe extern "C" fn(
    u32,
    *const c_char,
    *const c_char,
    u64,
    *const fi_info,
    *mut *mut fi_info,
) -> c_int;
type OpenFabric =
    unsafe extern "C" fn(*mut fi_fabric_attr, *mut *mut fid_fabric, *mut c_void) -> c_int;

/// The entries of libfabric. All other calls go through tables of its objects.
#[derive(Clone, Copy)]
pub(super) struct Library {
    pub(super) getinfo: GetInfo,
    pub(super) dupinfo: unsafe extern "C" fn(*const fi_info) -> *mut fi_info,
    pub(super) freeinfo: unsafe extern "C" fn(*mut fi_info),
    pub(super) fabric: OpenFabric,
    strerror: unsafe extern "C" fn(c_int) -> *const c_char,
    version: unsafe extern "C" fn() -> u32,
}

impl Library {
    /// The library, loaded by the first call.
    ///
    /// # Errors
    /// A sentence about what is missing and what to do.
    pub(super) fn get() -> Result<&'static Self, String> {
        static LIBRARY: OnceLock<Result<Library, String>> = OnceLock::new();
        LIBRARY.get_or_init(Self::load).as_ref().map_err(String::clone)
    }

    fn load() -> Result<Self, String> {
        // SAFETY: LF1; what the library does when it is loaded is the system's concern.
        let loaded = unsafe { Loaded::open(Some(NAME), RTLD_NOW | RTLD_LOCAL) };
        let loaded = loaded.map_err(|error| {
            // What the system says: the library, or one that it needs, is missing or damaged.
            let cause = error.source().map_or_else(|| error.to_string(), ToString::to_string);
            format!("{NAME} cannot be loaded ({cause}); {REMEDY}")
        })?;
        let handle = loaded.into_raw();
        let entry = |name: &CStr, version: &CStr| {
            // SAFETY: the handle is open, and the names end with a zero byte.
            let entry = unsafe { libc::dlvsym(handle, name.as_ptr(), version.as_ptr()) };
            let missing = || {
                let (name, version) = (name.to_string_lossy(), version.to_string_lossy());
                format!("{NAME} has no {name} of {version}, so it is too old; {REMEDY}")
            };
            if entry.is_null() { Err(missing()) } else { Ok(entry) }
        };
        let (getinfo, dupinfo, freeinfo) = (
            entry(c"fi_getinfo", c"FABRIC_1.3")?,
            entry(c"fi_dupinfo", c"FABRIC_1.3")?,
            entry(c"fi_freeinfo", c"FABRIC_1.3")?,
        );
        let fabric = entry(c"fi_fabric", c"FABRIC_1.1")?;
        let strerror = entry(c"fi_strerror", c"FABRIC_1.0")?;
        let version = entry(c"fi_version", c"FABRIC_1.0")?;
        // SAFETY: LF1: the headers declare these entries with these types.
        Ok(unsafe {
            Self {
                getinfo: std::mem::transmute::<*mut c_void, GetInfo>(getinfo),
                dupinfo: std::mem::transmute::<
                    *mut c_void,
                    unsafe extern "C" fn(*const fi_info) -> *mut fi_info,
                >(dupinfo),
                freeinfo: std::mem::transmute::<*mut c_void, unsafe extern "C" fn(*mut fi_info)>(
                    freeinfo,
                ),
                fabric: std::mem::transmute::<*mut c_void, OpenFabric>(fabric),
                strerror: std::mem::transmute::<
                    *mut c_void,
                    unsafe extern "C" fn(c_int) -> *const c_char,
                >(strerror),
                version: std::mem::transmute::<*mut c_void, unsafe extern "C" fn() -> u32>(version),
            }
        })
    }

    /// The words of the library for an error, which is negative.
    pub(super) fn words(&self, error: isize) -> String {
        let number = c_int::try_from(-error).unwrap_or(c_int::MAX);
        // SAFETY: LF1; the answer is a constant text.
        let text = unsafe { CStr::from_ptr((self.strerror)(number)) };
        text.to_string_lossy().into_owned()
    }

    /// Major and minor number of the library.
    pub(super) fn version(&self) -> (u32, u32) {
        // SAFETY: LF1.
        let version = unsafe { (self.version)() };
        (version >> 16, version & 0xffff)
    }
}
