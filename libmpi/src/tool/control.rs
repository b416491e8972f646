//! Control variables (MPI-5.0 section 15.3.6): the settings of the environment, by the same names. A tool changes them
//! before the process joins its job, which reads them then and not again. Handles are indices from 1.

use std::ffi::{CStr, c_int, c_ulonglong};
use std::sync::OnceLock;

use mpicore::job::{SETTINGS, Setting, Values};

use super::{Answer, at, index, put, put_text, tool, write};
use crate::abi::*;
use crate::process;

/// The room that a value needs if it is a text, with the zero behind it.
const ROOM: usize = 256;

/// Whether the process had joined its job when a tool first initialized the interface. What tools are told of a variable
/// never changes, so its scope depends on that.
static SEEN_LATE: OnceLock<bool> = OnceLock::new();

/// Notes that a tool initializes the interface.
pub(super) fn first_seen() {
    SEEN_LATE.get_or_init(process::has_joined);
}

/// Returns the datatype of a variable.
fn datatype(setting: &Setting) -> MPI_Datatype {
    match setting.values {
        Values::Words => MPI_INT,
        Values::Number => MPI_UNSIGNED_LONG_LONG,
        Values::Text => MPI_CHAR,
    }
}

/// Returns for whom a change counts.
fn scope(setting: &Setting) -> c_int {
    match SEEN_LATE.get() {
        Some(true) => MPI_T_SCOPE_READONLY,
        _ if setting.is_common => MPI_T_SCOPE_ALL_EQ,
        _ => MPI_T_SCOPE_LOCAL,
    }
}

/// Returns the setting of a handle.
fn of_handle(handle: usize) -> Answer<&'static Setting> {
    let index = handle.checked_sub(1).ok_or(MPI_T_ERR_INVALID_HANDLE)?;
    SETTINGS.get(index).ok_or(MPI_T_ERR_INVALID_HANDLE)
}

impl MPI_T_cvar_handle {
    fn find(self) -> Answer<&'static Setting> {
        of_handle(self.0)
    }
}

impl MPI_T_enum {
    /// Returns the setting whose values it names.
    fn find(self) -> Answer<&'static Setting> {
        let setting = of_handle(self.0)?;
        if setting.values == Values::Words { Ok(setting) } else { Err(MPI_T_ERR_INVALID_HANDLE) }
    }
}

tool! {
    fn MPI_T_cvar_get_num(num_cvar: *mut c_int) -> c_int {
        write(num_cvar, SETTINGS.len() as c_int)
    }

    fn MPI_T_cvar_get_index(name: *const c_char, cvar_index: *mut c_int) -> c_int {
        write(cvar_index, index(&SETTINGS, name, |setting, name| setting.name.as_bytes() == name)?)
    }

    fn MPI_T_cvar_get_info(
        cvar_index: c_int, name: *mut c_char, name_len: *mut c_int, verbosity: *mut c_int, datatype: *mut MPI_Datatype,
        enumtype: *mut MPI_T_enum, desc: *mut c_char, desc_len: *mut c_int, bind: *mut c_int, scope: *mut c_int
    ) -> c_int {
        let setting = at(&SETTINGS, cvar_index)?;
        put_text(name, name_len, setting.name);
        put(verbosity, MPI_T_VERBOSITY_USER_BASIC);
        put(datatype, self::datatype(setting));
        let is_enumeration = setting.values == Values::Words;
        put(enumtype, if is_enumeration { MPI_T_enum(cvar_index as usize + 1) } else { MPI_T_ENUM_NULL });
        let Setting { meaning, legal, default, .. } = setting;
        put_text(desc, desc_len, &format!("{meaning}. Default: {default}. Legal: {legal}."));
        put(bind, MPI_T_BIND_NO_OBJECT);
        put(scope, self::scope(setting));
        Ok(())
    }

    // No variable belongs to an object.
    fn MPI_T_cvar_handle_alloc(
        cvar_index: c_int, obj_handle: *mut c_void, handle: *mut MPI_T_cvar_handle, count: *mut c_int
    ) -> c_int {
        let _ = obj_handle;
        let setting = at(&SETTINGS, cvar_index)?;
        write(handle, MPI_T_cvar_handle(cvar_index as usize + 1))?;
        put(count, if setting.values == Values::Text { ROOM as c_int } else { 1 });
        Ok(())
    }

    fn MPI_T_cvar_handle_free(handle: *mut MPI_T_cvar_handle) -> c_int {
        let handle = handle.as_mut().ok_or(MPI_T_ERR_INVALID)?;
        handle.find()?;
        *handle = MPI_T_CVAR_HANDLE_NULL;
        Ok(())
    }

    fn MPI_T_cvar_read(handle: MPI_T_cvar_handle, buf: *mut c_void) -> c_int {
        let setting = handle.find()?;
        let value = setting.value();
        match setting.values {
            // A value of the environment that is no word will end MPI_Init; until then it is no item.
            Values::Words => {
                let place = setting.words().position(|word| word == value.trim());
                write(buf.cast(), place.map_or(-1, |place| place as c_int))
            }
            Values::Number => write(buf.cast(), setting.number(&value).unwrap_or(0)),
            Values::Text if buf.is_null() => Err(MPI_T_ERR_INVALID),
            Values::Text => {
                put_text(buf.cast(), &mut (ROOM as c_int), &value);
                Ok(())
            }
        }
    }

    fn MPI_T_cvar_write(handle: MPI_T_cvar_handle, buf: *const c_void) -> c_int {
        let setting = handle.find()?;
        if buf.is_null() {
            return Err(MPI_T_ERR_INVALID);
        }
        if process::has_joined() {
            return Err(MPI_T_ERR_CVAR_SET_NOT_NOW);
        }
        let value = match setting.values {
            Values::Words => {
                let item = usize::try_from(buf.cast::<c_int>().read_unaligned()).map_err(|_| MPI_T_ERR_INVALID)?;
                setting.words().nth(item).ok_or(MPI_T_ERR_INVALID)?.to_owned()
            }
            Values::Number => buf.cast::<c_ulonglong>().read_unaligned().to_string(),
            Values::Text => CStr::from_ptr(buf.cast()).to_str().map_err(|_| MPI_T_ERR_INVALID)?.to_owned(),
        };
        if value.len() >= ROOM {
            return Err(MPI_T_ERR_INVALID);
        }
        setting.write(&value).map_err(|_| MPI_T_ERR_INVALID)
    }

    fn MPI_T_enum_get_info(enumtype: MPI_T_enum, num: *mut c_int, name: *mut c_char, name_len: *mut c_int) -> c_int {
        let setting = enumtype.find()?;
        put(num, setting.words().count() as c_int);
        put_text(name, name_len, setting.name);
        Ok(())
    }

    fn MPI_T_enum_get_item(
        enumtype: MPI_T_enum, indx: c_int, value: *mut c_int, name: *mut c_char, name_len: *mut c_int
    ) -> c_int {
        let words: Vec<_> = enumtype.find()?.words().collect();
        let word = at(&words, indx).map_err(|_| MPI_T_ERR_INVALID_ITEM)?;
        put(value, indx);
        put_text(name, name_len, word);
        Ok(())
    }
}
