//! Presents a run to readers: tables as text and as a page with pictures, and a summary. Pure.
//!
//! ```text
//!  analysis ─► table     one grid of texts for each table of figures
//!                │
//!      about     ├─► text, baseline     the terminal
//!        │       ├─► summary ─ plot     a table in Markdown and a picture, for a repository
//!        └───────┴─► page ─ plot        one HTML file
//! ```

mod about;
pub mod baseline;
pub mod page;
mod plot;
pub mod summary;
mod table;
#[cfg(test)]
mod tests;
pub mod text;
pub mod words;
