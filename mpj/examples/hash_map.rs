//! A hash map that is spread over all ranks: each rank keeps the keys that fall to it, and any rank reads and changes any
//! key by calling a service of its owner. The example `dht` does without the owner's help, but keeps numbers only.
//! This one counts words.
//!
//! `cargo mpj run -n 4 --example hash_map --features serde -- to be or not to be`
#![allow(clippy::print_stdout, reason = "a program prints")]

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Mutex;

use mpj::{Communicator, Error, Service};

/// One rank's handle to the map. Its services run on the owner of a key, in any call of the library that waits there.
struct DistributedMap {
    add: Service<(String, u64), u64>,
    ranks: usize,
}

impl DistributedMap {
    /// Makes the map. All ranks call this.
    fn new(over: &Communicator) -> Result<Self, Error> {
        // The part of this rank. Only the service has it, so nobody holds its lock during a call.
        let part = Mutex::new(HashMap::new());
        let add = over.serve(move |_caller, (key, by): (String, u64)| {
            let mut part = part.lock().expect("no panic");
            let value = part.entry(key).or_insert(0);
            *value += by;
            *value
        })?;
        Ok(Self { add, ranks: over.size() })
    }

    /// Adds to the value of a key, on whichever rank it lies, and returns the new value.
    fn add(&self, key: &str, by: u64) -> Result<u64, Error> {
        let mut hasher = DefaultHasher::new();
        key.hash(&mut hasher);
        let owner = hasher.finish() as usize % self.ranks;
        self.add.call(owner, &(key.to_owned(), by))
    }
}

fn main() -> Result<(), Error> {
    let world = mpj::init()?;
    let words: Vec<String> = std::env::args().skip(1).collect();
    let map = DistributedMap::new(&world)?;
    // Every rank counts every n-th word; equal words of different ranks meet at their owner.
    for word in words.iter().skip(world.rank()).step_by(world.size()) {
        map.add(word, 1)?;
    }
    world.barrier()?;
    if world.rank() == 0 {
        for word in std::collections::BTreeSet::from_iter(words) {
            println!("{word}: {}", map.add(&word, 0)?);
        }
    }
    Ok(())
}
