//! Writes the types of the binary interface, and for each function of `calls.rs` a definition that records the call and
//! passes it on. What is recorded follows from the kind of the call and from the names of its parameters, which the standard
//! fixes. `src/abi.rs` and `src/recorded.rs` include what is written.

#![expect(clippy::print_stdout, reason = "cargo reads what a build script prints")]

use std::fmt::Write;
use std::path::PathBuf;
use std::{env, fs};

use mpj_abi::{Function, Meaning, Table};

mod calls;

use calls::{CALLS, Kind};

fn main() {
    // The library stays mapped, as libmpi does.
    println!("cargo:rustc-cdylib-link-arg=-Wl,-z,nodelete");
    println!("cargo:rerun-if-changed=build");
    let table = mpj_abi::table();
    #[expect(clippy::disallowed_methods, reason = "cargo tells a build script its folder so")]
    let folder = PathBuf::from(env::var_os("OUT_DIR").expect("cargo sets it"));
    let write = |name: &str, text: String| {
        fs::write(folder.join(name), text).expect("the folder of the build is writable");
    };
    write("abi.rs", types(&table) + &constants(&table));
    write("recorded.rs", definitions(&table));
}

/// Writes the types. A handle is a number here, since none is ever followed.
fn types(table: &Table) -> String {
    let mut text = String::new();
    for typedef in &table.typedefs {
        let name = &typedef.name;
        let definition = match &typedef.meaning {
            Meaning::Integer if name == "MPI_Aint" => "isize",
            Meaning::Integer => "i64",
            Meaning::Handle { .. } => "usize",
            Meaning::Callback { .. } => "unsafe extern \"C-unwind\" fn()",
            Meaning::Alias { of } => of,
        };
        writeln!(text, "pub type {name} = {definition};").expect("a string takes all");
    }
    text
}

fn constants(table: &Table) -> String {
    let mut text = String::new();
    for constant in &table.handles {
        let (name, value) = (&constant.name, constant.value);
        let class = if value < 0 { "isize" } else { "usize" };
        writeln!(text, "pub const {name}: {class} = {value};").expect("a string takes all");
    }
    for constant in &table.integers {
        let (name, value) = (&constant.name, constant.value);
        writeln!(text, "pub const {name}: c_int = {value};").expect("a string takes all");
    }
    text
}

/// Writes the functions.
fn definitions(table: &Table) -> String {
    let mut text = String::new();
    for (kind, names) in CALLS {
        for name in names.split_whitespace() {
            for form in [format!("MPI_{name}"), format!("MPI_{name}_c")] {
                let function = table.function(&form);
                let is_missing = function.is_none() && !form.ends_with("_c");
                assert!(!is_missing, "there is no function {form}");
                text.extend(function.map(|function| definition(function, *kind)));
            }
        }
    }
    text
}

/// Writes one function.
fn definition(function: &Function, kind: Kind) -> String {
    let name = &function.name;
    let parameters = || function.parameters.iter();
    let list: Vec<_> = parameters().map(|it| format!("{}: {}", it.name, it.rust)).collect();
    let types: Vec<_> = parameters().map(|it| it.rust.clone()).collect();
    let names: Vec<_> = parameters().map(|it| it.name.clone()).collect();
    let (list, types, names) = (list.join(", "), types.join(", "), names.join(", "));
    let (before, after) = (before(function, kind), after(function, kind));
    format!(
        "\
#[unsafe(no_mangle)]
unsafe extern \"C-unwind\" fn {name}({list}) -> c_int {{
    static SITE: Site = Site::new(c\"P{name}\", Kind::{kind:?});
    type Next = unsafe extern \"C-unwind\" fn({types}) -> c_int;
    // SAFETY: TP1.
    let Some(next) = (unsafe {{ SITE.next::<Next>() }}) else {{ return MPI_ERR_OTHER }};
    // SAFETY: TP2.
    let Some(call) = SITE.begin() else {{ return unsafe {{ next({names}) }} }};
    {before}
    // SAFETY: TP2.
    let code = unsafe {{ next({names}) }};
    if code == MPI_SUCCESS {{
        // SAFETY: TP2: the call has succeeded, so its results are there.
        unsafe {{ {after} }}
    }}
    call.end();
    code
}}
"
    )
}

/// Whether a function has a parameter of this name and type.
fn has(function: &Function, name: &str, class: &str) -> bool {
    function.parameters.iter().any(|it| it.name == name && it.rust == class)
}

/// Whether a function receives a message that was found before.
fn takes_message(function: &Function, kind: Kind) -> bool {
    kind == Kind::Receive && has(function, "message", "*mut MPI_Message")
}

/// The communicator among the arguments.
fn communicator(function: &Function) -> Option<&str> {
    let names = ["comm", "comm_old", "local_comm", "intercomm"];
    names.into_iter().find(|name| has(function, name, "MPI_Comm"))
}

/// What is recorded before the call.
fn before(function: &Function, kind: Kind) -> String {
    let mut text = String::new();
    let comm = communicator(function);
    match (kind, comm) {
        (Kind::Send | Kind::SendInit, Some(comm)) => {
            text += &format!("call.to({comm}, dest, tag);")
        }
        (Kind::Exchange, Some(comm)) => text += &format!("call.to({comm}, dest, sendtag);"),
        (Kind::Receive | Kind::ReceiveInit | Kind::Probe, Some(comm)) => {
            text += &format!("call.from({comm}, source, tag);");
        }
        (Kind::Collective, Some(comm)) => {
            let root = if has(function, "root", "c_int") { "Some(root)" } else { "None" };
            text += &format!("call.collective({comm}, {root});");
        }
        (_, Some(comm)) => text += &format!("call.within({comm});"),
        (_, None) => {}
    }
    if takes_message(function, kind) {
        text += "// SAFETY: TP2.\n";
        text +=
            "let matched = unsafe { message.as_ref() }.and_then(|it| communicator::taken(*it));";
        text += "call.within_known(matched);";
    }
    if has(function, "win", "MPI_Win") {
        let target = ["target_rank", "rank"].into_iter().find(|name| has(function, name, "c_int"));
        let target = target.map_or("None".to_owned(), |name| format!("Some({name})"));
        text += &format!("call.at_window(win, {target});");
    }
    if has(function, "status", "*mut MPI_Status") && kind != Kind::File {
        // The program may not want to know what has come.
        text += "let mut own = MPI_Status::EMPTY;";
        text += "let status = if status.is_null() { &raw mut own } else { status };";
    }
    text
}

/// What is recorded after a call that has succeeded.
fn after(function: &Function, kind: Kind) -> String {
    let mut text = bytes(function, kind);
    if matches!(kind, Kind::Send | Kind::Exchange) {
        text += "call.sent();";
    }
    if has(function, "status", "*mut MPI_Status") {
        let (comm, flag) = (
            communicator(function).unwrap_or("MPI_COMM_NULL"),
            has(function, "flag", "*mut c_int"),
        );
        let came = match kind {
            Kind::Exchange => format!("call.also_came({comm}, *status);"),
            Kind::Receive if takes_message(function, kind) => {
                "call.came_in(matched, *status);".to_owned()
            }
            Kind::Receive | Kind::Probe => format!("call.came({comm}, *status);"),
            _ => String::new(),
        };
        if flag {
            text += "if *flag == 0 { call.forget(); return code; }";
        }
        text += &came;
    }
    let is_recorded = kind.has_request();
    if is_recorded && has(function, "request", "*mut MPI_Request") {
        let find = |comm| format!("communicator::find({comm})");
        let wildcard = match (kind, communicator(function)) {
            (Kind::Receive | Kind::ReceiveInit, Some(comm)) => {
                // Of a rank of another world, its end does not say which rank that is either.
                format!("call.has_no_peer().then(|| {}).flatten()", find(comm))
            }
            // What is recorded of the call itself says where it sends to.
            (Kind::Exchange, Some(comm)) => find(comm),
            (Kind::Receive, None) => "matched".to_owned(),
            _ => "None".to_owned(),
        };
        let is_kept = kind == Kind::ReceiveInit;
        text += &format!("call.request(*request, {wildcard}, {is_kept});");
    }
    if kind == Kind::Probe && has(function, "message", "*mut MPI_Message") {
        text += "communicator::matched(*message, comm);";
    }
    for name in [
        "newcomm",
        "comm_cart",
        "comm_graph",
        "comm_dist_graph",
        "newintercomm",
        "newintracomm",
        "intercomm",
    ] {
        // The result of MPI_Comm_idup is written later: such a communicator stays unknown.
        if has(function, name, "*mut MPI_Comm") && !function.name.starts_with("MPI_Comm_idup") {
            text += &format!("communicator::made(*{name});");
        }
    }
    if has(function, "win", "*mut MPI_Win") {
        if let Some(comm) = communicator(function) {
            text += &format!("communicator::window_made(*win, {comm});");
        }
    }
    text
}

/// How many bytes the call is about, where that can be said. Arguments that do not count for this rank are not looked at.
fn bytes(function: &Function, kind: Kind) -> String {
    let typed = |count: &str, class: &str| {
        let is_number = has(function, count, "c_int") || has(function, count, "MPI_Count");
        (is_number && has(function, class, "MPI_Datatype"))
            .then(|| format!("call.bytes({count} as i64, {class});"))
    };
    let text = match kind {
        Kind::Receive | Kind::Probe | Kind::ReceiveInit => None,
        Kind::OneSided => typed("origin_count", "origin_datatype"),
        _ => typed("count", "datatype"),
    };
    let text = text.or_else(|| match typed("sendcount", "sendtype") {
        Some(sent) if kind != Kind::Collective => Some(sent),
        Some(_) if function.name.contains("catter") => {
            let received = typed("recvcount", "recvtype")?;
            Some(format!("if !is_in_place(recvbuf) {{ {received} }}"))
        }
        Some(sent) => {
            let received = typed("recvcount", "recvtype").unwrap_or_default();
            Some(format!("if is_in_place(sendbuf) {{ {received} }} else {{ {sent} }}"))
        }
        None => typed("recvcount", "datatype"),
    });
    match text {
        // The origin's elements do not count then.
        Some(text) if kind == Kind::OneSided && has(function, "op", "MPI_Op") => {
            format!("if op != MPI_NO_OP {{ {text} }}")
        }
        Some(text) if has(function, "root", "c_int") => format!("if root >= 0 {{ {text} }}"),
        text => text.unwrap_or_default(),
    }
}
