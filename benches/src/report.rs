//! Presents a run to readers: the same tables as text, Markdown and a page, with pictures. Pure.
//!
//! ```text
//!  analysis ─► table     one grid of texts for each table of figures
//!                │
//!      about     ├─► text, baseline     the terminal
//!        │       ├─► markdown           files for a repository: all rows, or ten with a picture
//!        └───────┴─► page ─ plot        one HTML file
//! ```

mod about;
pub mod baseline;
pub mod markdown;
pub mod page;
mod plot;
mod table;
#[cfg(test)]
mod tests;
pub mod text;
pub mod words;
