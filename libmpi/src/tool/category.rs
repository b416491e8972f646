//! Categories (MPI-5.0 section 15.3.9): all control variables are in one, all performance variables in the other.

use std::ffi::c_int;

use mpicore::job::SETTINGS;
use mpjdev::COUNTERS;

use super::{Answer, at, index, put, put_text, tool, write};
use crate::abi::*;

/// A category.
struct Category {
    name: &'static str,
    meaning: &'static str,
    /// The number of control variables, which are those from index 0 on.
    controls: usize,
    /// The number of performance variables, likewise.
    counters: usize,
}

const CATEGORIES: [Category; 2] = [
    Category {
        name: "settings",
        meaning: "what can be chosen for a rank before it joins its job; mpjrun --info shows it, too",
        controls: SETTINGS.len(),
        counters: 0,
    },
    Category {
        name: "messages",
        meaning: "what a rank has sent and received, and by which protocol; mpjrun --stats shows it, too",
        controls: 0,
        counters: COUNTERS.len(),
    },
];

/// Writes as many of the first indices as there are, and as there is room for.
///
/// # Safety
/// The list is null or has this length: FC1.
unsafe fn list(count: usize, len: c_int, indices: *mut c_int) -> Answer {
    let room = usize::try_from(len).map_err(|_| MPI_T_ERR_INVALID)?.min(count);
    if room > 0 && indices.is_null() {
        return Err(MPI_T_ERR_INVALID);
    }
    for index in 0..room {
        // SAFETY: the caller's promise.
        unsafe { indices.add(index).write(index as c_int) };
    }
    Ok(())
}

tool! {
    fn MPI_T_category_get_num(num_cat: *mut c_int) -> c_int {
        write(num_cat, CATEGORIES.len() as c_int)
    }

    // They never change.
    fn MPI_T_category_changed(update_number: *mut c_int) -> c_int {
        write(update_number, 0)
    }

    fn MPI_T_category_get_index(name: *const c_char, cat_index: *mut c_int) -> c_int {
        write(cat_index, index(&CATEGORIES, name, |category, name| category.name.as_bytes() == name)?)
    }

    fn MPI_T_category_get_info(
        cat_index: c_int, name: *mut c_char, name_len: *mut c_int, desc: *mut c_char, desc_len: *mut c_int,
        num_cvars: *mut c_int, num_pvars: *mut c_int, num_categories: *mut c_int
    ) -> c_int {
        let category = at(&CATEGORIES, cat_index)?;
        put_text(name, name_len, category.name);
        put_text(desc, desc_len, category.meaning);
        put(num_cvars, category.controls as c_int);
        put(num_pvars, category.counters as c_int);
        put(num_categories, 0);
        Ok(())
    }

    fn MPI_T_category_get_num_events(cat_index: c_int, num_events: *mut c_int) -> c_int {
        at(&CATEGORIES, cat_index)?;
        write(num_events, 0)
    }

    fn MPI_T_category_get_cvars(cat_index: c_int, len: c_int, indices: *mut c_int) -> c_int {
        list(at(&CATEGORIES, cat_index)?.controls, len, indices)
    }

    fn MPI_T_category_get_pvars(cat_index: c_int, len: c_int, indices: *mut c_int) -> c_int {
        list(at(&CATEGORIES, cat_index)?.counters, len, indices)
    }

    fn MPI_T_category_get_events(cat_index: c_int, len: c_int, indices: *mut c_int) -> c_int {
        at(&CATEGORIES, cat_index)?;
        list(0, len, indices)
    }

    fn MPI_T_category_get_categories(cat_index: c_int, len: c_int, indices: *mut c_int) -> c_int {
        at(&CATEGORIES, cat_index)?;
        list(0, len, indices)
    }
}
