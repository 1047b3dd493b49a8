//! The flags of `serve` and `config`, made from the table of keys: one flag a key, and `--no-KEY`
//! for a switch that is on by default.

use crate::config::KEYS;
use clap::{Arg, ArgAction, ArgMatches, Args, Command, Error, FromArgMatches};

/// Keys and values as they were given, in order.
#[derive(Clone, Debug, Default)]
pub struct KeyFlags(pub Vec<(String, String)>);

/// The id, and the flag, that turns a switch off.
fn negated(flag: &str) -> String {
    format!("no-{flag}")
}

/// clap keeps names for ever, and so may we: there are a few dozen, made once.
fn keep(name: String) -> &'static str {
    name.leak()
}

/// What stands for a value in the help.
fn placeholder(kind: &str) -> &'static str {
    match kind {
        "PathBuf" | "Option<PathBuf>" => "PATH",
        "SocketAddr" => "ADDR",
        "u64" => "BYTES",
        "u16" | "u32" => "N",
        "Cores" => "N|LIST",
        "Endpoints" => "auto|N",
        "CommitMode" => "dsync|fdatasync",
        "LogFormat" => "text|json",
        _ => "TEXT",
    }
}

impl Args for KeyFlags {
    fn augment_args(mut command: Command) -> Command {
        for key in KEYS {
            let default = match key.default {
                "" => String::new(),
                text => format!(" [default: {text}]"),
            };
            let mut arg = Arg::new(key.name)
                .long(keep(key.flag()))
                .help(format!("{}{default}", key.meaning))
                .help_heading("Settings")
                .action(ArgAction::Set);
            arg = if key.is_switch() {
                arg.num_args(0..=1)
                    .require_equals(true)
                    .default_missing_value("true")
                    .value_name("BOOL")
            } else {
                arg.value_name(placeholder(key.kind))
            };
            command = command.arg(arg);
            if key.is_switch() && key.default == "true" {
                let off = keep(negated(&key.flag()));
                let arg = Arg::new(off)
                    .long(off)
                    .help(format!("Same as --{}=false", key.flag()))
                    .help_heading("Settings")
                    .conflicts_with(key.name)
                    .action(ArgAction::SetTrue);
                command = command.arg(arg);
            }
        }
        command
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

impl FromArgMatches for KeyFlags {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, Error> {
        let mut given = Vec::new();
        for key in KEYS {
            if let Some(text) = matches.get_one::<String>(key.name) {
                given.push((key.name.to_owned(), text.clone()));
            }
            let off = key.is_switch() && key.default == "true";
            if off && matches.get_flag(&negated(&key.flag())) {
                given.push((key.name.to_owned(), "false".to_owned()));
            }
        }
        Ok(KeyFlags(given))
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}
