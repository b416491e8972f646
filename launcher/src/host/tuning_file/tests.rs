//! A written file can be read; all others are refused, with one line that says where and why.

use super::*;

fn here() -> Machine {
    Machine { processor: "Some \"CPU\"".to_owned(), usable: 2 }
}

fn written() -> String {
    text(&Tuning::default(), &here())
}

/// The refusal of the built-in table with `from` replaced by `to`.
#[track_caller]
fn refusal(from: &str, to: &str) -> String {
    let text = written();
    assert!(text.contains(from), "no {from} in {text}");
    let problem = parse(&text.replacen(from, to, 1), &here()).expect_err("damaged");
    let said = problem.to_string();
    assert!(!said.contains('\n') && said.contains("MPJ_TUNING=none"), "{said}");
    said
}

#[test]
fn what_is_written_is_read_again() {
    assert_eq!(parse(&written(), &here()).expect("our own"), Tuning::default());
    let other: Tuning =
        "eager<=256,rendezvous<=512,eager;4096;4096<=8192,12288;20".parse().unwrap();
    assert_eq!(parse(&text(&other, &here()), &here()).expect("our own"), other);
}

#[test]
fn a_file_that_ends_early_is_refused_wherever_it_ends() {
    let text = written();
    let last_value = text.trim_end().rfind(' ').expect("a value") + 2;
    for end in 0..last_value {
        assert!(parse(&text[..end], &here()).is_err(), "{}", &text[..end]);
    }
}

#[test]
fn a_damaged_line_is_named() {
    let said = refusal("spin = 4000", "spin = 4000 turns");
    let line = written().lines().position(|line| line.starts_with("spin")).expect("there") + 1;
    assert!(said.starts_with(&format!("line {line}: ")), "{said}");
}

#[test]
fn unknown_and_missing_fields_are_named() {
    let unknown = refusal("spin", "spins");
    assert!(unknown.contains("unknown field `spins`"), "{unknown}");
    let missing = refusal("whole_up_to = 16384\n", "");
    assert!(missing.contains("missing field `whole_up_to`"), "{missing}");
    let protocol = refusal("\"rendezvous\"", "\"later\"");
    assert!(protocol.contains("unknown variant `later`"), "{protocol}");
    assert!(refusal("format = 1\n", "").contains("missing field `format`"));
}

#[test]
fn another_format_is_refused_before_its_fields() {
    assert!(refusal("format = 1", "format = 2\nnew = 3").starts_with("format 2, this version"));
}

#[test]
fn another_machine_is_refused() {
    let fewer = refusal("usable = 2", "usable = 1");
    let both = "measured on Some \"CPU\" with 1 usable processor, this is Some \"CPU\" with 2 usable \
                processors;";
    assert!(fewer.starts_with(both), "{fewer}");
    assert!(refusal("Some", "Another").starts_with("measured on Another"));
}

#[test]
fn values_outside_their_limits_are_refused_by_field() {
    assert!(refusal("spin = 4000", "spin = 1").starts_with("wait.spin is 1;"));
    let protocols = refusal("bounds = [16777216]", "bounds = []");
    assert!(protocols.starts_with("protocols: 0 bounds need 1 values, not 2"), "{protocols}");
    let pieces = refusal("131072, 524288", "524288, 131072");
    assert!(pieces.starts_with("pieces: bound 131072 is not above"), "{pieces}");
}

#[test]
fn files_are_replaced_as_a_whole_and_their_folders_made() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("new/mpj/tuning.toml");
    for spin in [100, 200] {
        let tuning = Tuning::new(Ranges::all(Protocol::Eager), Pieces::default(), spin).unwrap();
        write(&path, &tuning, &here()).expect("room");
        assert_eq!(read(&path, &here()).expect("just written"), tuning);
    }
    let names = fs::read_dir(path.parent().unwrap()).expect("a folder").count();
    assert_eq!(names, 1, "nothing stays beside the file");
    let error = write(folder.path(), &Tuning::default(), &here()).expect_err("a folder");
    assert!(error.to_string().contains("cannot be written"), "{error}");
}

#[test]
fn files_that_are_not_text_too_long_or_missing_are_refused() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("tuning.toml");
    let source = TuningSource::File(path.clone());
    let said = || load(&source).expect_err("refused").to_string();
    assert!(said().contains("tuning.toml: cannot be read: No such file"), "{}", said());
    fs::write(&path, b"format = 1\nx = \"\xff\"\n").expect("room");
    assert!(said().contains("line 2: not text in UTF-8"), "{}", said());
    fs::write(&path, vec![b' '; 1 << 20]).expect("room");
    assert!(said().contains("longer than 16384 bytes"), "{}", said());
}

#[test]
fn nothing_is_read_for_the_built_in_values() {
    let built_in = Tuned { tuning: Tuning::default(), file: None, note: None };
    assert_eq!(load(&TuningSource::BuiltIn).expect("nothing to refuse"), built_in);
}

#[test]
fn a_note_is_one_line_that_says_what_is_used_instead() {
    let note = ignored(Path::new("/a/tuning.toml"), &io::Error::from_raw_os_error(13));
    let expected = "tuning file /a/tuning.toml cannot be read: Permission denied (os error 13); \
                    the built-in values are used";
    assert_eq!(note, expected);
}
