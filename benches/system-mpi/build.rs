//! Makes the worker find, when it runs, the MPI that it was built for, wherever that is installed; and
//! compiles the constants that `mpi-sys` leaves out. Both ask the `mpicc` that MPICC names.

fn main() {
    println!("cargo:rerun-if-env-changed=MPICC");
    println!("cargo:rerun-if-changed=src/constants.c");
    let library = build_probe_mpi::probe().expect("mpi-sys, which is built before, has found it");
    for folder in library.lib_paths {
        println!("cargo:rustc-link-arg=-Wl,-rpath,{}", folder.display());
    }
    let mut shim = cc::Build::new();
    if let Some(mpicc) = library.mpicc {
        shim.compiler(mpicc);
    }
    shim.includes(library.include_paths).file("src/constants.c").compile("mpj_bench_constants");
}
