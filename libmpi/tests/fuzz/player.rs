//! Plays a sequence of calls, and checks what each returns.
//!
//! - FZ1: pointers are null or those of memory of the player, which is never freed and has more room than any count that
//!   is chosen asks for.
//! - FZ2: functions of C may be called with more arguments than they take, and with wider ones, on all systems here.

#![expect(unsafe_code, reason = "functions of a library that is loaded at run time are called")]
#![expect(clippy::print_stdout, reason = "the process that started this one shows the calls")]

use std::collections::{HashMap, HashSet};
use std::ffi::{CString, c_char, c_int, c_void};
use std::io::Write;
use std::sync::Mutex;

use super::choice::{self, Interface, MOST_ARGUMENTS, Sort};

unsafe extern "C" {
    fn dlopen(path: *const c_char, flags: c_int) -> *mut c_void;
    fn dlsym(library: *mut c_void, name: *const c_char) -> *mut c_void;
}

/// RTLD_NOW.
const NOW: c_int = 2;
/// MPI_IN_PLACE.
const IN_PLACE: usize = 1;

type Function = unsafe extern "C" fn(
    usize,
    usize,
    usize,
    usize,
    usize,
    usize,
    usize,
    usize,
    usize,
    usize,
    usize,
    usize,
    usize,
) -> c_int;

/// The library, and what is known about it.
struct Library(*mut c_void);

impl Library {
    fn open(path: &str) -> Self {
        let path = CString::new(path).expect("a path has no zero");
        // SAFETY: FZ1.
        let library = unsafe { dlopen(path.as_ptr(), NOW) };
        assert!(!library.is_null(), "{path:?} is not loaded");
        Self(library)
    }

    fn call(&self, name: &str, arguments: &[usize]) -> c_int {
        let named = CString::new(name).expect("a name has no zero");
        // SAFETY: FZ1.
        let found = unsafe { dlsym(self.0, named.as_ptr()) };
        assert!(!found.is_null(), "the library has no {name}");
        // SAFETY: FZ2.
        let function: Function = unsafe { std::mem::transmute(found) };
        let mut a = [0; MOST_ARGUMENTS];
        a[..arguments.len()].copy_from_slice(arguments);
        // SAFETY: FZ1, FZ2.
        unsafe {
            function(
                a[0], a[1], a[2], a[3], a[4], a[5], a[6], a[7], a[8], a[9], a[10], a[11], a[12],
            )
        }
    }
}

/// Entries in a list.
const ENTRIES: usize = 1024;
/// Bytes before and behind the place at which buffers begin.
const AROUND: usize = 4 << 20;
/// Datatypes with larger bounds are freed at once, since buffers have no room for them.
const BOUND: i64 = 2048;

/// A function that does nothing, for all types of callbacks: 0 is success.
extern "C" fn nothing() -> c_int {
    0
}

/// Where the memory for calls is. Tools that look for leaks find it here.
static KEPT: Mutex<Vec<usize>> = Mutex::new(Vec::new());

/// Memory for calls, which is never freed.
struct Memory<T> {
    first: *mut T,
    len: usize,
}

impl<T: Copy> Memory<T> {
    fn new(value: T, len: usize) -> Self {
        let first = Vec::leak(vec![value; len]).as_mut_ptr();
        KEPT.lock().expect("only one thread is here").push(first.expose_provenance());
        Self { first, len }
    }

    fn address(&self) -> usize {
        self.first.expose_provenance()
    }

    fn get(&self, index: usize) -> T {
        assert!(index < self.len);
        // SAFETY: FZ1: the entry exists, and only one thread is here.
        unsafe { self.first.add(index).read() }
    }

    fn fill(&self, mut value: impl FnMut() -> T) {
        for index in 0..self.len {
            // SAFETY: as above.
            unsafe { self.first.add(index).write(value()) };
        }
    }
}

/// The memory of the lists of an argument.
struct Lists {
    ints: Memory<i32>,
    wides: Memory<i64>,
    handles: Memory<usize>,
    texts: Memory<usize>,
    bytes: Memory<u8>,
}

impl Lists {
    /// Returns the first handles.
    fn handles(&self) -> Vec<usize> {
        (0..32).map(|index| self.handles.get(index)).collect()
    }
}

/// What the sequence has made.
struct Player {
    library: Library,
    interface: Interface,
    /// Where buffers begin that are read.
    source: usize,
    /// Where buffers begin that may be written.
    sink: usize,
    /// Results of the player's own calls.
    results: Memory<i64>,
    lists: Vec<Lists>,
    strings: Vec<CString>,
    live: HashMap<String, Vec<usize>>,
    freed: Vec<usize>,
    keys: Vec<usize>,
    memory: Vec<usize>,
    /// MPI_ERR_INTERN.
    internal: i32,
}

/// Plays a sequence: a line with the path of the library, then a line for each call.
pub fn play(mut lines: impl Iterator<Item = String>) {
    let library = Library::open(&lines.next().expect("the first line has the path"));
    let mut player = Player::new(library);
    player.expect("MPI_Init", &[0, 0]);
    let constant =
        |player: &Player, class: &str, index: usize| player.interface.constants[class][index];
    let (world, own) = (constant(&player, "MPI_Comm", 1), constant(&player, "MPI_Comm", 2));
    let errors_return = constant(&player, "MPI_Errhandler", 1);
    player.expect("MPI_Comm_set_errhandler", &[world, errors_return]);
    player.expect("MPI_Comm_set_errhandler", &[own, errors_return]);
    for (place, line) in lines.enumerate() {
        let mut words = line.split(' ');
        let name = words.next().expect("a line has a name");
        let numbers: Vec<u32> = words.map(|word| word.parse().expect("a number")).collect();
        // The last line names the call that has not returned, if there is one.
        print!("\n{place}: {name}");
        std::io::stdout().flush().expect("somebody reads it");
        print!(" gave {}", player.step(name, &numbers));
    }
}

impl Player {
    fn new(library: Library) -> Self {
        let lists = || Lists {
            ints: Memory::new(0, ENTRIES),
            wides: Memory::new(0, ENTRIES),
            handles: Memory::new(0, ENTRIES),
            texts: Memory::new(0, ENTRIES),
            bytes: Memory::new(0, 32 * ENTRIES),
        };
        let interface = Interface::new();
        let internal = interface.integer("MPI_ERR_INTERN");
        let long = "long ".repeat(100);
        let strings =
            ["external32", "key", "value", "mpi://SELF", "mpi://WORLD", "", "true", &long];
        Self {
            library,
            interface,
            internal,
            source: Memory::new(0_u8, 2 * AROUND).address() + AROUND,
            sink: Memory::new(0_u8, 2 * AROUND).address() + AROUND,
            results: Memory::new(0, 8),
            lists: std::iter::repeat_with(lists).take(MOST_ARGUMENTS).collect(),
            strings: strings.map(|text| CString::new(text).expect("no zero")).into(),
            live: HashMap::new(),
            freed: Vec::new(),
            keys: Vec::new(),
            memory: Vec::new(),
        }
    }

    fn expect(&self, name: &str, arguments: &[usize]) {
        assert_eq!(self.library.call(name, arguments), 0, "{name} {arguments:?}");
    }

    /// Chooses a handle; returns whether it certainly names nothing of the type.
    fn handle(&self, class: &str, random: u32, is_wary: bool) -> (usize, bool) {
        let (kind, more) = (random % 16, (random / 16) as usize);
        let constants = &self.interface.constants[class];
        let live = self.live.get(class).map_or(&[][..], Vec::as_slice);
        let wrong = || {
            let others: Vec<_> = self.live.iter().filter(|(other, _)| *other != class).collect();
            let others: Vec<_> = others.into_iter().flat_map(|(_, handles)| handles).collect();
            others.get(more % others.len().max(1)).map_or(0x7654_3210, |handle| **handle)
        };
        match kind {
            ..=7 if !is_wary && !live.is_empty() => {
                (live[live.len() - 1 - more % live.len().min(8)], false)
            }
            ..=12 if !is_wary => (constants[(more + 1) % constants.len()], false),
            ..=12 => (constants[0], false),
            13 if !self.freed.is_empty() => (self.freed[more % self.freed.len()], true),
            14 => (wrong(), true),
            _ => ((random as usize | 1 << 30) & 0x7fff_ffff, true),
        }
    }

    /// Fills the lists of an argument, and returns the argument, and whether it is a handle that names nothing.
    fn argument(&self, place: usize, sort: &Sort, random: u32, is_wary: bool) -> (usize, bool) {
        let (is_null, more) = (random % 16 == 15, random / 16);
        let mut next = u64::from(random);
        let mut draw = move || {
            next = next
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            (next >> 33) as u32
        };
        let chosen = match sort {
            Sort::Handle(class) => return self.handle(class, random, is_wary),
            Sort::Handles(class, _) => {
                let list = &self.lists[place].handles;
                list.fill(|| self.handle(class, draw(), is_wary).0);
                list.address()
            }
            Sort::Number => return (choice::number(random) as usize, false),
            Sort::Bytes => return (choice::bytes(random) as usize, false),
            Sort::Key => {
                let key = self.keys.get(more as usize % self.keys.len().max(1)).copied();
                return (key.filter(|_| !is_null).unwrap_or(random as usize), false);
            }
            Sort::Ints => {
                self.lists[place].ints.fill(|| choice::small(draw()) as i32);
                self.lists[place].ints.address()
            }
            Sort::Keys => {
                let key = self.keys.last().map_or(random as i32, |key| *key as i32);
                self.lists[place].ints.fill(|| key);
                self.lists[place].ints.address()
            }
            Sort::Wides => {
                self.lists[place].wides.fill(|| choice::small(draw()));
                self.lists[place].wides.address()
            }
            Sort::Statuses | Sort::Room => {
                self.lists[place].bytes.fill(|| 0);
                self.lists[place].bytes.address()
            }
            Sort::Text => {
                self.strings[more as usize % self.strings.len()].as_ptr().expose_provenance()
            }
            Sort::Texts => {
                let text = self.strings[1].as_ptr().expose_provenance();
                self.lists[place].texts.fill(|| text);
                self.lists[place].texts.address()
            }
            Sort::Source(true) if more % 4 == 1 => 1,
            Sort::Source(_) => self.source,
            Sort::Sink => self.sink,
            Sort::Allocated => {
                let memory = self.memory.get(more as usize % self.memory.len().max(1));
                memory.copied().unwrap_or(self.sink)
            }
            Sort::Callback(true) if more % 4 == 1 => 1,
            Sort::Callback(_) => nothing as *const () as usize,
            Sort::Null => 0,
        };
        (if is_null { 0 } else { chosen }, false)
    }

    /// Makes a call, checks its result, and returns it.
    fn step(&mut self, name: &str, numbers: &[u32]) -> c_int {
        let sorts = self.interface.sorts(name);
        let is_wary = choice::is_waiting(name);
        let mut is_wrong = None;
        let mut arguments = Vec::new();
        for (place, (sort, random)) in sorts.iter().zip(numbers).enumerate() {
            let (argument, wrong) = self.argument(place, sort, *random, is_wary);
            arguments.push(argument);
            if matches!(sort, Sort::Handle(_)) {
                is_wrong.get_or_insert(wrong);
            }
        }
        let before: Vec<Vec<usize>> = self.lists.iter().map(Lists::handles).collect();
        let code = self.library.call(name, &arguments);
        let is_conversion = name.ends_with("_toint");
        if !is_conversion {
            // Datatypes beside MPI_IN_PLACE and MPI_PROC_NULL are ignored.
            let ignores =
                self.interface.may_ignore_arguments(name) || arguments.first() == Some(&IN_PLACE);
            let is_refused = is_wrong == Some(true) && !ignores;
            self.check(name, &arguments, code, is_refused);
        }
        self.harvest(name, &sorts, &arguments, &before, code);
        if name.starts_with("MPI_Comm_idup") {
            // The handle of the new communicator is written later.
            self.lists.iter_mut().for_each(|lists| lists.handles = Memory::new(0, ENTRIES));
        }
        code
    }

    /// Checks the code that a call has returned.
    fn check(&self, name: &str, arguments: &[usize], code: c_int, is_refused: bool) {
        let told = format!("{name} {arguments:x?} gave {code}");
        self.results.fill(|| 0);
        let known = self.library.call("MPI_Error_class", &[code as usize, self.results.address()]);
        assert_eq!(known, 0, "the code has no class: {told}");
        let class = self.results.get(0) as i32;
        assert_ne!(class, self.internal, "the library has found a mistake of its own: {told}");
        assert!(!is_refused || code != 0, "a handle that names nothing was accepted: {told}");
    }

    /// Remembers the objects that a call has made or freed.
    fn harvest(
        &mut self,
        name: &str,
        sorts: &[Sort],
        arguments: &[usize],
        before: &[Vec<usize>],
        code: c_int,
    ) {
        if code != 0 {
            return;
        }
        for (place, (sort, argument)) in sorts.iter().zip(arguments).enumerate() {
            match sort {
                _ if *argument == 0 => {}
                Sort::Handles(class, false) => {
                    let pairs = before[place].iter().copied().zip(self.lists[place].handles());
                    for (old, new) in pairs.filter(|(old, new)| old != new).collect::<Vec<_>>() {
                        if name.ends_with("_free") && old > 0x1fff {
                            self.live
                                .values_mut()
                                .for_each(|all| all.retain(|handle| *handle != old));
                            self.freed.push(old);
                        }
                        if new > 0x1fff {
                            self.made(class, new);
                        }
                    }
                }
                Sort::Keys if name.ends_with("_create_keyval") || name == "MPI_Keyval_create" => {
                    self.keys.push(self.lists[place].ints.get(0) as usize);
                }
                Sort::Sink if name == "MPI_Alloc_mem" => {
                    // SAFETY: FZ1: the library has written an address there.
                    self.memory
                        .push(unsafe { *std::ptr::with_exposed_provenance::<usize>(*argument) });
                }
                Sort::Allocated => {
                    self.memory.retain(|memory| memory != argument);
                }
                _ => {}
            }
        }
        let all: HashSet<_> = self.live.values().flatten().copied().collect();
        self.freed.retain(|freed| !all.contains(freed));
    }

    /// Remembers a new object, unless it is a datatype for which buffers have no room.
    fn made(&mut self, class: &str, handle: usize) {
        if class == "MPI_Datatype" {
            let place = |index: usize| self.results.address() + 8 * index;
            self.expect("MPI_Type_get_extent_c", &[handle, place(0), place(1)]);
            self.expect("MPI_Type_get_true_extent_c", &[handle, place(2), place(3)]);
            self.expect("MPI_Type_size_c", &[handle, place(4)]);
            let last = &self.lists[MOST_ARGUMENTS - 1].handles;
            last.fill(|| handle);
            if (0..5).any(|index| self.results.get(index).abs() > BOUND) {
                self.library.call("MPI_Type_free", &[last.address()]);
                return;
            }
            // Most programs commit their datatypes.
            if handle % 8 != 0 {
                self.expect("MPI_Type_commit", &[last.address()]);
            }
        }
        if class == "MPI_Win" {
            // The errors of windows are fatal at first.
            let errors_return = self.interface.constants["MPI_Errhandler"][1];
            self.expect("MPI_Win_set_errhandler", &[handle, errors_return]);
        }
        self.live.entry(class.to_owned()).or_default().push(handle);
    }
}
