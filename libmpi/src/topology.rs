//! Grids (MPI-5.0 chapter 8), and what all topologies have in common. `topology/graph.rs` has the graphs.

use std::ffi::c_int;

use mpicore::topology::{Cartesian, Topology, dims_create};

use crate::abi::*;
use crate::call::{Fault, Outcome, mpi, mpi_anytime, negative, out};
use crate::comm::Comm;
use crate::comm::create::place_of_new;

mod graph;

impl Comm {
    /// Returns the grid.
    ///
    /// # Errors
    /// MPI_ERR_TOPOLOGY.
    fn grid(&self) -> Outcome<&Cartesian> {
        Ok(self.core.grid().ok_or(mpicore::Error::NoGrid)?)
    }

    /// Returns the rank that an argument names.
    ///
    /// # Errors
    /// MPI_ERR_RANK.
    fn named(&self, rank: c_int) -> Outcome<u32> {
        let size = self.core.size();
        u32::try_from(rank).ok().filter(|rank| *rank < size).ok_or_else(|| {
            let text = format!("rank {rank} is out of range: {} has {size} ranks", self.title());
            Fault::argument(MPI_ERR_RANK, "rank", text)
        })
    }
}

/// Returns a number that is not negative.
fn natural(number: c_int, argument: &'static str) -> Outcome<u32> {
    u32::try_from(number).map_err(|_| negative(MPI_ERR_ARG, argument, number))
}

/// Copies a list to a place that has room for `most` entries.
///
/// # Safety
/// FC1.
unsafe fn copy_out(
    list: impl ExactSizeIterator<Item = c_int>,
    place: *mut c_int,
    (most, argument): (c_int, &'static str),
    name: &'static str,
) -> Outcome {
    if (most as i64) < list.len() as i64 {
        let text = format!("{most} is too small for {} entries", list.len());
        return Err(Fault::argument(MPI_ERR_ARG, argument, text));
    }
    // SAFETY: the caller's promise.
    let places = unsafe { out::list_mut(place, list.len() as i64, name) }?;
    places.iter_mut().zip(list).for_each(|(place, entry)| *place = entry);
    Ok(())
}

/// Returns a grid that a program describes.
unsafe fn grid(ndims: c_int, dims: *const c_int, periods: *const c_int) -> Outcome<Cartesian> {
    if ndims < 0 {
        return Err(negative(MPI_ERR_DIMS, "ndims", ndims));
    }
    // SAFETY: FC1.
    let (dims, periods) = unsafe {
        (out::list(dims, ndims.into(), "dims")?, out::list(periods, ndims.into(), "periods")?)
    };
    let length =
        |&length| u32::try_from(length).map_err(|_| negative(MPI_ERR_DIMS, "dims", length));
    let dims = dims.iter().map(length).collect::<Outcome<Vec<_>>>()?;
    let periods: Vec<_> = periods.iter().map(|period| *period != 0).collect();
    Cartesian::new(&dims, &periods).map_err(|error| Fault::from(error).about("dims"))
}

mpi! {
    fn MPI_Topo_test(comm: MPI_Comm, status: *mut c_int) -> c_int {
        out::write(status, "status", match comm.find()?.core.topology() {
            Some(Topology::Grid(_)) => MPI_CART,
            Some(Topology::Graph(_)) => MPI_GRAPH,
            Some(Topology::Adjacency(_)) => MPI_DIST_GRAPH,
            None => MPI_UNDEFINED,
        })
    }

    fn MPI_Cart_create(
        comm_old: MPI_Comm, ndims: c_int, dims: *const c_int, periods: *const c_int, reorder: c_int,
        comm_cart: *mut MPI_Comm
    ) -> c_int {
        let place = place_of_new(comm_cart, "comm_cart")?;
        let comm = comm_old.find()?;
        let grid = grid(ndims, dims, periods)?;
        *place = comm.child_or_null(comm.core.create_cartesian(grid, reorder != 0)?)?;
        Ok(())
    }

    fn MPI_Cartdim_get(comm: MPI_Comm, ndims: *mut c_int) -> c_int {
        out::write(ndims, "ndims", comm.find()?.grid()?.dims().len() as c_int)
    }

    fn MPI_Cart_get(
        comm: MPI_Comm, maxdims: c_int, dims: *mut c_int, periods: *mut c_int, coords: *mut c_int
    ) -> c_int {
        let comm = comm.find()?;
        let (grid, most) = (comm.grid()?, (maxdims, "maxdims"));
        copy_out(grid.dims().iter().map(|length| *length as c_int), dims, most, "dims")?;
        copy_out(grid.periods().iter().map(|period| c_int::from(*period)), periods, most, "periods")?;
        copy_out(grid.coords(comm.core.rank())?.into_iter(), coords, most, "coords")
    }

    fn MPI_Cart_rank(comm: MPI_Comm, coords: *const c_int, rank: *mut c_int) -> c_int {
        let comm = comm.find()?;
        let grid = comm.grid()?;
        let coords = out::list(coords, grid.dims().len() as i64, "coords")?;
        let found = grid.rank(coords).map_err(|error| Fault::from(error).about("coords"))?;
        out::write(rank, "rank", found as c_int)
    }

    fn MPI_Cart_coords(comm: MPI_Comm, rank: c_int, maxdims: c_int, coords: *mut c_int) -> c_int {
        let comm = comm.find()?;
        let found = comm.grid()?.coords(comm.named(rank)?)?;
        copy_out(found.into_iter(), coords, (maxdims, "maxdims"), "coords")
    }

    fn MPI_Cart_shift(
        comm: MPI_Comm, direction: c_int, disp: c_int, rank_source: *mut c_int, rank_dest: *mut c_int
    ) -> c_int {
        let comm = comm.find()?;
        let grid = comm.grid()?;
        let direction = natural(direction, "direction")? as usize;
        let shift = grid.shift(comm.core.rank(), direction, disp);
        let shift = shift.map_err(|error| Fault::from(error).about("direction"))?;
        let rank = |rank: Option<u32>| rank.map_or(MPI_PROC_NULL, |rank| rank as c_int);
        out::write(rank_source, "rank_source", rank(shift.source))?;
        out::write(rank_dest, "rank_dest", rank(shift.destination))
    }

    fn MPI_Cart_sub(comm: MPI_Comm, remain_dims: *const c_int, newcomm: *mut MPI_Comm) -> c_int {
        let place = place_of_new(newcomm, "newcomm")?;
        let comm = comm.find()?;
        let remain = out::list(remain_dims, comm.grid()?.dims().len() as i64, "remain_dims")?;
        let remain: Vec<_> = remain.iter().map(|remains| *remains != 0).collect();
        *place = comm.child(comm.core.cartesian_sub(&remain)?)?;
        Ok(())
    }

    fn MPI_Cart_map(
        comm: MPI_Comm, ndims: c_int, dims: *const c_int, periods: *const c_int, newrank: *mut c_int
    ) -> c_int {
        let comm = comm.find()?;
        let grid = grid(ndims, dims, periods)?;
        let rank = comm.core.cartesian_rank(&grid)?;
        out::write(newrank, "newrank", rank.map_or(MPI_UNDEFINED, |rank| rank as c_int))
    }
}

mpi_anytime! {
    fn MPI_Dims_create(nnodes: c_int, ndims: c_int, dims: *mut c_int) -> c_int {
        if ndims < 0 {
            return Err(negative(MPI_ERR_DIMS, "ndims", ndims));
        }
        let dims = out::list_mut(dims, ndims.into(), "dims")?;
        let nodes = natural(nnodes, "nnodes")?;
        let length = |&length: &c_int| u32::try_from(length).map_err(|_| negative(MPI_ERR_DIMS, "dims", length));
        let mut lengths = dims.iter().map(length).collect::<Outcome<Vec<_>>>()?;
        if !(lengths.is_empty() && nodes > 0) {
            dims_create(nodes, &mut lengths)?;
        }
        dims.iter_mut().zip(lengths).for_each(|(place, length)| *place = length as c_int);
        Ok(())
    }
}
