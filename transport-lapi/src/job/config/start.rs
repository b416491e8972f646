//! What the environment tells of how this process was started, if not by `mpjrun`.
//!
//! Variables outlive those for whom they were set: a script that Slurm has started may start hydra, whose ranks have the
//! variables of both. So the innermost is looked for first. Hydra marks its ranks, and Open MPI's launcher is known by
//! PMIx. What is left is Slurm's, or another manager's that speaks PMI-1.

use super::Lookup;

/// How this process was started, as far as the environment tells.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Start {
    /// By nobody, or as the only rank of its job.
    Alone,
    /// By a process manager that passes a descriptor, on which it speaks PMI-1.
    Pmi1 { descriptor: i32, rank: u32, size: u32 },
    /// By one that takes connections at a port, where it speaks PMI-1.
    Pmi1Port { address: String, id: String },
    /// By one that passes a descriptor, on which it speaks PMI-2.
    Pmi2 { descriptor: i32, job: String, rank: u32, size: u32 },
    /// By one that is reached through the library of PMIx, which may lie in the installation at `prefix`.
    Pmix { prefix: Option<String> },
    /// By a launcher whose ranks cannot find each other here.
    Foreign(ForeignLauncher),
}

/// The variable with the number of the descriptor of PMI.
pub(crate) const PMI_FD: &str = "PMI_FD";

/// A variable that hydra sets for its ranks.
const OF_HYDRA: &str = "MPI_LOCALRANKID";

/// Another MPI's launcher, recognised by a variable that it sets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ForeignLauncher {
    pub(crate) launcher: &'static str,
    pub(crate) variable: &'static str,
    /// How to start the program instead, besides by `mpjrun`.
    pub(crate) instead: &'static str,
}

/// Variables that tell the size of a job, and who sets them.
const SIZES: [ForeignLauncher; 3] = [
    ForeignLauncher {
        variable: "OMPI_COMM_WORLD_SIZE",
        launcher: "Open MPI's launcher, without PMIx",
        instead: "",
    },
    ForeignLauncher {
        variable: "PMI_SIZE",
        launcher: "MPICH's launcher, which passed no connection (PMI_FD)",
        instead: "",
    },
    ForeignLauncher {
        variable: "SLURM_NTASKS",
        launcher: "Slurm, without a process manager interface",
        instead: " or srun --mpi=pmi2 PROGRAM",
    },
];

impl Start {
    pub(super) fn from_lookup(lookup: Lookup<'_>) -> Self {
        let is_set = |variable| lookup(variable).is_some();
        let of_pmix = is_set("PMIX_RANK") && is_set("PMIX_NAMESPACE");
        let of_pmi = Self::pmi(lookup).filter(|_| is_set(OF_HYDRA) || !of_pmix);
        let alone = SIZES.iter().any(|row| size(lookup, row) == Some(1));
        match of_pmi {
            Some(Self::Pmi1 { size: 1, .. } | Self::Pmi2 { size: 1, .. }) => Self::Alone,
            Some(start) => start,
            None if of_pmix && !alone => Self::Pmix { prefix: lookup("PMIX_PREFIX") },
            None => Self::foreign(lookup, alone),
        }
    }

    /// A manager that speaks PMI-1 or PMI-2.
    fn pmi(lookup: Lookup<'_>) -> Option<Self> {
        if let (Some(address), Some(id)) = (lookup("PMI_PORT"), lookup("PMI_ID")) {
            return Some(Self::Pmi1Port { address, id });
        }
        let number = |variable| lookup(variable)?.trim().parse::<u32>().ok();
        let descriptor = i32::try_from(number(PMI_FD)?).ok()?;
        let (rank, size) = (number("PMI_RANK")?, number("PMI_SIZE")?);
        // Slurm's variable may have come to ranks of hydra, too, which speaks PMI-1 in every version.
        let job = lookup("PMI_JOBID").filter(|_| lookup(OF_HYDRA).is_none());
        Some(match job {
            Some(job) => Self::Pmi2 { descriptor, job, rank, size },
            None => Self::Pmi1 { descriptor, rank, size },
        })
    }

    /// A size above one is proof. `PMIX_RANK` has no size; it counts only if no size variable says that the job has a
    /// single rank, since that is a singleton under any launcher.
    fn foreign(lookup: Lookup<'_>, alone: bool) -> Self {
        let above_one = |row: &&ForeignLauncher| size(lookup, row).is_some_and(|size| size > 1);
        if let Some(row) = SIZES.iter().find(above_one) {
            return Self::Foreign(*row);
        }
        let variable = "PMIX_RANK";
        if alone || lookup(variable).is_none() {
            return Self::Alone;
        }
        let launcher = "a PMIx launcher, which gave no PMIX_NAMESPACE";
        Self::Foreign(ForeignLauncher { launcher, variable, instead: "" })
    }

    /// Returns the number of ranks, if the environment tells it.
    pub(super) fn size(&self, lookup: Lookup<'_>) -> Option<u32> {
        match self {
            Self::Pmi1 { size, .. } | Self::Pmi2 { size, .. } => Some(*size),
            Self::Pmi1Port { .. } | Self::Pmix { .. } => {
                SIZES.iter().find_map(|row| size(lookup, row))
            }
            Self::Alone | Self::Foreign(_) => None,
        }
    }
}

fn size(lookup: Lookup<'_>, row: &ForeignLauncher) -> Option<u32> {
    lookup(row.variable)?.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn start(entries: &[(&str, &str)]) -> Start {
        Start::from_lookup(&|name| {
            let entry = entries.iter().find(|(known, _)| *known == name);
            entry.map(|(_, value)| (*value).to_owned())
        })
    }

    const HYDRA: [(&str, &str); 4] =
        [("PMI_FD", "9"), ("PMI_RANK", "1"), ("PMI_SIZE", "2"), ("MPI_LOCALRANKID", "1")];
    const SLURM: [(&str, &str); 5] = [
        ("PMI_FD", "11"),
        ("PMI_RANK", "0"),
        ("PMI_SIZE", "4"),
        ("PMI_JOBID", "7.0"),
        ("SLURM_NTASKS", "4"),
    ];
    const PMIX: [(&str, &str); 3] =
        [("PMIX_RANK", "0"), ("PMIX_NAMESPACE", "job@1"), ("OMPI_COMM_WORLD_SIZE", "2")];

    #[test]
    fn each_process_manager_is_known_by_its_variables() {
        assert_eq!(start(&HYDRA), Start::Pmi1 { descriptor: 9, rank: 1, size: 2 });
        let job = "7.0".to_owned();
        assert_eq!(start(&SLURM), Start::Pmi2 { descriptor: 11, job, rank: 0, size: 4 });
        assert_eq!(start(&PMIX), Start::Pmix { prefix: None });
        let (address, id) = ("h:4".to_owned(), "3".to_owned());
        let port = start(&[("PMI_PORT", "h:4"), ("PMI_ID", "3")]);
        assert_eq!(port, Start::Pmi1Port { address, id });
        assert_eq!(start(&[]), Start::Alone);
    }

    #[test]
    fn the_innermost_of_two_is_the_one() {
        let hydra = start(&HYDRA);
        assert_eq!(start(&[&HYDRA[..], &SLURM[3..]].concat()), hydra, "hydra under Slurm's PMI-2");
        assert_eq!(start(&[&HYDRA[..], &PMIX[..2]].concat()), hydra, "hydra under Slurm's PMIx");
        assert_eq!(start(&[&SLURM[..], &PMIX[..]].concat()), start(&PMIX), "mpirun under PMI-2");
    }

    #[test]
    fn a_size_is_known_before_the_rank_joins() {
        let size = |entries: &[(&str, &str)]| {
            start(entries).size(&|name| {
                let entry = entries.iter().find(|(known, _)| *known == name);
                entry.map(|(_, value)| (*value).to_owned())
            })
        };
        assert_eq!([size(&HYDRA), size(&SLURM), size(&PMIX)], [Some(2), Some(4), Some(2)]);
        assert_eq!([size(&[]), size(&[("SLURM_NTASKS", "3")])], [None, None]);
    }

    #[test]
    fn a_foreign_launcher_is_named_by_its_variable() {
        for (variable, instead) in [
            ("OMPI_COMM_WORLD_SIZE", ""),
            ("PMI_SIZE", ""),
            ("SLURM_NTASKS", " or srun --mpi=pmi2 PROGRAM"),
            ("PMIX_RANK", ""),
        ] {
            let Start::Foreign(found) = start(&[(variable, "2")]) else {
                panic!("{variable} is not noticed");
            };
            assert_eq!((found.variable, found.instead), (variable, instead));
        }
        let damaged = start(&[("PMI_FD", "x"), ("PMI_RANK", "0"), ("PMI_SIZE", "2")]);
        assert!(matches!(damaged, Start::Foreign(ForeignLauncher { variable: "PMI_SIZE", .. })));
    }

    #[test]
    fn a_foreign_job_of_one_rank_is_a_singleton() {
        let alone: [&[(&str, &str)]; 6] = [
            &[],
            &[("OMPI_COMM_WORLD_SIZE", "1"), ("PMIX_RANK", "0"), ("PMIX_NAMESPACE", "a")],
            &[("PMI_SIZE", "1")],
            &[("PMI_SIZE", "1"), ("PMI_FD", "9"), ("PMI_RANK", "0")],
            &[("SLURM_NTASKS", "1"), ("PMIX_RANK", "0")],
            &[("SLURM_NTASKS", "many")],
        ];
        for entries in alone {
            assert_eq!(start(entries), Start::Alone, "{entries:?}");
        }
    }
}
