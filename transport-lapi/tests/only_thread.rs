//! A wait without polling in a process with a single thread, where nobody could ever end it. The harness of the other
//! tests has threads, so this is a program.

use transport_lapi::{Context, LapiError, Options, adapters};

fn main() {
    let adapter = adapters::threads::job(1).expect("memory suffices").remove(0);
    let context = Context::init(adapter, (), Options::default());
    let counter = context.session().expect("it is open").counter();
    let error = context.nopoll_wait(counter, 1).expect_err("nobody polls");
    assert!(matches!(error, LapiError::NobodyPolls), "{error}");
    context.session().expect("it is open").setcntr(counter, 3).expect("it exists");
    let rest = context.nopoll_wait(counter, 1).expect("it has the value already");
    assert_eq!(rest, 2);
}
