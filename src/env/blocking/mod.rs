//! What client verbs use: plain blocking sockets, standard streams and files. No io_uring, so they
//! work where it is forbidden. Never on an executor.

mod files;
mod output;
mod stream;
mod terminal;

pub use files::{FileReader, Input, keep_previous, list_files, read_file, write_file};
pub use output::{Output, terminal_size, warn};
pub use stream::{BlockingStream, resolve};
pub(super) use terminal::give_back;
pub use terminal::{Key, Terminal};
