//! Attributes of datatypes (MPI-5.0 section 7.7.4).

use crate::call::{failed, mpi, out};
use crate::comm::keyval::{Keyval, pointer, value};

/// The name of the argument that is a key.
const KEYVAL: &str = "type_keyval";

mpi! {
    fn MPI_Type_create_keyval(
        type_copy_attr_fn: Option<MPI_Type_copy_attr_function>,
        type_delete_attr_fn: Option<MPI_Type_delete_attr_function>,
        type_keyval: *mut c_int,
        extra_state: *mut c_void,
    ) -> c_int {
        Keyval::create(type_copy_attr_fn, type_delete_attr_fn, (type_keyval, KEYVAL), extra_state)
    }

    fn MPI_Type_free_keyval(type_keyval: *mut c_int) -> c_int {
        Keyval::<MPI_Datatype>::free((type_keyval, KEYVAL))
    }

    fn MPI_Type_set_attr(datatype: MPI_Datatype, type_keyval: c_int, attribute_val: *mut c_void) -> c_int {
        let (found, key) = (datatype.find()?, Keyval::find(type_keyval, KEYVAL)?);
        found.made().attributes.set(&datatype, &key, value(attribute_val)).map_err(failed)
    }

    fn MPI_Type_get_attr(
        datatype: MPI_Datatype, type_keyval: c_int, attribute_val: *mut c_void, flag: *mut c_int
    ) -> c_int {
        let (found, key) = (datatype.find()?, Keyval::find(type_keyval, KEYVAL)?);
        let flag = out::place(flag, "flag")?;
        let value = found.made().attributes.get(&key);
        *flag = value.is_some().into();
        match value {
            Some(value) => out::write(attribute_val.cast(), "attribute_val", pointer(&value)),
            None => Ok(()),
        }
    }

    fn MPI_Type_delete_attr(datatype: MPI_Datatype, type_keyval: c_int) -> c_int {
        let (found, key) = (datatype.find()?, Keyval::find(type_keyval, KEYVAL)?);
        found.made().attributes.delete(&datatype, &key).map(drop).map_err(failed)
    }
}
