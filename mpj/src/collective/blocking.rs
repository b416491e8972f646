//! The blocking calls of a communicator under their short names. All but those among neighbours have the form in place
//! too, which no description has.

mod movement;
mod neighbour;
mod reduction;
