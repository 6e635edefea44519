//! The command line; everything it does is in the library and in `cli`.

mod cli;

fn main() -> std::process::ExitCode {
    cli::main()
}
