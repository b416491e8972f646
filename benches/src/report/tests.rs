//! Tests of the reports, on made-up runs.

use mpj_bench_programs::series::SERIES;
use mpj_bench_programs::{Sample, Series, Unit, X};

use super::*;
use crate::analysis;
use crate::model::{FORMAT, Header, Launch, Run, RuntimeInfo, Threshold};

const NEAR: Option<(f64, f64)> = Some((50.0, 52.0));
const FAR: Option<(f64, f64)> = Some((250.0, 252.0));

fn run_of(runtimes: &[(&str, &str)], rounds: usize) -> Run {
    let info = |(id, label): &(&str, &str)| RuntimeInfo {
        id: (*id).to_owned(),
        label: (*label).to_owned(),
        ours: ["mpj ", "libmpi "].iter().any(|name| label.starts_with(name)),
    };
    let header = Header {
        format: FORMAT,
        command: "cargo mpj bench latency".to_owned(),
        started: "2026-01-02T03:04:05Z".to_owned(),
        machine: vec![("kernel".to_owned(), "Linux 6".to_owned())],
        runtimes: runtimes.iter().map(info).collect(),
        thresholds: ["auto: rendezvous", "self: rendezvous"]
            .map(|what| Threshold { bytes: 4096, what: what.to_owned() })
            .to_vec(),
        rounds,
    };
    Run { header, launches: Vec::new() }
}

fn launch(round: usize, runtime: &str, ranks: usize, samples: Vec<Sample>) -> Launch {
    Launch {
        round,
        runtime: runtime.to_owned(),
        benchmark: "any".to_owned(),
        ranks,
        oversubscribed: ranks > 2,
        raw: NEAR,
        seconds: 1.0,
        failure: None,
        samples,
        unclear: Vec::new(),
    }
}

fn sample(series: &str, x: u64, value: f64) -> Sample {
    Sample { series: series.to_owned(), x, values: vec![value], raw: None }
}

/// Six rounds of latency of 0 and 4096 bytes with the given times; each round takes a thousandth
/// longer than the one before.
fn latency(runtimes: &[(&str, &str)], times: &[[f64; 2]]) -> Run {
    let mut run = run_of(runtimes, 6);
    for round in 0..6 {
        for ((id, _), times) in runtimes.iter().zip(times) {
            let value = |time: f64| time * (1.0 + round as f64 / 1e3);
            let samples = [(0, times[0]), (4096, times[1])];
            let samples = samples.map(|(x, time)| sample("latency", x, value(time)));
            run.launches.push(launch(round, id, 2, samples.to_vec()));
        }
    }
    run
}

/// A run of two rounds of every series, one near and one far.
fn everything() -> Run {
    let runtimes = [("auto", "mpj auto"), ("openmpi", "Open MPI 4.1.4"), ("mpich", "MPICH 4.0.2")];
    let mut run = run_of(&runtimes, 2);
    for (round, raw) in [NEAR, FAR].into_iter().enumerate() {
        for (place, (id, _)) in runtimes.iter().enumerate() {
            for ranks in [2, 4] {
                let samples = SERIES.iter().flat_map(|series| points(series, ranks as u64, place));
                run.launches.push(Launch { raw, ..launch(round, id, ranks, samples.collect()) });
            }
        }
    }
    run
}

fn points(series: &Series, ranks: u64, runtime: usize) -> Vec<Sample> {
    let xs = match series.x {
        X::Bytes => vec![0, 8, 4096, 4097, 1 << 20],
        X::Ranks => vec![ranks],
        X::Order | X::Blocked | X::Contexts => vec![1, 10, 1_000_000],
    };
    let value = |x: u64| (x + 100) as f64 * (1.0 + runtime as f64 / 10.0);
    let value = |x| if series.unit == Unit::Percent { 0.0 } else { value(x) };
    xs.into_iter().map(|x| sample(series.id, x, value(x))).collect()
}

impl Run {
    fn page(&self) -> String {
        page::html(self, &analysis::tables(self))
    }
}

/// The first nesting error of a page or picture.
fn first_fault(text: &str) -> Option<String> {
    let mut open: Vec<&str> = Vec::new();
    for piece in text.split('<').skip(1) {
        let (tag, _) = piece.split_once('>')?;
        let name = tag.trim_start_matches('/').split(' ').next().unwrap_or_default();
        if tag.starts_with('/') {
            if open.pop() != Some(name) {
                return Some(format!("</{name}> closes something else"));
            }
        } else if !["!DOCTYPE", "meta", "input"].contains(&name) {
            open.push(name);
        }
    }
    open.pop().map(|name| format!("<{name}> stays open"))
}

#[test]
fn figures_left_out_for_a_changed_distance_are_counted() {
    let mut run = everything();
    let said = |run: &Run| about::distances(run).expect("two processors");
    assert!(!said(&run).contains("no table"), "{}", said(&run));
    let of_two_ranks = run.launches.iter_mut().find(|it| it.ranks == 2).expect("one");
    let changed = NEAR.zip(FAR).map(|((before, _), (_, after))| (before, after));
    of_two_ranks.samples[0].raw = changed;
    assert!(
        said(&run)
            .ends_with(" 1 figure is in no table: the distance changed during the measurement.")
    );
    run.launches[1].raw = changed;
    assert!(said(&run).contains("changed during 1. "), "{}", said(&run));
}

#[test]
fn the_text() {
    let runtimes = [("auto", "mpj auto"), ("openmpi", "Open MPI"), ("mpich", "MPICH")];
    let mut run = latency(&runtimes, &[[0.5, 4.0], [1.0, 2.0], [2.0, 4.0]]);
    run.launches.push(launch(0, "auto", 4, vec![sample("bcast", 8, 3.0)]));
    run.launches[0].failure = Some("exit\ncode 7".to_owned());
    run.launches[0].unclear = vec![("latency".to_owned(), 8)];
    let golden = "\
# cargo mpj bench latency
# started 2026-01-02T03:04:05Z
# kernel: Linux 6
# rounds: 6
# above 4K: auto: rendezvous; self: rendezvous
# runtime auto: mpj auto
# runtime openmpi: Open MPI
# runtime mpich: MPICH

# Latency, rewritten, 2 ranks, near (us), 6 launches
# Size       mpj auto   Open MPI   MPICH   auto/best peer    95 % interval             beside
0               0.501       1.00    2.00            0.500   [0.500, 0.500]   faster   openmpi
4096             4.01       2.00    4.01            2.000   [2.000, 2.000]   slower   openmpi

# Broadcast, 4 ranks (us), 1 launch
# Size       mpj auto   Open MPI   MPICH
8*               3.00          -       -

# * more ranks than processors: not to be compared with other rows

# The processors of ranks 0 and 1 were near in 19 launches (a cache line takes less than 120 ns one way), far in 0, and changed during 0.
# failed: round 1, auto, any on 2 ranks: exit code 7
# failed: auto, latency at 8, 1 launch: too noisy to subtract storing and reading
";
    assert_eq!(text::all(&run, &analysis::tables(&run)), golden);
}

#[test]
fn one_peer_or_other_backends_are_called_by_their_names() {
    let head = |runtimes: &[(&str, &str)]| table::ratio_head(&run_of(runtimes, 1).header);
    assert_eq!(head(&[("auto", "mpj auto"), ("impi", "Intel")]), "auto/impi");
    let backends = [("eager", "mpj eager"), ("rendezvous", "mpj r"), ("auto", "mpj auto")];
    assert_eq!(head(&backends), "auto/best other");
    assert_eq!(head(&backends[..2]), "eager/rendezvous");
}

#[test]
fn the_comparison_with_an_earlier_run() {
    let then = latency(&[("auto", "mpj auto")], &[[1.0, 1.0]]);
    let mut now = latency(&[("auto", "mpj auto")], &[[0.5, 1.0]]);
    now.header.machine[0].1 = "Linux 7".to_owned();
    now.launches.push(launch(0, "auto", 2, vec![sample("rate", 8, 1.0)]));
    let golden = "\
# Compared with the run of 2026-01-02T03:04:05Z
# only now: kernel: Linux 7
# only then: kernel: Linux 6
# of 2 figures: 1 faster, 0 slower than then

# Latency, rewritten, 2 ranks, near (us)
# Size       runtime   then     now   now/then
0               auto   1.00   0.501      0.500   faster
4096            auto   1.00    1.00      1.000        ~
";
    assert_eq!(baseline::text(&now, &then), golden);
    let mut far = now.clone();
    far.launches.iter_mut().for_each(|launch| launch.raw = FAR);
    let other_distance = baseline::text(&far, &then);
    assert!(other_distance.contains("of 0 figures"), "{other_distance}");
}

#[test]
fn a_summary_has_telling_points_of_all_runtimes_and_a_picture_if_there_are_sizes() {
    let mut run = everything();
    run.header.runtimes[1].label = "Open | <MPI>".to_owned();
    run.launches.retain(|launch| launch.ranks == 2);
    let tables_of = |series: &[&str]| {
        let tables = analysis::tables(&run).into_iter();
        tables.filter(|table| series.contains(&table.series.id)).collect::<Vec<_>>()
    };
    let summary_of = |series: &[&str]| {
        let tables = tables_of(series);
        let picture = summary::picture(&run, &tables);
        assert_eq!(picture.as_deref().and_then(first_fault), None);
        let text = summary::text(&run, &tables, picture.as_ref().map(|_| "run.svg"));
        assert_eq!(text.ends_with("](run.svg)\n"), picture.is_some(), "{text}");
        let rows = text.lines().filter(|line| line.starts_with("| "));
        (rows.map(str::to_owned).collect::<Vec<_>>(), picture.is_some())
    };
    let (rows, has_picture) = summary_of(&["latency", "latency-cold", "bandwidth"]);
    // A head, and three sizes near and far for each of two series.
    assert_eq!((rows.len(), has_picture), (13, true), "{rows:?}");
    assert_eq!(rows[0], "| What | mpj auto | Open \\| &lt;MPI> | MPICH 4.0.2 | auto/best peer |");
    let row = "| Latency, rewritten, 2 ranks, near, 8 (us) | 108 | 119 | 130 | 0.909 |";
    assert_eq!(rows[1], row);
    assert!(rows[2].starts_with("| Latency, rewritten, 2 ranks, near, 4K (us) |"), "{rows:?}");
    let (rows, has_picture) = summary_of(&["wakeup"]);
    assert_eq!((rows.len(), has_picture), (3, false), "{rows:?}");
    assert!(rows[1].contains("blocked 1 s (us)"), "{rows:?}");
}

#[test]
fn pages_are_well_formed_and_need_nothing_else() {
    let page = everything().page();
    assert_eq!(first_fault(&page), None);
    for outside in ["src=", "http:", "https:", "@import", "url(", "<link", "NaN", "inf\""] {
        assert!(!page.contains(outside), "{outside}");
    }
    for series in SERIES {
        assert_eq!(page.matches(&format!("<section id=\"{}\">", series.id)).count(), 1);
    }
    assert!(page.contains("<title>mpj auto beside Open MPI 4.1.4 and MPICH 4.0.2</title>"));
    assert!(
        page.contains("body:has(#show2:not(:checked)) .plot .s2")
            && page.contains("class=\"r2 s2\"")
    );
    assert_eq!(first_fault(&run_of(&[], 1).page()), None);
}

#[test]
fn texts_of_the_run_are_escaped() {
    let mut run = everything();
    let hostile = "<script>\"&";
    (run.header.command, run.header.started) = (hostile.to_owned(), hostile.to_owned());
    run.header.machine = vec![(hostile.to_owned(), hostile.to_owned())];
    run.header.thresholds[0].what = hostile.to_owned();
    run.launches[0].failure = Some(hostile.to_owned());
    run.header.runtimes.iter_mut().for_each(|runtime| runtime.label = hostile.to_owned());
    let page = run.page();
    assert!(!page.contains("<script") && page.contains("&lt;script&gt;&quot;&amp;"));
    assert_eq!(first_fault(&page), None);
    let picture = summary::picture(&run, &analysis::tables(&run)).expect("there are sizes");
    assert_eq!(first_fault(&picture), None);
}

#[test]
fn sizes_are_short_where_they_can_be() {
    let texts = [0, 1, 1023, 1024, 65536, 65537, 1 << 20, 3 << 30].map(words::size);
    assert_eq!(texts, ["0", "1", "1023", "1K", "64K", "65537", "1M", "3G"]);
    assert_eq!(words::point(X::Blocked, 4000), "4 ms");
}

#[test]
fn figures_have_three_digits_and_ratios_near_1_thousandths() {
    let texts = [0.0, 1.5e-6, 0.9999, 9.999, 12.34, 123.4, 12345.6].map(words::figure);
    assert_eq!(texts, ["0", "0.00000150", "1.00", "10.0", "12.3", "123", "12346"]);
    let texts = [0.01234, 0.0999, 0.1, 1.0012, 9.87654, 12.34].map(words::ratio);
    assert_eq!(texts, ["0.0123", "0.0999", "0.100", "1.001", "9.877", "12.3"]);
    let time = |value| words::tick(value, Unit::Microseconds);
    assert_eq!([0.5, 2.0, 1500.0, 1e6].map(time), ["500 ns", "2 µs", "1.5 ms", "1 s"]);
    assert_eq!(words::tick(2000.0, Unit::MegabytesPerSecond), "2 GB/s");
}

#[test]
fn names_are_listed() {
    let lists = [&[][..], &["a"], &["a", "b"], &["a", "b", "c"]].map(words::list);
    assert_eq!(lists, ["", "a", "a and b", "a, b and c"]);
}

#[test]
#[ignore = "writes a page and a picture to look at"]
fn write_a_page() {
    let (run, folder) = (everything(), std::env::temp_dir());
    let picture = summary::picture(&run, &analysis::tables(&run)).expect("there are sizes");
    std::fs::write(folder.join("mpj-bench.html"), run.page()).expect("written");
    std::fs::write(folder.join("mpj-bench.svg"), picture).expect("written");
}

#[test]
fn the_crossover_and_the_time_above_libfabric_are_said() {
    let runtimes = [
        ("auto", "mpj auto"),
        ("eager", "mpj eager"),
        ("rendezvous", "mpj rendezvous"),
        ("fabric", "libfabric alone"),
        ("mpich", "MPICH 5"),
    ];
    let times = [[1.1, 2.2], [1.1, 3.0], [1.5, 2.0], [1.0, 2.0], [0.5, 0.5]];
    let mut run = latency(&runtimes, &times);
    let found = |run: &Run| about::findings(&run.header, &analysis::tables(run));
    let name = "Latency, rewritten, 2 ranks, near";
    let expected = [
        format!("{name}: rendezvous is faster than eager from 4K on"),
        format!(
            "{name}: time of mpj auto divided by that of libfabric alone: 1.100 [1.100, 1.100] at 4K"
        ),
    ];
    assert_eq!(found(&run), expected);
    let tables = analysis::tables(&run);
    // Libfabric is no MPI, so the ratio of the tables is that to MPICH.
    assert_eq!(table::ratio_head(&run.header), "auto/mpich");
    assert!(summary::text(&run, &tables, None).contains(&format!("\n* {}\n", expected[0])));
    assert!(text::all(&run, &tables).contains(&format!("# {}\n", expected[1])));
    run = latency(&runtimes[1..3], &[[1.0, 1.0], [1.5, 1.5]]);
    let none = format!("{name}: eager is the faster protocol up to the longest message");
    assert_eq!(found(&run), [none]);
}
