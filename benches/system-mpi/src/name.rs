//! What a library calls itself, made short.

/// Returns `Open MPI 4.1.4` and the like, from the text of MPI_Get_library_version. Of a library that
/// is not known here, it returns the beginning of the first line.
pub fn short(text: &str) -> String {
    let line = text.lines().next().unwrap_or_default();
    let line = line.split(',').next().unwrap_or_default().trim();
    if let Some(version) = line.strip_prefix("Open MPI v") {
        return format!("Open MPI {version}");
    }
    if let Some(rest) = line.strip_prefix("Intel(R) MPI Library ") {
        return format!("Intel MPI {}", first_word(rest));
    }
    match line.split_once(" Version:") {
        Some((name, rest)) => format!("{name} {}", first_word(rest)),
        None => line.to_owned(),
    }
}

fn first_word(text: &str) -> &str {
    text.split_whitespace().next().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::short;

    #[test]
    fn names_are_short() {
        let open = "Open MPI v4.1.4, package: Debian OpenMPI, ident: 4.1.4, repo rev: v4.1.4";
        assert_eq!(short(open), "Open MPI 4.1.4");
        let mpich = "MPICH Version:      4.0.2\nMPICH Release date: Thu Apr  7 12:34:45 CDT 2022\n";
        assert_eq!(short(mpich), "MPICH 4.0.2");
        assert_eq!(short("Intel(R) MPI Library 2021.16 for Linux* OS\n"), "Intel MPI 2021.16");
        assert_eq!(short("MVAPICH2 Version      :\t2.3.7"), "MVAPICH2 Version      :\t2.3.7");
        assert_eq!(short(""), "");
    }
}
