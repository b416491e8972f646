//! How the arguments of a function become values. The functions of MPI have up to twelve arguments, of which those that
//! belong together stand one after another, in the same order in all functions.

/// Calls a body with the arguments of a function, of which those that belong together become one value: the data of a
/// message, the blocks of a buffer, the operands of a reduction, the peer of a message, the call of a collective.
macro_rules! values {
    ({$body:ident() collective} [$($value:expr,)*] $comm:ident: MPI_Comm) => {
        self::$body($($value,)* $crate::collective::Collective::blocking($comm)?)
    };
    ({$body:ident() collective} [$($value:expr,)*] $comm:ident: MPI_Comm, $request:ident: *mut MPI_Request) => {
        self::$body($($value,)* $crate::collective::Collective::started($comm, $request)?)
    };
    (
        {$body:ident() collective} [$($value:expr,)*]
        $comm:ident: MPI_Comm, $info:ident: MPI_Info, $request:ident: *mut MPI_Request
    ) => {
        self::$body($($value,)* $crate::collective::Collective::persistent($comm, $info, $request)?)
    };
    ({$body:ident($($more:expr),*)} [$($value:expr,)*]) => {
        self::$body($($value,)* $($more),*)
    };
    // The communicator of a send and a receive comes last.
    (
        $to:tt [$($value:expr,)*] $dest:ident: c_int, $sendtag:ident: c_int,
        $buf:ident: *mut c_void, $count:ident: $n:ty, $type:ident: MPI_Datatype,
        $source:ident: c_int, $recvtag:ident: c_int, $comm:ident: MPI_Comm, $($rest:tt)*
    ) => {
        $crate::call::values! {
            $to [
                $($value,)* $crate::call::peer!($dest, $sendtag, $comm), $crate::call::data!($buf, $count, $type),
            ] $source: c_int, $recvtag: c_int, $comm: MPI_Comm, $($rest)*
        }
    };
    (
        $to:tt [$($value:expr,)*] $dest:ident: c_int, $sendtag:ident: c_int,
        $source:ident: c_int, $recvtag:ident: c_int, $comm:ident: MPI_Comm, $($rest:tt)*
    ) => {
        $crate::call::values! {
            $to [$($value,)* $crate::call::peer!($dest, $sendtag, $comm),]
            $source: c_int, $recvtag: c_int, $comm: MPI_Comm, $($rest)*
        }
    };
    ($to:tt [$($value:expr,)*] $rank:ident: c_int, $tag:ident: c_int, $comm:ident: MPI_Comm $(, $($rest:tt)*)?) => {
        $crate::call::values! { $to [$($value,)* $crate::call::peer!($rank, $tag, $comm),] $($($rest)*)? }
    };
    (
        $to:tt [$($value:expr,)*]
        $buf:ident: *$access:tt c_void, $count:ident: $n:ty, $type:ident: MPI_Datatype $(, $($rest:tt)*)?
    ) => {
        $crate::call::values! { $to [$($value,)* $crate::call::data!($buf, $count, $type),] $($($rest)*)? }
    };
    // The data of one partition, and how many there are.
    (
        $to:tt [$($value:expr,)*] $buf:ident: *$access:tt c_void,
        $partitions:ident: c_int, $count:ident: MPI_Count, $type:ident: MPI_Datatype, $($rest:tt)*
    ) => {
        $crate::call::values! { $to [$($value,)* $crate::call::data!($buf, $count, $type), $partitions,] $($rest)* }
    };
    (
        $to:tt [$($value:expr,)*] $buf:ident: *$access:tt c_void,
        $counts:ident: *const $n:ty, $displs:ident: *const $d:ty, $types:ident: $t:ty, $($rest:tt)*
    ) => {
        $crate::call::values! {
            $to [
                $($value,)*
                $crate::collective::Lists { buffer: $buf, counts: $counts, displs: $displs, datatypes: $types },
            ] $($rest)*
        }
    };
    (
        $to:tt [$($value:expr,)*] $sendbuf:ident: *const c_void, $recvbuf:ident: *mut c_void,
        $count:ident: $n:ty, $type:ident: MPI_Datatype, $op:ident: MPI_Op $(, $($rest:tt)*)?
    ) => {
        $crate::call::values! {
            $to [
                $($value,)*
                $crate::collective::Operands { sendbuf: $sendbuf, recvbuf: $recvbuf, datatype: $type, op: $op },
                $count,
            ] $($($rest)*)?
        }
    };
    ($to:tt [$($value:expr,)*] $arg:ident: $ty:ty $(, $($rest:tt)*)?) => {
        $crate::call::values! { $to [$($value,)* $arg,] $($($rest)*)? }
    };
}

/// Makes the value of a message's data.
macro_rules! data {
    ($buffer:ident, $count:ident, $datatype:ident) => {
        $crate::datatype::Data { buffer: $buffer, count: $count.into(), datatype: $datatype }
    };
}

/// Makes the value of a message's peer.
macro_rules! peer {
    ($rank:ident, $tag:ident, $comm:ident) => {
        $crate::p2p::Peer { rank: $rank, tag: $tag, comm: $comm }
    };
}

pub(crate) use {data, peer, values};
