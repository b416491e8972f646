//! LAPI_Msg_string: the codes of LAPI, with their names and a sentence for each.
//!
//! The table below is the only place where a code has a number. [`LapiError::code`] names a row of it for each error of
//! this transport, so what [`msg_string`] says about a code and what the errors mean agree.

use std::fmt;

use crate::adapter::AdapterError;
use crate::error::{End, LapiError, Violation};
use crate::lapi::dgsp::DgspError;

/// Makes the enumeration of codes from rows of variant, number, name and sentence.
macro_rules! codes {
    ($($code:ident = $number:literal, $name:literal, $text:literal;)+) => {
        /// A code of LAPI. It is printed as LAPI's name without the prefix; [`msg_string`] gives the sentence.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        #[non_exhaustive]
        #[repr(i32)]
        pub enum Code {
            $(#[doc = concat!($name, ": ", $text, ".")] $code = $number,)+
        }

        /// Every code with its name and its sentence.
        const CODES: &[(Code, &str, &str)] = &[$((Code::$code, $name, $text),)+];
    };
}

codes! {
    Success = 0, "SUCCESS", "the call succeeded";
    Unknown = 400, "UNKNOWN", "an error of the transport itself that has no code of its own";
    AllHndlInUse = 401, "ALL_HNDL_IN_USE", "no further context can be opened: all handles are in use";
    BothNetstrSet = 402, "BOTH_NETSTR_SET", "two descriptions of the network were given where one is expected";
    CkptLoad = 403, "CKPT_LOAD", "the library for checkpoints could not be loaded";
    CssLoad = 404, "CSS_LOAD", "the library of the switch could not be loaded";
    InfoNull = 405, "INFO_NULL", "the description of the context to be opened is null";
    MsgApi = 406, "MSG_API", "the job was not started for this message interface";
    NoNetstrSet = 407, "NO_NETSTR_SET", "the network to be used was not described";
    NoUdpHndlr = 408, "NO_UDP_HNDLR", "addresses of peers are needed, and neither a list nor a function was given";
    HdrHndlrNull = 409, "HDR_HNDLR_NULL", "a message names a header handler that is not set";
    PssNonRoot = 410, "PSS_NON_ROOT", "persistent contexts need the rights of the administrator";
    ParmNull = 411, "PARM_NULL", "a parameter is null where a value is expected; the call went on without it";
    ShmKeNotLoaded = 412, "SHM_KE_NOT_LOADED", "the system lacks the extension for shared memory";
    Timeout = 413, "TIMEOUT", "a message made no progress for the time that is allowed";
    RegTimer = 414, "REG_TIMER", "a timer could not be registered";
    UdpPktSz = 415, "UDP_PKT_SZ", "the size of packets on the network is out of range";
    UserUdpHndlrFail = 416, "USER_UDP_HNDLR_FAIL", "the function that gives the addresses of peers has failed";
    HndlInvalid = 417, "HNDL_INVALID", "the context does not exist, was terminated, or is not this process's";
    RetPtrNull = 418, "RET_PTR_NULL", "the place for the result is null";
    AddrHndlRange = 419, "ADDR_HNDL_RANGE", "the index is outside the table of handlers";
    AddrTblNull = 420, "ADDR_TBL_NULL", "the table for the addresses is null";
    TgtPurged = 421, "TGT_PURGED", "the target was purged and has not been resumed";
    MultipleWaiters = 422, "MULTIPLE_WAITERS", "another thread waits for the counter without polling";
    MemoryExhausted = 423, "MEMORY_EXHAUSTED", "memory or another resource of the system is short";
    InfoNonzero = 424, "INFO_NONZERO", "a reserved field of the context's description is not zero";
    OrgAddrNull = 425, "ORG_ADDR_NULL", "the address at the origin is null, and bytes are to be moved";
    TgtAddrNull = 426, "TGT_ADDR_NULL", "the address at the target is null, and bytes are to be moved";
    DataLen = 427, "DATA_LEN", "the length of the data is out of range";
    Tgt = 428, "TGT", "the target is not a task of the job";
    UhdrNull = 429, "UHDR_NULL", "the user header is null and has a length";
    UhdrLen = 430, "UHDR_LEN", "the length of the user header is out of range, or not a multiple of eight";
    HdrLen = 431, "HDR_LEN", "the length of a header is out of range";
    OrgExtent = 432, "ORG_EXTENT", "the blocks at the origin reach beyond the address space";
    OrgStride = 433, "ORG_STRIDE", "the stride at the origin is shorter than a block";
    NoConnectivity = 434, "NO_CONNECTIVITY", "a task cannot be reached, or has ended before the job";
    AdaptersDown = 435, "ADAPTERS_DOWN", "no adapter that leads to the task works";
    RecvIncomp = 436, "RECV_INCOMP", "a receive is not complete";
    SendIncomp = 437, "SEND_INCOMP", "a send is not complete";
    SendTimeout = 438, "SEND_TIMEOUT", "a send was not complete within its time";
    ShmSetup = 439, "SHM_SETUP", "shared memory could not be set up";
    OrgVecAddr = 440, "ORG_VEC_ADDR", "an address in the origin's vector is null and has a length";
    OrgVecLen = 441, "ORG_VEC_LEN", "the lengths in the origin's vector are too large together";
    OrgVecNull = 442, "ORG_VEC_NULL", "the vector of the origin is null";
    OrgVecType = 443, "ORG_VEC_TYPE", "the type of the origin's vector is unknown";
    StrideOrgVecAddrNull = 444, "STRIDE_ORG_VEC_ADDR_NULL", "the first block of the origin's strided vector is at the null address";
    StrideTgtVecAddrNull = 445, "STRIDE_TGT_VEC_ADDR_NULL", "the first block of the target's strided vector is at the null address";
    TgtExtent = 446, "TGT_EXTENT", "the blocks at the target reach beyond the address space";
    TgtStride = 447, "TGT_STRIDE", "the stride at the target is shorter than a block";
    TgtVecAddr = 448, "TGT_VEC_ADDR", "an address in the target's vector is null and has a length";
    TgtVecLen = 449, "TGT_VEC_LEN", "the lengths in the target's vector are too large together";
    Ckpt = 450, "CKPT", "a checkpoint has failed";
    TgtVecNull = 451, "TGT_VEC_NULL", "the vector of the target is null";
    TgtVecType = 452, "TGT_VEC_TYPE", "the type of the target's vector is unknown";
    VecNumDiff = 453, "VEC_NUM_DIFF", "the two vectors have different numbers of entries";
    VecTypeDiff = 454, "VEC_TYPE_DIFF", "the two vectors are of different types";
    VecLenDiff = 455, "VEC_LEN_DIFF", "the two vectors have different lengths at an entry";
    MsgInfoNull = 456, "MSG_INFO_NULL", "the place for the outcome of polling is null";
    PollingNet = 457, "POLLING_NET", "another thread is polling";
    CntrNull = 458, "CNTR_NULL", "there is no such counter";
    CntrVal = 459, "CNTR_VAL", "the value to wait for is not positive";
    QueryType = 460, "QUERY_TYPE", "the key is unknown, or cannot be used in this call";
    InValNull = 461, "IN_VAL_NULL", "the input of an atomic operation is null";
    RmwOp = 462, "RMW_OP", "the atomic operation is unknown";
    TgtVarNull = 463, "TGT_VAR_NULL", "the target's variable of an atomic operation is null";
    SetVal = 464, "SET_VAL", "the value is out of the range of its key";
    Dgsp = 465, "DGSP", "the data gather/scatter program is null or not registered";
    DgspAtom = 466, "DGSP_ATOM", "the atom size of the program is wrong";
    DgspBranch = 467, "DGSP_BRANCH", "a branch of the program leads outside of it";
    DgspCtl = 468, "DGSP_CTL", "a control instruction of the program is wrong";
    DgspCopySz = 469, "DGSP_COPY_SZ", "a copy instruction of the program has a wrong size";
    DgspFree = 470, "DGSP_FREE", "the program is freed while it is in use";
    DgspOpc = 471, "DGSP_OPC", "an instruction of the program is unknown";
    DgspReps = 472, "DGSP_REPS", "a number of repetitions in the program is negative";
    DgspStack = 473, "DGSP_STACK", "the depth of the program's stack is wrong";
    OpSz = 474, "OP_SZ", "the size of an atomic operation is neither 32 nor 64 bits";
    UdpPortInfo = 475, "UDP_PORT_INFO", "the address of a peer is wrong";
    XferCmd = 476, "XFER_CMD", "the kind of transfer is unknown";
    UtilCmd = 477, "UTIL_CMD", "the command is unknown";
    CatalogFail = 478, "CATALOG_FAIL", "the catalogue of messages cannot be read";
    PackSz = 479, "PACK_SZ", "the contiguous buffer is too small";
    DgspOther = 480, "DGSP_OTHER", "the program is wrong in another way, such as one without instructions";
    UdpSocket = 481, "UDP_SOCKET", "a socket could not be set up";
    CollectivePss = 482, "COLLECTIVE_PSS", "persistent contexts have no collective calls";
    NoEnvVar = 510, "NO_ENV_VAR", "a variable that describes the job is not set";
    NoCallbackReg = 511, "NO_CALLBACK_REG", "no function was registered for the event";
    NoCntrReg = 512, "NO_CNTR_REG", "no counter was registered for the event";
    XlateFailed = 513, "XLATE_FAILED", "memory could not be registered for direct access";
    RdmaResources = 514, "RDMA_RESOURCES", "no resources for direct access are left";
    LwDataLen = 515, "LW_DATA_LEN", "the message is too long for a lightweight one";
    NoHndlrSet = 516, "NO_HNDLR_SET", "a lightweight message names no handler that is set";
    OffsetLen = 517, "OFFSET_LEN", "the offset at which the program begins is out of range";
    CodeUnknown = 519, "CODE_UNKNOWN", "there is no such code";
    DupTrigger = 521, "DUP_TRIGGER", "the trigger was registered before";
    TriggerUnknown = 522, "TRIGGER_UNKNOWN", "the trigger is not registered";
    TaskNum = 523, "TASK_NUM", "the number of tasks of a group is wrong";
    NullList = 524, "NULL_LIST", "the list of a group's tasks is null";
    GrpMember = 525, "GRP_MEMBER", "a member of a group is not a task of the job";
    NullGrp = 526, "NULL_GRP", "the group is null";
    Grp = 527, "GRP", "the group is not valid";
    StatSaveFail = 528, "STAT_SAVE_FAIL", "the statistics could not be saved";
}

impl Code {
    /// Returns LAPI's number of the code.
    pub fn number(self) -> i32 {
        self as i32
    }

    /// Returns the code with this number.
    ///
    /// # Errors
    /// [`LapiError::CodeUnknown`] if there is none.
    pub fn of_number(number: i32) -> Result<Self, LapiError> {
        let mut codes = CODES.iter().map(|(code, ..)| *code);
        codes.find(|code| code.number() == number).ok_or(LapiError::CodeUnknown { code: number })
    }

    /// Its name and its sentence.
    fn row(self) -> (&'static str, &'static str) {
        let row = CODES.iter().find(|(code, ..)| *code == self);
        row.map(|(_, name, text)| (*name, *text)).expect("the table has every code")
    }
}

impl fmt::Display for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.row().0)
    }
}

/// Returns LAPI's name and a sentence for a code (LAPI_Msg_string). It needs no context.
///
/// ```
/// use transport_lapi::{LapiError, msg_string};
///
/// assert_eq!(msg_string(428)?, "LAPI_ERR_TGT: the target is not a task of the job");
/// assert!(matches!(msg_string(1), Err(LapiError::CodeUnknown { code: 1 })));
/// # Ok::<(), LapiError>(())
/// ```
///
/// # Errors
/// [`LapiError::CodeUnknown`] if there is no such code.
pub fn msg_string(code: i32) -> Result<String, LapiError> {
    let code = Code::of_number(code)?;
    let prefix = if code == Code::Success { "LAPI_" } else { "LAPI_ERR_" };
    let (name, text) = code.row();
    Ok(format!("{prefix}{name}: {text}"))
}

impl LapiError {
    /// Returns LAPI's code for this error. Errors that LAPI does not have get the code that is closest: a call in a
    /// fork has no valid handle, a broken protocol and a panic are internal errors.
    pub fn code(&self) -> Code {
        match self {
            Self::HndlInvalid | Self::Forked { .. } => Code::HndlInvalid,
            Self::Tgt { .. } => Code::Tgt,
            Self::TgtPurged { .. } => Code::TgtPurged,
            Self::UhdrLen { .. } => Code::UhdrLen,
            Self::OrgAddrNull { .. } => Code::OrgAddrNull,
            Self::TgtAddrNull { .. } => Code::TgtAddrNull,
            Self::DataLen { .. } => Code::DataLen,
            Self::AddrHndlRange { .. } => Code::AddrHndlRange,
            Self::HdrHndlrNull { .. } => Code::HdrHndlrNull,
            Self::CntrNull { .. } => Code::CntrNull,
            Self::CntrVal { .. } => Code::CntrVal,
            Self::MultipleWaiters { .. } => Code::MultipleWaiters,
            Self::QueryType { .. } => Code::QueryType,
            Self::SetVal { .. } => Code::SetVal,
            Self::CodeUnknown { .. } => Code::CodeUnknown,
            Self::Timeout { .. } => Code::Timeout,
            Self::CompletionThread(_) | Self::NotificationThread(_) => Code::MemoryExhausted,
            Self::InHandler | Self::NobodyPolls | Self::CompletionPanicked { .. } => Code::Unknown,
            Self::TgtVarNull => Code::TgtVarNull,
            Self::Unaligned { .. } => Code::DataLen,
            Self::VecAddr { end, is_strided } => match (end, is_strided) {
                (End::Origin, false) => Code::OrgVecAddr,
                (End::Target, false) => Code::TgtVecAddr,
                (End::Origin, true) => Code::StrideOrgVecAddrNull,
                (End::Target, true) => Code::StrideTgtVecAddrNull,
            },
            Self::VecLen { end } => end.choose(Code::OrgVecLen, Code::TgtVecLen),
            Self::VecOutside { end, .. } => end.choose(Code::OrgVecLen, Code::TgtVecLen),
            Self::Stride { end, .. } => end.choose(Code::OrgStride, Code::TgtStride),
            Self::Extent { end, .. } => end.choose(Code::OrgExtent, Code::TgtExtent),
            Self::VecTypeDiff => Code::VecTypeDiff,
            Self::VecNumDiff { .. } => Code::VecNumDiff,
            Self::VecLenDiff { .. } => Code::VecLenDiff,
            Self::NoSharedArea => Code::ShmSetup,
            Self::AreaExhausted { .. } => Code::MemoryExhausted,
            Self::Peer { violation, .. } => violation.code(),
            Self::Adapter(error) => code_of(error),
        }
    }
}

impl End {
    fn choose<T>(self, origin: T, target: T) -> T {
        match self {
            Self::Origin => origin,
            Self::Target => target,
        }
    }
}

impl DgspError {
    /// Returns LAPI's code for this error.
    pub fn code(&self) -> Code {
        match self {
            Self::Empty => Code::DgspOther,
            Self::Stack { .. } => Code::DgspStack,
            Self::Branch { .. } => Code::DgspBranch,
            Self::Reps { .. } => Code::DgspReps,
            Self::CopySize => Code::DgspCopySz,
            Self::PackSize { .. } => Code::PackSz,
            Self::Layout(_) => Code::DataLen,
        }
    }
}

impl Violation {
    /// The code of the condition that the peer's mistake is in LAPI, where it is one.
    fn code(self) -> Code {
        match self {
            Self::UnknownCounter { .. } => Code::CntrNull,
            _ => Code::Unknown,
        }
    }
}

/// The code of an error of the adapter.
fn code_of(error: &AdapterError) -> Code {
    match error {
        AdapterError::PeerLost { .. } | AdapterError::NoFabric { .. } => Code::NoConnectivity,
        AdapterError::System { .. } => Code::MemoryExhausted,
        AdapterError::BadSegment { .. } | AdapterError::GetRefused { .. } => Code::ShmSetup,
        AdapterError::AlreadyAttached { .. }
        | AdapterError::ContextCount { .. }
        | AdapterError::ContextsTaken { .. }
        | AdapterError::OtherClient { .. } => Code::AllHndlInUse,
        AdapterError::TaskCount { .. } | AdapterError::HostTaskCount { .. } => Code::TaskNum,
        AdapterError::Corrupt { .. }
        | AdapterError::AccessFailed { .. }
        | AdapterError::BadAddress { .. } => Code::Unknown,
    }
}

#[cfg(test)]
mod tests;
