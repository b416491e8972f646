"""How the programs of this folder show their figures."""

import itertools
import math
import statistics


def shown(figures, digits=1):
    """The median, with the interval of six or more figures."""
    text = f"{statistics.median(figures):.{digits}f}"
    # With a probability of 5 %, the median lies outside of the figures that remain after `cut` are cut off at each end.
    tails = itertools.accumulate(math.comb(len(figures), above) for above in range(len(figures)))
    cut = sum(2 * tail <= 0.05 * 2 ** len(figures) for tail in tails) - 1
    ordered = sorted(figures)
    return text if cut < 0 else f"{text} [{ordered[cut]:.{digits}f}, {ordered[-1 - cut]:.{digits}f}]"
