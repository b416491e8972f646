//! Presents a run to readers: tables as text and as a page with pictures, and a summary. Pure.
//!
//! ```text
//!  analysis ─► table     one grid of texts for each table of figures
//!                │
//!      about     ├─► text, baseline     the terminal
//!        │       ├─► summary ─ plot     some ten rows in Markdown and a picture, for a repository; amlapi: for AM-2
//!        └───────┴─► page ─ plot        one HTML file
//! ```

mod about;
mod amlapi;
pub mod baseline;
pub mod page;
mod plot;
pub mod summary;
mod table;
#[cfg(test)]
mod tests;
pub mod text;
pub mod words;
