//! Jobs of `word_count`, `gradient`, `threads` and `tasks`: programs in the company of serde, rayon, threads and tokio.

use std::fs;

use super::{output, refusal, value};

const JOBS: [(usize, &str); 4] = [(1, "rendezvous"), (2, "auto"), (3, "eager"), (5, "rendezvous")];

#[test]
fn word_count_counts_every_word() {
    let folder = tempfile::tempdir().unwrap();
    let text = folder.path().join("text");
    fs::write(&text, "Zwei und zwei,\n\nund EINS:\ndrei und eins!").unwrap();
    for (ranks, backend) in JOBS {
        let args = ["--text", text.to_str().unwrap(), "--top", "1"];
        let printed = output(ranks, backend, "word_count", &args);
        assert_eq!(printed, "       3 und\nword_count: 4 different words: verified\n");
        assert_eq!(value(&output(ranks, backend, "word_count", &[]), "6 "), "a");
    }
}

#[test]
fn word_count_refuses_a_text_that_is_not_there() {
    refusal(3, "word_count", &["--text", "/nowhere/text"], "word_count: /nowhere/text: ");
}

#[test]
fn gradient_finds_the_weights() {
    for (ranks, backend) in JOBS {
        let args = ["--samples", "500", "--weights", "7", "--layers", "3", "--steps", "200"];
        let printed = output(ranks, backend, "gradient", &args);
        assert!(value(&printed, "error").ends_with("after 200 steps: verified"), "{printed}");
    }
}

#[test]
fn threads_of_all_ranks_communicate_at_once() {
    for (ranks, backend) in JOBS {
        let args = ["--threads", "3", "--below", "60000"];
        let printed = output(ranks, backend, "threads", &args);
        let all = 3 * ranks;
        assert_eq!(
            printed,
            format!("threads: 6057 primes below 60000, by {all} threads: verified\n")
        );
    }
}

#[test]
fn tasks_await_messages_on_tokio() {
    for (ranks, backend) in JOBS {
        let printed = output(ranks, backend, "tasks", &["--tokens", "12", "--laps", "7"]);
        assert_eq!(printed, format!("tasks: 12 tokens, {} hops each: verified\n", 7 * ranks));
    }
}
