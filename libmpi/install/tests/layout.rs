//! What an installation contains, and what its compiler wrappers do, with a library that has no functions: the tests of
//! `libmpi` run programs. Without a C compiler these tests say so and pass.

#![expect(clippy::print_stderr, reason = "tests say why they are skipped")]

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use mpj_harness::{Launch, Outcome, command};
use mpj_install::{Built, LIBRARY, install};
use tempfile::TempDir;

/// A program that uses only what the header itself contains.
const PROGRAM: &str = "#include <mpi.h>\nint main(void) { return MPI_VERSION - 5; }\n";

/// An installation in a folder whose name a shell would cut into words.
struct Installed {
    folder: TempDir,
    prefix: PathBuf,
}

impl Installed {
    /// Installs; `None`, after a word about it, if there is no compiler.
    fn new() -> Option<Self> {
        let found = |name| {
            Command::new(name)
                .arg("--version")
                .stdout(Stdio::null())
                .status()
                .is_ok_and(|it| it.success())
        };
        if !["cc", "c++"].into_iter().all(found) {
            eprintln!("skipped: cc or c++ is missing");
            return None;
        }
        let folder = tempfile::tempdir().expect("a folder");
        let [library, trace, mpjrun] =
            ["some.so", "trace.so", "some"].map(|name| folder.path().join(name));
        let shared = ["-shared", "-x", "c", "/dev/null", "-o"];
        let shared = command("cc").args(shared).args([&library]);
        shared.args([format!("-Wl,-soname,{LIBRARY}")]).expect_quiet();
        fs::write(&mpjrun, "#!/bin/sh\necho \"${0##*/}: $@\"\n").expect("a file");
        fs::set_permissions(&mpjrun, fs::Permissions::from_mode(0o755)).expect("it is there");
        let prefix = folder.path().join("it's a prefix");
        fs::write(&trace, "").expect("a file");
        let built = Built { library, trace, mpjrun };
        for _ in 0..2 {
            install(&built, &prefix).expect("installed, also over itself");
        }
        fs::write(folder.path().join("program.c"), PROGRAM).expect("a file");
        Some(Self { folder, prefix })
    }

    fn here(&self) -> &Path {
        self.folder.path()
    }

    fn call(&self, name: &str, words: &[&str]) -> Launch {
        let program = self.prefix.join("bin").join(name);
        command(program).set(|command| command.current_dir(self.here())).args(words)
    }

    /// The words that a command printed, as a shell reads them: one on each line.
    fn words(&self, printed: &Outcome) -> Vec<String> {
        let script = format!("set -- {}; printf '%s\\n' \"$@\"", printed.stdout.trim_end());
        let lines = command("sh").args(["-c", &script]).expect_quiet().stdout;
        lines
            .lines()
            .map(|line| line.replace(self.prefix.to_str().expect("text"), "PREFIX"))
            .collect()
    }
}

#[test]
fn everything_has_its_place() {
    let Some(installed) = Installed::new() else { return };
    let mut found = Vec::new();
    for folder in ["bin", "include", "lib", "lib/pkgconfig"] {
        for entry in fs::read_dir(installed.prefix.join(folder)).expect("a folder") {
            let path = entry.expect("an entry").path();
            let link = fs::read_link(&path).map(|to| format!(" -> {}", to.display()));
            let name = path.file_name().expect("a name").to_string_lossy();
            found.push(format!("{folder}/{name}{}", link.unwrap_or_default()));
        }
    }
    found.sort();
    let expected = [
        "bin/mpic++ -> mpicxx",
        "bin/mpicc",
        "bin/mpicxx",
        "bin/mpiexec -> mpjrun",
        "bin/mpirun -> mpjrun",
        "bin/mpjrun",
        "include/mpi.h",
        "lib/libmpi.so -> libmpi_abi.so.1",
        "lib/libmpi_abi.so -> libmpi_abi.so.1",
        "lib/libmpi_abi.so.1",
        "lib/libmpj_trace.so",
        "lib/pkgconfig",
        "lib/pkgconfig/mpi.pc",
    ];
    assert_eq!(found, expected);
    assert_eq!(installed.call("mpiexec", &["a b"]).expect_quiet().stdout, "mpiexec: a b\n");
}

#[test]
fn programs_are_compiled_and_find_the_library() {
    let Some(installed) = Installed::new() else { return };
    for name in ["mpicc", "mpicxx", "mpic++"] {
        installed
            .call(name, &["-Wl,--no-as-needed", "program.c", "-o", "a program"])
            .expect_quiet();
        command(installed.here().join("a program")).expect_quiet();
        installed.call(name, &["-c", "program.c", "-o", "some.o"]).expect_quiet();
        installed.call(name, &["some.o", "-o", "other"]).expect_quiet();
        command(installed.here().join("other")).expect_quiet();
    }
    // The installation can be moved, and called through a link.
    let moved = installed.here().join("moved");
    fs::rename(&installed.prefix, &moved).expect("a new name");
    let link = installed.here().join("link");
    std::os::unix::fs::symlink(moved.join("bin/mpicc"), &link).expect("a link");
    let compile = command(link).set(|command| command.current_dir(installed.here()));
    compile.args(["-Wl,--no-as-needed", "program.c"]).expect_quiet();
    command(installed.here().join("a.out")).expect_quiet();
}

#[test]
fn the_wrappers_show_what_they_would_do() {
    let Some(installed) = Installed::new() else { return };
    let shown = |words: &[&str]| installed.words(&installed.call("mpicc", words).expect_quiet());
    let link = ["-LPREFIX/lib", "-Wl,-rpath,PREFIX/lib", "-lmpi_abi"];
    let all = [&["cc", "-IPREFIX/include"], &link[..]].concat();
    for show in ["-show", "-showme", "--showme"] {
        assert_eq!(shown(&[show]), all);
        assert_eq!(shown(&[show, "-c", "a b.c"]), ["cc", "-IPREFIX/include", "-c", "a b.c"]);
        let odd = r#"it's $a `\"odd" name.c"#;
        let expected = [&["cc", "-IPREFIX/include", odd, "-o", "-c"], &link[..]].concat();
        assert_eq!(shown(&[odd, "-o", "-c", show]), expected);
    }
    assert_eq!(shown(&["-compile_info"]), ["cc", "-IPREFIX/include"]);
    assert_eq!(shown(&["-link_info"]), [&["cc"], &link[..]].concat());
    for dashes in ["-", "--"] {
        let part = |part: &str| shown(&[&format!("{dashes}showme:{part}")]);
        assert_eq!(part("compile"), ["-IPREFIX/include"]);
        assert_eq!(part("link"), link);
        assert_eq!(part("command"), ["cc"]);
        assert_eq!(part("incdirs"), ["PREFIX/include"]);
        assert_eq!(part("libdirs"), ["PREFIX/lib"]);
        assert_eq!(part("libs"), ["mpi_abi"]);
    }
    installed
        .call("mpicc", &["-showme:weather"])
        .expect(1)
        .says("mpicc: -showme:weather: it can be");
    installed.call("mpicxx", &[]).expect(1).says("mpicxx: no arguments");
}

#[test]
fn another_compiler_is_called_and_its_questions_are_answered() {
    let Some(installed) = Installed::new() else { return };
    let mpicc = |words: &[&str]| installed.call("mpicc", words).env("MPJ_CC", "echo cc -O");
    let expected = format!("cc -O -I{0}/include -v -o x\n", installed.prefix.display());
    assert_eq!(mpicc(&["-v", "-o", "x"]).expect_quiet().stdout, expected);
    let shown = mpicc(&["-show", "a*c"]).expect_quiet().stdout;
    assert!(shown.starts_with("echo cc -O -I\"/"), "{shown}");
    installed.call("mpicc", &["-v"]).expect(0);
    let linked = installed.call("mpicxx", &["-"]).env("MPJ_CXX", "echo").expect_quiet().stdout;
    assert!(linked.ends_with(" -lmpi_abi\n"), "{linked}");
}

#[test]
fn pkg_config_finds_the_options() {
    let Some(installed) = Installed::new() else { return };
    if Command::new("pkg-config").arg("--version").stdout(Stdio::null()).status().is_err() {
        eprintln!("skipped: there is no pkg-config");
        return;
    }
    // It takes no quotation marks in the name of a folder.
    let prefix = installed.here().join("a prefix");
    fs::rename(&installed.prefix, &prefix).expect("a new name");
    let options = "$(PKG_CONFIG_PATH=\"$0/lib/pkgconfig\" pkg-config --cflags --libs mpi)";
    let script = format!("eval cc -Wl,--no-as-needed program.c {options}");
    let compile = command("sh").set(|command| command.current_dir(installed.here()));
    compile.args(["-c", &script]).args([prefix]).expect_quiet();
    command(installed.here().join("a.out")).expect_quiet();
}

#[test]
fn what_cannot_be_installed_is_named() {
    let folder = tempfile::tempdir().expect("a folder");
    let built = Built {
        library: "/absent.so".into(),
        trace: "/absent.so".into(),
        mpjrun: "/absent".into(),
    };
    let text = install(&built, folder.path()).expect_err("there is no library").to_string();
    let place = folder.path().join("lib/libmpi_abi.so.1");
    assert!(text.starts_with(&format!("cannot make {}: ", place.display())), "{text}");
    assert!(install(&built, Path::new("/dev/null")).is_err());
}
