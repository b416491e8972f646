//! Partitioned communication (MPI-4.1 chapter 4).

use std::ffi::c_int;
use std::sync::Arc;

use mpicore::{PROC_NULL, PartitionedReceive, PartitionedSend};

use super::Peer;
use crate::abi::*;
use crate::call::{Fault, Outcome, mpi, mpi_bodies, negative_count, out};
use crate::comm::Comm;
use crate::datatype::Data;
use crate::handles::OBJECTS;
use crate::request::shared::Shared;
use crate::request::{Request, Role};

/// Returns the number of partitions, the number of elements in each, and the data of all.
fn whole(part: Data, partitions: c_int) -> Outcome<(u32, u64, Data)> {
    let number = u32::try_from(partitions).map_err(|_| {
        let text = format!("the number of partitions {partitions} is negative");
        Fault::argument(MPI_ERR_ARG, "partitions", text)
    })?;
    let count = u64::try_from(part.count).map_err(|_| negative_count("count", part.count))?;
    let all = part.count.checked_mul(number.into()).ok_or_else(|| {
        let text = format!("{partitions} partitions of {count} elements exceed the memory");
        Fault::argument(MPI_ERR_COUNT, "count", text)
    })?;
    Ok((number, count, Data { count: all, ..part }))
}

/// MPI_Psend_init. There are no hints for this call.
unsafe fn psend_init(
    part: Data,
    partitions: c_int,
    to: Peer,
    _: MPI_Info,
    request: *mut MPI_Request,
) -> Outcome {
    let comm = to.comm.find()?;
    let (dest, tag) = to.receiver(&comm, "tag")?;
    // SAFETY: FC1.
    let place = unsafe { out::place(request, "request") }?;
    let (partitions, count, all) = whole(part, partitions)?;
    // SAFETY: FC1: the elements stay as they are while a started operation lasts.
    let (data, _) = unsafe { all.input() }?;
    let slot = OBJECTS.reserve()?;
    let send = comm.core.psend_init(data, partitions, count, dest.unwrap_or(PROC_NULL), tag)?;
    let started = send.clone();
    let start = Box::new(move || Ok(started.start()?));
    let made = Request::persistent(comm, Role::Send, start);
    *place = made.sharing(Shared::Send(send)).keep(slot);
    Ok(())
}

/// MPI_Precv_init. The sender cannot be any rank, nor the tag any tag.
unsafe fn precv_init(
    part: Data,
    partitions: c_int,
    from: Peer,
    _: MPI_Info,
    request: *mut MPI_Request,
) -> Outcome {
    let comm = from.comm.find()?;
    let (source, tag) = from.receiver(&comm, "tag")?;
    // SAFETY: FC1.
    let place = unsafe { out::place(request, "request") }?;
    let (partitions, count, all) = whole(part, partitions)?;
    // SAFETY: FC1: nobody else uses the elements while a started operation lasts.
    let (into, _) = unsafe { all.output() }?;
    let slot = OBJECTS.reserve()?;
    let source = source.unwrap_or(PROC_NULL);
    let receive = comm.core.precv_init(into, partitions, count, source, tag)?;
    let started = receive.clone();
    let start = Box::new(move || Ok(started.start()?));
    let made = Request::persistent(comm, Role::Receive, start);
    *place = made.sharing(Shared::Receive(receive)).keep(slot);
    Ok(())
}

mpi_bodies! {
    MPI_Psend_init => psend_init();
    MPI_Precv_init => precv_init();
}

#[cold]
fn wrong(why: &str) -> Fault {
    Fault::argument(MPI_ERR_REQUEST, "request", why)
}

fn send_of(request: MPI_Request) -> Outcome<(Arc<Comm>, PartitionedSend)> {
    match Shared::find(request) {
        Some((comm, Shared::Send(send))) => Ok((comm, send)),
        _ => Err(wrong("it is no partitioned send")),
    }
}

fn receive_of(request: MPI_Request) -> Outcome<(Arc<Comm>, PartitionedReceive)> {
    match Shared::find(request) {
        Some((comm, Shared::Receive(receive))) => Ok((comm, receive)),
        _ => Err(wrong("it is no partitioned receive")),
    }
}

fn number(partition: c_int) -> Outcome<usize> {
    usize::try_from(partition).map_err(|_| {
        let text = format!("partition {partition}: partitions are numbered from 0 on");
        Fault::argument(MPI_ERR_ARG, "partition", text)
    })
}

/// Declares partitions ready. All of them are checked first, as far as their numbers alone tell.
fn ready(request: MPI_Request, partitions: impl Iterator<Item = c_int> + Clone) -> Outcome {
    let (comm, send) = send_of(request)?;
    let declared = partitions.clone().try_for_each(|partition| number(partition).map(drop));
    declared
        .and_then(|()| Ok(send.ready(partitions.map(|partition| partition as usize))?))
        .map_err(|fault| fault.on(&comm))
}

mpi! {
    fn MPI_Pready(partition: c_int, request: MPI_Request) -> c_int {
        ready(request, std::iter::once(partition))
    }

    fn MPI_Pready_range(partition_low: c_int, partition_high: c_int, request: MPI_Request) -> c_int {
        if partition_low > partition_high {
            let text = format!("it is below {partition_low}, the first partition");
            return Err(Fault::argument(MPI_ERR_ARG, "partition_high", text));
        }
        ready(request, partition_low..=partition_high)
    }

    fn MPI_Pready_list(length: c_int, array_of_partitions: *const c_int, request: MPI_Request) -> c_int {
        let list = out::list(array_of_partitions, length.into(), "array_of_partitions")?;
        ready(request, list.iter().copied())
    }

    fn MPI_Parrived(request: MPI_Request, partition: c_int, flag: *mut c_int) -> c_int {
        let flag = out::place(flag, "flag")?;
        let (comm, receive) = receive_of(request)?;
        let arrived = number(partition).and_then(|partition| Ok(receive.has_arrived(partition)?));
        *flag = arrived.map_err(|fault| fault.on(&comm))?.into();
        Ok(())
    }
}
