//! How the arguments of a function become values. The functions of MPI have up to twelve arguments, of which those that
//! belong together stand one after another, in the same order in all functions. [`values!`] finds them by their types.

/// Calls a body with the arguments of a function, of which those that belong together become one value: the data of a
/// message, the blocks of a buffer, the operands of a reduction, the peer of a message, the call of a collective.
macro_rules! values {
    // The last arguments of a collective say which form of the call it is.
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
    // All arguments are values.
    ({$body:ident($($more:expr),*)} [$($value:expr,)*]) => {
        self::$body($($value,)* $($more),*)
    };
    // The receiver in a call that receives, too: the communicator comes last.
    (
        $to:tt [$($value:expr,)*] $dest:ident: c_int, $sendtag:ident: c_int,
        $buf:ident: *mut c_void, $count:ident: $n:ty, $type:ident: MPI_Datatype,
        $source:ident: c_int, $recvtag:ident: c_int, $comm:ident: MPI_Comm, $($rest:tt)*
    ) => {
        $crate::call::values! {
            $to [
                $($value,)* $crate::p2p::Peer::new($dest, $sendtag, $comm),
                $crate::datatype::Data::new($buf, $count, $type),
            ] $source: c_int, $recvtag: c_int, $comm: MPI_Comm, $($rest)*
        }
    };
    (
        $to:tt [$($value:expr,)*] $dest:ident: c_int, $sendtag:ident: c_int,
        $source:ident: c_int, $recvtag:ident: c_int, $comm:ident: MPI_Comm, $($rest:tt)*
    ) => {
        $crate::call::values! {
            $to [$($value,)* $crate::p2p::Peer::new($dest, $sendtag, $comm),]
            $source: c_int, $recvtag: c_int, $comm: MPI_Comm, $($rest)*
        }
    };
    // A peer.
    ($to:tt [$($value:expr,)*] $rank:ident: c_int, $tag:ident: c_int, $comm:ident: MPI_Comm $(, $($rest:tt)*)?) => {
        $crate::call::values! { $to [$($value,)* $crate::p2p::Peer::new($rank, $tag, $comm),] $($($rest)*)? }
    };
    // The data of a message.
    (
        $to:tt [$($value:expr,)*]
        $buf:ident: *$access:tt c_void, $count:ident: $n:ty, $type:ident: MPI_Datatype $(, $($rest:tt)*)?
    ) => {
        $crate::call::values! { $to [$($value,)* $crate::datatype::Data::new($buf, $count, $type),] $($($rest)*)? }
    };
    // The elements that an operation accesses at a rank.
    (
        $to:tt [$($value:expr,)*] $rank:ident: c_int,
        $disp:ident: MPI_Aint, $count:ident: $n:ty, $type:ident: MPI_Datatype, $($rest:tt)*
    ) => {
        $crate::call::values! {
            $to [$($value,)* $crate::win::Remote::new($rank, $disp, $count, $type),] $($rest)*
        }
    };
    // The data of one partition of a message, and the number of partitions.
    (
        $to:tt [$($value:expr,)*] $buf:ident: *$access:tt c_void,
        $partitions:ident: c_int, $count:ident: MPI_Count, $type:ident: MPI_Datatype, $($rest:tt)*
    ) => {
        $crate::call::values! {
            $to [$($value,)* $crate::datatype::Data::new($buf, $count, $type), $partitions,] $($rest)*
        }
    };
    // Blocks with lengths and places of their own.
    (
        $to:tt [$($value:expr,)*] $buf:ident: *$access:tt c_void,
        $counts:ident: *const $n:ty, $displs:ident: *const $d:ty, $types:ident: $t:ty, $($rest:tt)*
    ) => {
        $crate::call::values! {
            $to [$($value,)* $crate::collective::Lists::new($buf, $counts, $displs, $types),] $($rest)*
        }
    };
    // The operands of a reduction, and their number.
    (
        $to:tt [$($value:expr,)*] $sendbuf:ident: *const c_void, $recvbuf:ident: *mut c_void,
        $count:ident: $n:ty, $type:ident: MPI_Datatype, $op:ident: MPI_Op $(, $($rest:tt)*)?
    ) => {
        $crate::call::values! {
            $to [$($value,)* $crate::collective::Operands::new($sendbuf, $recvbuf, $type, $op), $count,]
            $($($rest)*)?
        }
    };
    // Any other argument.
    ($to:tt [$($value:expr,)*] $arg:ident: $ty:ty $(, $($rest:tt)*)?) => {
        $crate::call::values! { $to [$($value,)* $arg,] $($($rest)*)? }
    };
}

pub(crate) use values;
