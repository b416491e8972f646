//! Every code has a number, a name and a sentence of its own, and every error has the code that its description names.

use std::collections::HashSet;
use std::io;

use super::*;
use crate::memory::layout::LayoutError;

#[test]
fn numbers_names_and_sentences_are_unique_and_the_numbers_ascend() {
    assert!(CODES.is_sorted_by(|(one, ..), (next, ..)| one.number() < next.number()));
    let names: HashSet<_> = CODES.iter().map(|(_, name, _)| name).collect();
    let texts: HashSet<_> = CODES.iter().map(|(.., text)| text).collect();
    assert_eq!((names.len(), texts.len()), (CODES.len(), CODES.len()));
}

/// Section 10 of the reference: these ranges have a code for each number, except those listed.
#[test]
fn every_number_of_lapi_has_a_text_and_no_other() {
    let gaps = [518, 520];
    for number in -1..1_000 {
        let is_known = match number {
            0 | 400..=482 => true,
            510..=528 => !gaps.contains(&number),
            _ => false,
        };
        match msg_string(number) {
            Ok(text) => {
                assert!(is_known, "{number}: {text}");
                let (name, sentence) = text.split_once(": ").expect("a name and a sentence");
                let code = Code::of_number(number).unwrap();
                assert!(name.ends_with(&code.to_string()) && !sentence.is_empty());
                assert!(text.len() < 160, "LAPI's buffers have 160 bytes: {text}");
                assert!(sentence.starts_with(char::is_lowercase) && !sentence.ends_with('.'));
            }
            Err(error) => {
                assert!(!is_known, "{number}");
                assert!(matches!(error, LapiError::CodeUnknown { code } if code == number));
                assert_eq!(error.code(), Code::CodeUnknown);
            }
        }
    }
}

#[test]
fn every_error_has_the_code_of_its_condition() {
    let os = || io::Error::from(io::ErrorKind::OutOfMemory);
    let peer = |violation| LapiError::Peer { origin: 1, violation };
    let errors = [
        (LapiError::HndlInvalid, 417),
        (LapiError::Forked { task: 0 }, 417),
        (LapiError::Tgt { target: 9, num_tasks: 2 }, 428),
        (LapiError::TgtPurged { target: 1 }, 421),
        (LapiError::UhdrLen { len: 3, max: 128 }, 430),
        (LapiError::OrgAddrNull { len: 1 }, 425),
        (LapiError::TgtAddrNull { len: 1 }, 426),
        (LapiError::DataLen { offset: 0, len: 1, limit: 0 }, 427),
        (LapiError::AddrHndlRange { index: 0 }, 419),
        (LapiError::HdrHndlrNull { origin: 1, index: 7 }, 409),
        (LapiError::CntrNull { index: 0, count: 0 }, 458),
        (LapiError::CntrVal { value: 0 }, 459),
        (LapiError::MultipleWaiters { index: 0 }, 422),
        (LapiError::QueryType { key: 99 }, 460),
        (LapiError::SetVal { key: 5, value: -1, least: 1, most: 9 }, 464),
        (LapiError::CodeUnknown { code: 1 }, 519),
        (LapiError::Timeout { target: 1, seconds: 10 }, 413),
        (LapiError::CompletionThread(os()), 423),
        (LapiError::NotificationThread(os()), 423),
        (LapiError::TgtVarNull, 463),
        (LapiError::Unaligned { offset: 1, size: 8 }, 427),
        (LapiError::VecAddr { end: End::Origin, is_strided: false }, 440),
        (LapiError::VecAddr { end: End::Origin, is_strided: true }, 444),
        (LapiError::VecAddr { end: End::Target, is_strided: true }, 445),
        (LapiError::VecAddr { end: End::Target, is_strided: false }, 448),
        (LapiError::VecLen { end: End::Origin }, 441),
        (LapiError::VecLen { end: End::Target }, 449),
        (LapiError::VecOutside { end: End::Target, error: LayoutError::Overlap }, 449),
        (LapiError::Stride { end: End::Origin, stride: 1, block: 2 }, 433),
        (LapiError::Stride { end: End::Target, stride: 1, block: 2 }, 447),
        (LapiError::Extent { end: End::Origin, stride: 1, count: 2 }, 432),
        (LapiError::Extent { end: End::Target, stride: 1, count: 2 }, 446),
        (LapiError::VecNumDiff { origin: 1, target: 2 }, 453),
        (LapiError::VecTypeDiff, 454),
        (LapiError::VecLenDiff { origin: 1, target: 2 }, 455),
        (LapiError::NoSharedArea, 439),
        (LapiError::AreaExhausted { len: 2, longest: 1 }, 423),
        (LapiError::InHandler, 400),
        (LapiError::NobodyPolls, 400),
        (LapiError::CompletionPanicked { message: String::new() }, 400),
        (peer(Violation::UnknownCounter { index: 1 }), 458),
        (peer(Violation::StrayFence), 400),
        (AdapterError::PeerLost { task: 1 }.into(), 434),
        (AdapterError::System { action: "wait", source: os() }.into(), 423),
        (AdapterError::Corrupt { origin: 1, what: "a ring" }.into(), 400),
    ];
    for (error, number) in errors {
        assert_eq!(error.code().number(), number, "{error}");
        assert!(msg_string(error.code().number()).is_ok());
    }
}

#[test]
fn every_error_of_a_program_has_its_code() {
    let errors = [
        (DgspError::Empty, 480),
        (DgspError::Stack { depth: 1 }, 473),
        (DgspError::Branch { at: 0 }, 467),
        (DgspError::Reps { at: 0, reps: -1 }, 472),
        (DgspError::CopySize, 469),
        (DgspError::PackSize { bytes: 2, position: 0, len: 1 }, 479),
        (DgspError::Layout(LayoutError::Overlap), 427),
    ];
    for (error, number) in errors {
        assert_eq!(error.code().number(), number, "{error}");
    }
}
