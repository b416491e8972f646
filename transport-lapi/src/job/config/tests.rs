//! Every parser, with its legal values and its refusals, without touching the environment.

use std::time::Duration;

use super::*;

fn variables<'a>(entries: &'a [(&'a str, &'a str)]) -> impl Fn(&str) -> Option<String> + 'a {
    |name| {
        let entry = entries.iter().find(|(known, _)| *known == name);
        entry.map(|(_, value)| (*value).to_owned()).filter(|value| !value.is_empty())
    }
}

fn settings(entries: &[(&str, &str)]) -> Result<Settings, ConfigError> {
    Settings::from_lookup(&variables(entries))
}

#[test]
fn nothing_set_gives_the_defaults_of_the_table() {
    let from_table: Vec<_> = SETTINGS.iter().map(|row| (row.name, row.default)).collect();
    assert_eq!(settings(&[]), Ok(Settings::default()));
    assert_eq!(settings(&from_table), Ok(Settings::default()));
}

#[test]
fn only_names_like_ours_that_nobody_reads_are_unknown() {
    let read = SETTINGS.iter().map(|row| row.name).chain(JOB_VARIABLES);
    for name in read.chain([PROCESSORS, PLACE, TEST, "MPJ_TEST_MARK", "MPJ_HOME", "PATH", "mpj_x"])
    {
        assert!(!is_unknown(name), "{name}");
    }
    for name in ["MPJ_WAT", "MPJ_", "MPJ_GETS", "MPJ_TUNING"] {
        assert!(is_unknown(name), "{name}");
    }
}

#[test]
fn every_setting_is_read() {
    let all = [
        ("MPJ_BACKEND", "rendezvous"),
        ("MPJ_EAGER_UP_TO", "8K"),
        ("MPJ_GET", "am"),
        ("MPJ_WAIT", "block"),
        ("MPJ_SPIN", "20"),
        ("MPJ_PROGRESS_THREAD", "1"),
        ("MPJ_EARLY_LIMIT", "64K"),
        ("MPJ_CHECK", "1"),
        ("MPJ_FABRIC", "tcp:eth0"),
        ("MPJ_CONNECT_TIMEOUT", "90"),
        ("MPJ_SINGLETON", "1"),
    ];
    let expected = Settings {
        backend: BackendChoice::Rendezvous,
        eager_up_to: Some(8192),
        get: GetMode::Am,
        wait: WaitMode::Block,
        spin: Duration::from_micros(20),
        progress_thread: true,
        early_limit: 65536,
        check: Some(true),
        fabric: FabricChoice::Named { provider: "tcp".into(), domain: Some("eth0".into()) },
        connect_timeout: Duration::from_secs(90),
        singleton: true,
    };
    assert_eq!(settings(&all), Ok(expected));
}

#[test]
fn an_unknown_value_names_the_variable_the_value_and_the_legal_ones() {
    for row in SETTINGS {
        let error = settings(&[(row.name, ":Bogus")]).expect_err("no setting knows this word");
        let expected =
            ConfigError::Unknown { name: row.name, value: ":Bogus".to_owned(), legal: row.legal };
        assert_eq!(error, expected);
    }
    let text = settings(&[("MPJ_BACKEND", "fast")]).expect_err("unknown").to_string();
    assert_eq!(text, "MPJ_BACKEND=fast is not known; legal values: auto, eager, rendezvous");
}

#[test]
fn an_empty_value_is_an_unset_one() {
    assert_eq!(settings(&[("MPJ_WAIT", ""), ("MPJ_EARLY_LIMIT", "")]), Ok(Settings::default()));
}

fn words<T: Keyword + std::fmt::Debug>() -> String {
    for (word, value) in T::WORDS {
        assert_eq!(T::from_word(word), Some(*value));
        assert_eq!(value.word(), *word);
    }
    T::WORDS.iter().map(|(word, _)| *word).collect::<Vec<_>>().join(", ")
}

#[test]
fn the_table_lists_exactly_the_words_that_are_parsed() {
    assert_eq!(words::<BackendChoice>(), BACKEND.legal);
    assert_eq!(words::<GetMode>(), GET.legal);
    assert_eq!(words::<WaitMode>(), WAIT.legal);
    assert_eq!(backend_entry(BackendChoice::Eager), ("MPJ_BACKEND", "eager"));
}

#[test]
fn byte_counts_take_binary_suffixes_and_refuse_everything_else() {
    let legal =
        [("0", 0), ("17", 17), ("4K", 4096), ("4k", 4096), ("2M", 2 << 20), ("1g", 1 << 30)];
    for (text, bytes) in legal {
        assert_eq!(byte_count(text), Some(bytes), "{text}");
    }
    for text in
        ["", "K", "-1", "+1", "1.5M", "4 K", "4KB", "1é", "99999999999999999999", "99999999999G"]
    {
        assert_eq!(byte_count(text), None, "{text}");
    }
}

#[test]
fn a_time_to_connect_is_neither_nothing_nor_without_end() {
    for text in ["0", "-1", "1.5", "86401", "1s"] {
        assert_eq!(seconds(text), None, "{text}");
    }
    assert_eq!(
        ["1", "86400"].map(seconds),
        [1, 86_400].map(|time| Some(Duration::from_secs(time)))
    );
}

#[test]
fn the_longest_eager_message_has_a_limit() {
    assert_eq!([eager_length("auto"), eager_length("0")], [Some(None), Some(Some(0))]);
    assert_eq!([eager_length("1G"), eager_length("1073741825")], [Some(Some(1 << 30)), None]);
}

#[test]
fn the_table_says_what_values_are() {
    for row in SETTINGS {
        let is_legal = |value: &str| settings(&[(row.name, value)]).is_ok();
        let is_word = row.words().any(|word| word == row.default);
        match row.values {
            Values::Words => assert!(is_word && row.words().all(is_legal), "{}", row.name),
            Values::Number => {
                let number = row.number(row.default).expect("the default is a number");
                assert!(is_legal(&number.to_string()), "{}", row.name);
            }
            Values::Text => assert!(!row.words().all(is_legal), "{}", row.name),
        }
    }
}

/// The only test that sets anything for this process; no other one reads this setting from it.
#[test]
fn what_a_program_sets_counts_for_more_than_the_environment() {
    let refused = CONNECT_TIMEOUT.write("0").expect_err("no time");
    assert!(matches!(refused, ConfigError::Unknown { name: "MPJ_CONNECT_TIMEOUT", .. }));
    CONNECT_TIMEOUT.write("77").unwrap();
    assert_eq!(CONNECT_TIMEOUT.value(), "77");
    assert_eq!(Settings::from_env().unwrap().connect_timeout, Duration::from_secs(77));
}
