//! Tests that need no MPI.

use std::fs;
use std::os::unix::fs::symlink;

use super::*;

fn peer(flavour: Flavour) -> Peer {
    Peer {
        id: flavour.id().to_owned(),
        mpicc: "/opt/some/bin/mpicc".into(),
        mpiexec: "/opt/some/bin/mpiexec".into(),
        flavour,
        version: "1.2".to_owned(),
        label: format!("{} 1.2", flavour.title()),
        network: Network::Libfabric,
    }
}

fn words(command: &Command) -> Vec<&str> {
    command.get_args().map(|word| word.to_str().expect("all are texts")).collect()
}

#[test]
fn launchers_say_what_they_are() {
    let said = |said| identify(said);
    let (open, mpich, intel) = (Flavour::OpenMpi, Flavour::Mpich, Flavour::Intel);
    assert_eq!(said("mpiexec.openmpi (OpenRTE) 4.1.4\n\nReport bugs to"), Some((open, "4.1.4")));
    assert_eq!(said("mpiexec (Open MPI) 5.0.11\n\nReport bugs"), Some((open, "5.0.11")));
    let hydra = "HYDRA build details:\n    Version:          4.0.2\n    Release Date:  Thu Apr  7";
    assert_eq!(said(hydra), Some((mpich, "4.0.2")));
    let line = "Intel(R) MPI Library for Linux* OS, Version 2021.16 Build 20250722 (id: c37a540)";
    assert_eq!(said(line), Some((intel, "2021.16")));
    assert_eq!(said("mpjrun 0.1.0\n"), Some((Flavour::Libmpi, "0.1.0")));
    assert_eq!(said("slurm-wlm 22.05.8"), None);
    assert_eq!(said("HYDRA build details:"), None);
    assert_eq!(said("mpiexec (Open MPI)"), None);
    assert_eq!(said(""), None);
}

#[test]
fn a_launcher_is_beside_its_compiler() {
    let [first, second] = launchers(Path::new("/usr/bin/mpicc.mpich"));
    assert_eq!(first, Path::new("/usr/bin/mpiexec.mpich"));
    assert_eq!(second, Path::new("/usr/bin/mpirun.mpich"));
    assert_eq!(launchers(Path::new("/opt/bin/mpiicx"))[0], Path::new("/opt/bin/mpiexec"));
}

#[test]
fn what_is_not_there_is_told_with_the_choices() {
    let error = find("opennmpi").expect_err("no such name").to_string();
    assert!(
        error.contains("'opennmpi'") && error.contains("openmpi, mpich, impi, libmpi"),
        "{error}"
    );
    let hint = PeerError::NotInstalled(Flavour::Mpich).to_string();
    assert!(hint.contains("mpicc.mpich") && hint.contains("libmpich-dev"), "{hint}");
}

#[test]
fn a_place_has_a_compiler_and_a_launcher_that_says_who_it_is() {
    let folder = tempfile::tempdir().expect("a folder");
    let place = folder.path().to_str().expect("a text");
    assert!(matches!(find(place), Err(PeerError::NoMpicc(_))));
    let bin = folder.path().join("bin");
    fs::create_dir(&bin).and_then(|()| fs::write(bin.join("mpicc"), "")).expect("written");
    let from_bin = bin.to_str().expect("a text");
    for place in [place, from_bin] {
        assert!(matches!(find(place), Err(PeerError::NoLauncher(_))));
    }
    symlink("/bin/true", bin.join("mpirun")).expect("linked");
    match find(place) {
        Err(PeerError::Unidentified { mpiexec, .. }) => assert_eq!(mpiexec, bin.join("mpirun")),
        other => panic!("{other:?}"),
    }
}

fn hosts(names: &[&str], processors: usize) -> Hosts {
    let names = names.iter().map(|name| (*name).to_owned()).collect();
    Hosts { processors: (0..processors).collect(), names, one_machine: true }
}

#[test]
fn launchers_bind_nothing_and_start_as_many_as_wanted() {
    let words_of = |flavour, ranks, processors| {
        let command = peer(flavour).command(ranks, &hosts(&[], processors), Path::new("worker"));
        words(&command).join(" ")
    };
    let open = |processors| words_of(Flavour::OpenMpi, 4, processors);
    assert_eq!(open(2), "-n 4 --bind-to none --oversubscribe worker");
    assert_eq!(open(4), "-n 4 --bind-to none --use-hwthread-cpus worker");
    assert_eq!(words_of(Flavour::Mpich, 8, 2), "-n 8 -bind-to none worker");
    assert_eq!(words_of(Flavour::Intel, 2, 2), "-n 2 worker");
    assert_eq!(words_of(Flavour::Libmpi, 4, 2), "-n 4 worker");
    let settings = peer(Flavour::Intel).settings();
    assert!(settings.contains(&("I_MPI_PIN", "off".into())), "{settings:?}");
    assert!(settings.contains(&("I_MPI_ROOT", "/opt/some".into())), "{settings:?}");
}

#[test]
fn launchers_are_told_hosts_and_networks() {
    let of = |flavour| {
        let place = hosts(&["a", "b"], 2);
        let peers = peer(flavour).networks().into_iter();
        let commands = peers.map(|peer| peer.command(4, &place, Path::new("worker")));
        let words = commands.map(|command| words(&command).join(" "));
        words.collect::<Vec<_>>()
    };
    let open = of(Flavour::OpenMpi);
    assert!(open[0].starts_with("-n 4 --host a:2,b:2 --mca pml cm --mca mtl ofi "), "{open:?}");
    assert!(open[1].contains("--mca btl tcp,self,sm --mca mpi_yield_when_idle 1 "), "{open:?}");
    assert_eq!(of(Flavour::Mpich), ["-n 4 -launcher ssh -hosts a:2,b:2 -bind-to none worker"]);
    assert_eq!(of(Flavour::Intel), ["-n 4 -bootstrap ssh -hosts a,b -ppn 2 worker"]);
    assert_eq!(of(Flavour::Libmpi), ["-n 4 --hosts a:2,b:2 worker"]);
}

#[test]
fn every_mpi_is_built_in_a_folder_of_its_own() {
    let first = peer(Flavour::OpenMpi);
    assert_eq!(first.folder(), "openmpi-1.2-opt-some-bin-mpicc");
    let newer = Peer { version: "1.3".to_owned(), ..first.clone() };
    let elsewhere = Peer { mpicc: "/usr/bin/mpicc".into(), ..first.clone() };
    assert!(![newer.folder(), elsewhere.folder()].contains(&first.folder()));
}

#[test]
fn cargo_names_the_program_in_one_line_of_many() {
    use super::build::executable;
    assert_eq!(executable(r#"{"reason":"build-script-executed"}"#), None);
    assert_eq!(executable(r#"{"reason":"compiler-artifact","executable":null}"#), None);
    let line = r#"{"reason":"compiler-artifact","executable":"/target/release/worker"}"#;
    assert_eq!(executable(line), Some(PathBuf::from("/target/release/worker")));
    assert_eq!(executable("not JSON"), None);
}
