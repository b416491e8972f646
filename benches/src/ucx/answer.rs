//! Reads what `ucx_perftest -f -v` prints: a line of names, then one line of numbers for each test.
//!
//! ```text
//! 9,iterations,50.0_percentile_lat,avg_lat,overall_lat,avg_bw,overall_bw,avg_mr,overall_mr
//! 0,1000,0.150,0.154,0.154,49.69,49.69,6512894,6512894
//! ```
//!
//! The first column has the name of the file of tests, and below it the names of the tests. Latencies are in
//! microseconds to three places, and bandwidths in MiB per second to two. (The rates of messages count one message too
//! many in some tests.) All other texts are refused.

use super::pair::Test;

/// Why a table is refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum AnswerError {
    /// There is no such column.
    #[error("no column '{name}' in '{line}'")]
    NoColumn {
        /// The name of the column.
        name: &'static str,
        /// The line of names.
        line: String,
    },
    /// There are more or fewer lines than tests.
    #[error("{found} lines for {expected} tests")]
    Lines {
        /// The number of tests.
        expected: usize,
        /// The number of lines.
        found: usize,
    },
    /// A line has not as many columns as there are names.
    #[error("{found} columns instead of {expected} in '{line}'")]
    Columns {
        /// The number of names.
        expected: usize,
        /// The number of columns.
        found: usize,
        /// The line.
        line: String,
    },
    /// A line is of another test, or of a test that was not completed.
    #[error("not test {test} with {iterations} iterations: '{line}'")]
    OtherTest {
        /// The number of the test.
        test: usize,
        /// Its iterations.
        iterations: u64,
        /// The line.
        line: String,
    },
    /// A figure is no number above zero.
    #[error("no positive number in column '{name}' of '{line}'")]
    NoNumber {
        /// The name of the column.
        name: &'static str,
        /// The line.
        line: String,
    },
    /// Latency and bandwidth of a line do not belong together.
    #[error("latency and bandwidth contradict each other: '{line}'")]
    Contradiction {
        /// The line.
        line: String,
    },
}

const ITERATIONS: &str = "iterations";
const LATENCY: &str = "overall_lat";
const BANDWIDTH: &str = "overall_bw";
/// Bytes of its unit.
const MIB: f64 = (1 << 20) as f64;

/// Returns the messages per second of each test. Tests are named by their numbers, from 0.
///
/// # Errors
/// The first difference between `text` and a table of these tests.
pub fn rates(text: &str, tests: &[Test]) -> Result<Vec<f64>, AnswerError> {
    let mut lines = text.lines();
    let head = lines.next().unwrap_or_default();
    let names: Vec<&str> = head.split(',').collect();
    let column = |name: &'static str| {
        let place = names.iter().position(|it| *it == name);
        place.ok_or_else(|| AnswerError::NoColumn { name, line: head.to_owned() })
    };
    let [count, latency, bandwidth] = [column(ITERATIONS)?, column(LATENCY)?, column(BANDWIDTH)?];
    let lines: Vec<&str> = lines.collect();
    if lines.len() != tests.len() {
        return Err(AnswerError::Lines { expected: tests.len(), found: lines.len() });
    }
    let rate_of = |(test, (&line, of)): (usize, (&&str, &Test))| {
        let Test { size, iterations } = *of;
        // Counts below 1000 are padded.
        let cells: Vec<&str> = line.split(',').map(str::trim_start).collect();
        let line = || line.to_owned();
        if cells.len() != names.len() {
            let (expected, found) = (names.len(), cells.len());
            return Err(AnswerError::Columns { expected, found, line: line() });
        }
        if cells[0] != test.to_string() || cells[count] != iterations.to_string() {
            return Err(AnswerError::OtherTest { test, iterations, line: line() });
        }
        let number = |name, place: usize| {
            let number = cells[place].parse().ok();
            let number = number.filter(|number: &f64| number.is_finite() && *number > 0.0);
            number.ok_or_else(|| AnswerError::NoNumber { name, line: line() })
        };
        let latency = number(LATENCY, latency)?;
        let rate = number(BANDWIDTH, bandwidth)? * MIB / size as f64;
        match agree(latency, rate) {
            true => Ok(rate),
            false => Err(AnswerError::Contradiction { line: line() }),
        }
    };
    lines.iter().zip(tests).enumerate().map(rate_of).collect()
}

/// Whether a latency in microseconds, rounded to thousandths, belongs to a rate in messages per second.
fn agree(latency: f64, rate: f64) -> bool {
    let exact = 1e6 / rate;
    (latency - exact).abs() <= 0.001 + exact * 0.01
}

/// Returns the version in the answer of `ucx_info -v`.
pub fn version(said: &str) -> Option<&str> {
    let mut words = said
        .split_whitespace()
        .skip_while(|word| !word.eq_ignore_ascii_case("version") && *word != "version:");
    let version = words.nth(1)?;
    version.starts_with(|first: char| first.is_ascii_digit()).then_some(version)
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEAD: &str = "9,iterations,50.0_percentile_lat,avg_lat,overall_lat,avg_bw,overall_bw,avg_mr,overall_mr\n";
    const SHORT: &str = "0,1000,0.150,0.154,0.154,49.69,49.69,6512894,6512894\n";
    const LONG: &str = "1, 100,21.905,22.540,22.540,44365.62,44365.62,44366,44366\n";

    const TESTS: [Test; 2] =
        [Test { size: 8, iterations: 1000 }, Test { size: 1 << 20, iterations: 100 }];

    fn refused(lines: &str) -> AnswerError {
        rates(&format!("{HEAD}{lines}"), &TESTS).expect_err(lines)
    }

    #[test]
    fn a_table_gives_the_rate_of_each_test() {
        let text = format!("{HEAD}{SHORT}{LONG}");
        let [short, long] = rates(&text, &TESTS).expect("it is one")[..] else {
            panic!("two tests")
        };
        assert!((short * 1e-6 - 6.513).abs() < 0.001, "{short}");
        assert!((long - 44_365.6).abs() < 0.1, "{long}");
        assert_eq!(rates(HEAD, &[]), Ok(vec![]));
    }

    #[test]
    fn columns_are_found_by_their_names() {
        let text = "batch,overall_bw,iterations,new,overall_lat\n0,4.00,10,x,1.907\n";
        let test = Test { size: 8, iterations: 10 };
        assert_eq!(rates(text, &[test]), Ok(vec![f64::from(1 << 19)]));
        let without = HEAD.replace("overall_bw", "bandwidth");
        let error = rates(&without, &[]).expect_err("it has no bandwidth");
        assert!(matches!(error, AnswerError::NoColumn { name: "overall_bw", .. }), "{error}");
        assert!(matches!(rates("", &[]), Err(AnswerError::NoColumn { .. })));
    }

    #[test]
    fn tables_with_other_lines_are_refused() {
        let error = refused(SHORT);
        assert_eq!(error, AnswerError::Lines { expected: 2, found: 1 });
        let error = refused(&format!("{SHORT}{LONG}{LONG}"));
        assert_eq!(error, AnswerError::Lines { expected: 2, found: 3 });
        let error = refused(&format!("{LONG}{SHORT}"));
        assert!(matches!(error, AnswerError::OtherTest { test: 0, .. }), "{error}");
        let warning = "[1795616600.739123] UCX  WARN  unused environment variable\n";
        let error = refused(&format!("{SHORT}{warning}"));
        assert!(matches!(error, AnswerError::Columns { expected: 9, found: 1, .. }), "{error}");
    }

    #[test]
    fn damaged_lines_are_refused() {
        let with = |from: &str, to: &str| refused(&format!("{}{LONG}", SHORT.replace(from, to)));
        let error = with("0,1000,", "0,999,");
        assert!(matches!(error, AnswerError::OtherTest { test: 0, .. }), "{error}");
        for wrong in ["", "x", "nan", "inf", "-1", "0", "49.69 "] {
            let error = with("49.69,49.69", &format!("49.69,{wrong}"));
            assert!(matches!(error, AnswerError::NoNumber { name: "overall_bw", .. }), "{error}");
        }
        let error = with("0.154,49", "0.514,49");
        assert!(matches!(error, AnswerError::Contradiction { .. }), "{error}");
        let error = with(",49.69", "");
        assert!(matches!(error, AnswerError::Columns { found: 7, .. }), "{error}");
    }

    #[test]
    fn versions_are_found() {
        assert_eq!(version("# Version 1.13.1\n# Git branch"), Some("1.13.1"));
        assert_eq!(version("# Library version: 1.17.0\n# Library path"), Some("1.17.0"));
        assert_eq!(version("# Version"), None);
        assert_eq!(version("something else"), None);
    }
}
