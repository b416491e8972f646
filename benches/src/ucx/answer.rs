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

use mpj_bench_programs::Failure;

use super::pair::Test;

/// Bytes of the unit of bandwidths.
const MIB: f64 = (1 << 20) as f64;
/// How much a bandwidth may be rounded, in that unit. For short messages that take long this is much.
const ROUNDED: f64 = 0.005;

/// Returns the messages per second of each test. Tests are named by their numbers, from 0.
///
/// # Errors
/// The first difference between `text` and a table of these tests.
pub fn rates(text: &str, tests: &[Test]) -> Result<Vec<f64>, Failure> {
    let mut lines = text.lines();
    let head = lines.next().unwrap_or_default();
    let names: Vec<&str> = head.split(',').collect();
    let column = |name: &str| {
        let place = names.iter().position(|it| *it == name);
        place.ok_or_else(|| Failure::new(format_args!("no column '{name}' in '{head}'")))
    };
    let (count, latency) = (column("iterations")?, column("overall_lat")?);
    let bandwidth = column("overall_bw")?;
    let lines: Vec<&str> = lines.collect();
    if lines.len() != tests.len() {
        let (found, expected) = (lines.len(), tests.len());
        return Err(Failure::new(format_args!("{found} lines for {expected} tests")));
    }
    let rate = |number: usize, line: &str, test: &Test| {
        // Counts below 1000 are padded.
        let cells: Vec<&str> = line.split(',').map(str::trim_start).collect();
        if cells.len() != names.len()
            || cells[0] != number.to_string()
            || cells[count] != test.iterations.to_string()
        {
            return None;
        }
        let figure = |place: usize| {
            let figure = cells[place].parse().ok();
            figure.filter(|figure: &f64| figure.is_finite() && *figure > 0.0)
        };
        let bandwidth = figure(bandwidth)?;
        let rate = |bandwidth: f64| bandwidth * MIB / test.size as f64;
        let rates = [bandwidth - ROUNDED, bandwidth + ROUNDED].map(rate);
        agree(figure(latency)?, rates).then_some(rate(bandwidth))
    };
    let rates = lines.iter().zip(tests).enumerate().map(|(number, (line, test))| {
        let wrong = || Failure::new(format_args!("test {number} gave '{line}', not {test:?}"));
        rate(number, line, test).ok_or_else(wrong)
    });
    rates.collect()
}

/// Whether a latency in microseconds, rounded to thousandths, belongs to a rate between two, in messages per second.
fn agree(latency: f64, [least, most]: [f64; 2]) -> bool {
    let [shortest, longest] = [1e6 / most, 1e6 / least];
    (shortest * 0.99 - 0.001..=longest * 1.01 + 0.001).contains(&latency)
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

    #[track_caller]
    fn is_refused(text: &str, why: &str) {
        let failure = rates(text, &TESTS).expect_err(text).to_string();
        assert!(failure.starts_with(why), "{failure}");
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
        is_refused(&HEAD.replace("overall_bw", "bandwidth"), "no column 'overall_bw' in '9,");
        is_refused("", "no column 'iterations' in ''");
    }

    #[test]
    fn a_bandwidth_is_rounded() {
        let test = [Test { size: 8, iterations: 10 }];
        let table =
            |latency: &str| format!("9,iterations,overall_lat,overall_bw\n0,10,{latency},0.08\n");
        for latency in ["90.000", "101.000"] {
            assert!(rates(&table(latency), &test).is_ok(), "{latency} µs");
        }
        for latency in ["88.000", "104.000"] {
            assert!(rates(&table(latency), &test).is_err(), "{latency} µs");
        }
    }

    #[test]
    fn other_tables_are_refused() {
        is_refused(&format!("{HEAD}{SHORT}"), "1 lines for 2 tests");
        is_refused(&format!("{HEAD}{SHORT}{LONG}{LONG}"), "3 lines for 2 tests");
        is_refused(&format!("{HEAD}{LONG}{SHORT}"), "test 0 gave '1, 100,");
        let warning = "[1795616600.739123] UCX  WARN  unused environment variable\n";
        is_refused(&format!("{HEAD}{SHORT}{warning}"), "test 1 gave '[1795616600.739123]");
        let damages = [("0,1000,", "0,999,"), ("0.154,49", "0.514,49"), (",49.69", "")];
        let numbers = ["", "x", "nan", "inf", "-1", "0", "49.69 "].map(|number| ("49.69", number));
        for (from, to) in [&damages[..], &numbers].concat() {
            let damaged = SHORT.replace(from, to);
            is_refused(&format!("{HEAD}{damaged}{LONG}"), "test 0 gave '0,");
        }
    }

    #[test]
    fn versions_are_found() {
        assert_eq!(version("# Version 1.13.1\n# Git branch"), Some("1.13.1"));
        assert_eq!(version("# Library version: 1.17.0\n# Library path"), Some("1.17.0"));
        assert_eq!(version("# Version"), None);
        assert_eq!(version("something else"), None);
    }
}
