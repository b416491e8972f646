//! How the program is found, and the errors if it is not.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use super::*;

/// A folder with an executable `run`, a plain file `text` and a folder `folder`.
fn folder() -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    let write = |name: &str, mode| {
        let path = folder.path().join(name);
        fs::write(&path, "#!/bin/sh\n").expect("a file");
        fs::set_permissions(&path, fs::Permissions::from_mode(mode)).expect("its mode");
    };
    write("run", 0o755);
    write("text", 0o644);
    fs::create_dir(folder.path().join("folder")).expect("a folder");
    folder
}

fn find(program: &OsStr, path: &str) -> Result<PathBuf, LaunchError> {
    find_program(program, path.into())
}

#[test]
fn a_bare_name_is_looked_up_and_made_absolute() {
    let folder = folder();
    let home = folder.path();
    let path = format!("/nowhere:{}:/usr/bin", home.display());
    assert_eq!(find("run".as_ref(), &path).expect("it is there"), home.join("run"));
}

#[test]
fn a_name_with_a_slash_is_not_looked_up() {
    let folder = folder();
    let program = folder.path().join("run");
    assert_eq!(find(program.as_os_str(), "").expect("it is there"), program);
    let error = find("./run".as_ref(), &folder.path().to_string_lossy()).expect_err("not here");
    assert_eq!((error.exit_code(), error.to_string().as_str()), (127, "program not found: ./run"));
}

#[test]
fn an_absent_program_is_127() {
    let folder = folder();
    let error = find("absent".as_ref(), &folder.path().to_string_lossy()).expect_err("absent");
    assert_eq!(error.exit_code(), 127);
    assert_eq!(error.to_string(), "program not found: absent in PATH");
    let error = find("".as_ref(), "/bin").expect_err("no name");
    assert_eq!(error.exit_code(), 127);
    assert_eq!(error.to_string(), "program not found: '', an empty word");
    let below_a_file = folder.path().join("text/program");
    assert_eq!(find(below_a_file.as_os_str(), "").expect_err("absent").exit_code(), 127);
}

#[test]
fn questions_to_the_launcher_have_dashes() {
    let error = find("help".as_ref(), "/nowhere").expect_err("not in PATH");
    let expected = "program not found: help in PATH; for what mpjrun itself says write --help";
    assert_eq!(error.to_string(), expected);
}

#[test]
fn a_program_of_this_folder_is_pointed_out() {
    let error = find("Cargo.toml".as_ref(), "/nowhere").expect_err("not in PATH");
    assert!(error.to_string().ends_with("for the file in this folder write ./Cargo.toml"));
}

#[test]
fn what_cannot_be_executed_is_126() {
    let folder = folder();
    let path = folder.path().to_string_lossy();
    for (name, reason) in [("text", "chmod +x"), ("folder", "not a file")] {
        let error = find(name.as_ref(), &path).expect_err("not executable");
        assert_eq!(error.exit_code(), 126, "{name}");
        assert!(error.to_string().contains(reason), "{error}");
    }
}

#[test]
fn a_later_executable_beats_an_earlier_plain_file() {
    let (plain, good) = (folder(), folder());
    fs::remove_file(plain.path().join("run")).expect("it was there");
    fs::write(plain.path().join("run"), "").expect("a plain file");
    let path = format!("{}:{}", plain.path().display(), good.path().display());
    assert_eq!(find("run".as_ref(), &path).expect("the second"), good.path().join("run"));
}

#[test]
fn an_unusable_folder_is_named() {
    let folder = folder();
    check_folder(folder.path()).expect("a folder");
    for (name, reason) in [("text", "not a folder"), ("absent", "no such folder")] {
        let error = check_folder(&folder.path().join(name)).expect_err("unusable");
        assert_eq!(error.exit_code(), 2);
        assert!(error.to_string().contains(name) && error.to_string().ends_with(reason), "{error}");
    }
}

#[test]
fn exported_variables_need_a_value_from_somewhere() {
    let export = |name: &str, value: Option<&str>| {
        exported(&Export { name: name.into(), value: value.map(OsString::from) })
    };
    assert_eq!(export("A", Some("")).expect("given"), ("A".into(), "".into()));
    let (_, path) = export("PATH", None).expect("set in every test run");
    assert_eq!(Some(path), config::inherited("PATH"));
    let error = export("MPJ_TEST_UNSET", None).expect_err("set nowhere");
    assert_eq!(error.exit_code(), 2);
    assert!(error.to_string().contains("-x MPJ_TEST_UNSET=VALUE"), "{error}");
}
