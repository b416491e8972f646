#!/usr/bin/env python3
"""Compares the example programs matmul and npy with NumPy.

    numpy_check.py MPJRUN MATMUL NPY      multiply matrices of many kinds and compare the products; read divided matrices
    numpy_check.py --write-samples DIR    write the matrices that are checked in beside this file

Exit code: 0 when all matrices agree, 1 when one does not, 2 when NumPy is missing or an argument
is wrong. Needs Python 3.8 and NumPy 1.17 or newer.
"""

import argparse
import itertools
import pathlib
import random
import subprocess
import sys
import tempfile

try:
    import numpy as np
except ImportError:
    print("numpy_check: this Python has no NumPy", file=sys.stderr)
    sys.exit(2)

SHAPES = [
    (1, 1, 1),
    (7, 5, 3),
    (1, 40, 6),
    (6, 40, 1),
    (64, 33, 17),
    (3, 0, 4),
    (0, 4, 5),
    (2, 300, 2),
    (129, 65, 257),
]
RANKS = [1, 2, 3, 4, 7, 9]
BACKENDS = ["auto", "eager", "rendezvous"]
ALGORITHMS = ["auto", "summa", "ring"]
ORDERS = ["CC", "CF", "FC", "FF"]
SECONDS = 60

# Name, extents, type, orders of the factors, version of the format.
SAMPLES = [
    ("odd_f8", (7, 5, 3), "<f8", "CC", (1, 0)),
    ("tall_f4", (64, 33, 17), "<f4", "CC", (1, 0)),
    ("fortran_f8", (12, 10, 9), "<f8", "FF", (1, 0)),
    ("row_f4", (1, 40, 6), "<f4", "CF", (1, 0)),
    ("empty_f8", (3, 0, 4), "<f8", "CC", (1, 0)),
    ("version2_f8", (6, 6, 5), "<f8", "FC", (2, 0)),
]


def factors(extents, dtype, orders, seed):
    """Two random matrices that multiply."""
    m, k, n = extents
    generator = np.random.RandomState(seed)
    a = generator.uniform(-1.0, 1.0, (m, k))
    b = generator.uniform(-1.0, 1.0, (k, n))
    return a.astype(dtype, order=orders[0]), b.astype(dtype, order=orders[1])


def save(path, array, version=(1, 0)):
    with open(path, "wb") as file:
        np.lib.format.write_array(file, array, version=version, allow_pickle=False)


def write_samples(folder):
    for seed, (name, extents, dtype, orders, version) in enumerate(SAMPLES):
        a, b = factors(extents, dtype, orders, seed)
        save(folder / f"{name}.a.npy", a, version)
        save(folder / f"{name}.b.npy", b, version)
        save(folder / f"{name}.c.npy", np.ascontiguousarray(a @ b))


def difference(folder, mpjrun, matmul, case):
    """What is wrong with the product of one case; None if nothing is."""
    extents, dtype, ranks, backend, algorithm, orders = case
    a, b = factors(extents, dtype, orders, seed=sum(extents))
    paths = [folder / name for name in ("a.npy", "b.npy", "c.npy")]
    save(paths[0], a)
    save(paths[1], b, version=(2, 0))
    paths[2].unlink(missing_ok=True)
    command = [mpjrun, "-n", ranks, "--backend", backend, matmul, "--algorithm", algorithm]
    command += ["--a", paths[0], "--b", paths[1], "--out", paths[2]]
    try:
        run = subprocess.run(
            [str(word) for word in command], capture_output=True, text=True, timeout=SECONDS
        )
    except subprocess.TimeoutExpired:
        return f"no end within {SECONDS} s"
    if run.returncode != 0:
        return f"exit code {run.returncode}: {run.stderr.strip()}"
    c, expected = np.load(paths[2], allow_pickle=False), a @ b
    if (c.dtype, c.shape) != (expected.dtype, expected.shape):
        return f"{c.dtype} {c.shape} instead of {expected.dtype} {expected.shape}"
    # Values lie between -1 and 1, so the error of a sum of k products is about k roundings.
    tolerance = 4 * max(extents[1], 1) * np.finfo(dtype).eps
    if not np.allclose(c, expected, rtol=tolerance, atol=tolerance):
        return f"largest difference {np.max(np.abs(c - expected))}, tolerance {tolerance}"
    return None


def misread(folder, mpjrun, npy, ranks, shape):
    """What is wrong with a matrix that ranks have written together; None if nothing is."""
    path = folder / "matrix.npy"
    command = [mpjrun, "-n", ranks, npy, "--rows", shape[0], "--columns", shape[1], "--out", path]
    run = subprocess.run([str(word) for word in command], capture_output=True, text=True, timeout=SECONDS)
    if run.returncode != 0:
        return f"exit code {run.returncode}: {run.stderr.strip()}"
    rows, columns = np.indices(shape)
    read = np.load(path, allow_pickle=False)
    return None if np.array_equal(read, rows + columns / 1e6) else "it has other elements"


def cases():
    """Every shape, type and number of ranks; the other choices are drawn, the same every time."""
    draw = random.Random(1).choice
    for extents, dtype, ranks in itertools.product(SHAPES, ["<f4", "<f8"], RANKS):
        yield extents, dtype, ranks, draw(BACKENDS), draw(ALGORITHMS), draw(ORDERS)


def main():
    parser = argparse.ArgumentParser(description="Compare the example programs matmul and npy with NumPy.")
    parser.add_argument("mpjrun", nargs="?", type=pathlib.Path)
    parser.add_argument("matmul", nargs="?", type=pathlib.Path)
    parser.add_argument("npy", nargs="?", type=pathlib.Path)
    parser.add_argument("--write-samples", metavar="DIR", type=pathlib.Path)
    arguments = parser.parse_args()
    if arguments.write_samples:
        write_samples(arguments.write_samples)
        return 0
    if not arguments.npy:
        parser.error("the paths of mpjrun, of matmul and of npy are needed")
    for program in (arguments.mpjrun, arguments.matmul, arguments.npy):
        if not program.is_file():
            parser.error(f"{program}: no such file; cargo builds it with --release")
    checked = failed = 0
    with tempfile.TemporaryDirectory() as folder:
        for case in cases():
            wrong = difference(pathlib.Path(folder), arguments.mpjrun, arguments.matmul, case)
            checked += 1
            if wrong:
                failed += 1
                print(f"{case}: {wrong}", file=sys.stderr)
        for ranks, shape in itertools.product(RANKS, [(1, 1), (100, 37), (3, 2000)]):
            wrong = misread(pathlib.Path(folder), arguments.mpjrun, arguments.npy, ranks, shape)
            checked += 1
            if wrong:
                failed += 1
                print(f"npy on {ranks} ranks, {shape}: {wrong}", file=sys.stderr)
    print(f"{checked - failed} of {checked} matrices agree with NumPy {np.__version__}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
