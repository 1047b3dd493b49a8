//! Precedence, unknown keys, ranges and conflicts of the configuration.

use super::*;

fn host() -> HostFacts {
    HostFacts {
        cpus: vec![0, 1, 2, 3],
        memory_bytes: 16 << 30,
    }
}

fn pairs(list: &[(&str, &str)]) -> Vec<(String, String)> {
    list.iter()
        .map(|(key, text)| ((*key).to_owned(), (*text).to_owned()))
        .collect()
}

fn flags(list: &[(&str, &str)]) -> Result<Loaded, ConfigError> {
    load(
        &Sources {
            flags: pairs(list),
            ..Sources::default()
        },
        &host(),
    )
}

/// Goal: the table itself is right. Method: every default parses and passes its own range.
#[test]
fn every_default_is_within_its_range() {
    let mut config = Config::defaults().expect("parses");
    for key in KEYS {
        config
            .set(key.name, key.default)
            .unwrap_or_else(|e| panic!("{}: {e}", key.name));
        let (shown, _) = config.show(key.name).expect("every key shows");
        if key.default != "auto" || key.kind != "u64" {
            assert_eq!(shown, key.default, "{}", key.name);
        }
        assert!(!key.meaning.is_empty());
    }
    let mut names: Vec<_> = KEYS.iter().map(|key| key.name).collect();
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), KEYS.len());
}

/// Goal: flags beat the environment, which beats the file, which beats the default. Method: set one
/// key at ever more levels and watch value and origin.
#[test]
fn sources_rise_in_precedence() {
    let mut sources = Sources::default();
    let depth = |sources: &Sources| {
        let loaded = load(sources, &host()).expect("valid");
        (loaded.config.commit_depth, loaded.origin("commit_depth"))
    };
    assert_eq!(depth(&sources), (4, Origin::Default));
    sources.file = Some((
        "p.toml".into(),
        "# first\nrack = \"a\"\ncommit_depth = 5\n".into(),
    ));
    assert_eq!(depth(&sources), (5, Origin::File("p.toml".into(), 3)));
    sources.environment = pairs(&[("PENSTOCK_COMMIT_DEPTH", "6"), ("HOME", "x")]);
    assert_eq!(
        depth(&sources),
        (6, Origin::Environment("PENSTOCK_COMMIT_DEPTH".into()))
    );
    sources.flags = pairs(&[("commit_depth", "7")]);
    assert_eq!(depth(&sources), (7, Origin::Flag("commit-depth".into())));
    assert_eq!(depth(&sources).1.to_string(), "--commit-depth");
}

/// Goal: an unknown key is refused with the nearest known one, in the file and the environment.
#[test]
fn unknown_keys_name_the_nearest() {
    let file = Sources {
        file: Some(("p.toml".into(), "\ncomit_mode = \"dsync\"".into())),
        ..Sources::default()
    };
    let text = load(&file, &host()).expect_err("unknown").to_string();
    assert!(
        text.starts_with("p.toml line 2: there is no key `comit_mode`"),
        "{text}"
    );
    assert!(text.contains("did you mean `commit_mode`?"), "{text}");
    let environment = Sources {
        environment: pairs(&[("PENSTOCK_CROES", "2")]),
        ..Sources::default()
    };
    let text = load(&environment, &host())
        .expect_err("unknown")
        .to_string();
    assert!(
        text.starts_with("$PENSTOCK_CROES") && text.contains("`cores`"),
        "{text}"
    );
}

/// Goal: variables that are not keys of the broker do not stop it. Method: one of each sort.
#[test]
fn other_variables_are_left_alone() {
    let environment = pairs(&[
        ("PENSTOCK_BROKER", "h:1"),
        ("PENSTOCK_SEED", "7"),
        ("PENSTOCK_SERVICE_HOST", "10.0.0.1"),
        ("PENSTOCK_PORT_9092_TCP", "tcp://10.0.0.1:9092"),
    ]);
    load(
        &Sources {
            environment,
            ..Sources::default()
        },
        &host(),
    )
    .expect("none is a key");
}

/// Goal: values out of range, of the wrong type or form are refused, saying where and what.
#[test]
fn bad_values_say_what_and_where() {
    for (key, text, expected) in [
        ("commit_depth", "0", "must be 1 – 16"),
        ("segment_bytes", "65MB", "a multiple of 4096"),
        ("kafka", "9092", "must be ADDRESS:PORT"),
        ("commit_mode", "never", "must be one of: dsync, fdatasync"),
    ] {
        let error = flags(&[(key, text)]).expect_err("refused").to_string();
        assert!(error.contains(expected), "{error}");
        assert!(error.starts_with("--"), "{error}");
    }
    let table = Sources {
        file: Some(("p.toml".into(), "[kafka]\nport = 1\n".into())),
        ..Sources::default()
    };
    let error = load(&table, &host()).expect_err("refused").to_string();
    assert!(error.contains("must be a string"), "{error}");
    let broken = Sources {
        file: Some(("p.toml".into(), "a = = 1".into())),
        ..Sources::default()
    };
    assert!(matches!(
        load(&broken, &host()),
        Err(ConfigError::Syntax { .. })
    ));
}

/// Goal: open by default is impossible. Method: a wide listener with and without `insecure`.
#[test]
fn a_wide_listener_needs_a_word() {
    let wide = [("kafka", "10.1.2.3:9092")];
    let error = flags(&wide).expect_err("refused").to_string();
    assert!(error.contains("--insecure"), "{error}");
    flags(&[wide[0], ("insecure", "true")]).expect("told so");
    let every = [("kafka", "0.0.0.0:9092"), ("insecure", "true")];
    let error = flags(&every).expect_err("what to advertise?").to_string();
    assert!(error.contains("advertised_host"), "{error}");
    flags(&[every[0], every[1], ("advertised_host", "broker.example")]).expect("told so");
    assert!(flags(&[("http", "[::]:9080")]).is_err());
}

/// Goal: CPUs outside the affinity mask and clashing ports are refused before anything starts,
/// while more cores than CPUs take turns.
#[test]
fn conflicts_are_found() {
    let five = flags(&[("cores", "5")]).expect("cores may share a CPU");
    assert_eq!(five.cpus, vec![0, 1, 2, 3, 0]);
    assert!(flags(&[("cores", "1025")]).is_err());
    assert!(flags(&[("cores", "0,9")]).is_err());
    assert_eq!(
        flags(&[("cores", "2-3")]).expect("allowed").cpus,
        vec![2, 3]
    );
    assert_eq!(flags(&[("cores", "2")]).expect("allowed").cpus, vec![0, 1]);
    assert!(flags(&[("http", "127.0.0.1:9094")]).is_err());
    assert!(flags(&[("kafka", "127.0.0.1:65534")]).is_err());
    // A segment that cannot hold the largest block is refused here, not by the journal.
    assert!(flags(&[("segment_bytes", "16MiB")]).is_err());
    flags(&[("segment_bytes", "20MiB")]).expect("the least there is");
}

/// Goal: the memory parts add up and a budget that cannot work is refused with the least that can.
/// Method: default, explicit and too small budgets.
#[test]
fn the_memory_budget_adds_up() {
    let loaded = flags(&[]).expect("valid");
    let memory = loaded.memory;
    assert_eq!(loaded.config.memory_bytes, 1 << 30);
    let sum = memory.fixed_bytes + memory.request_bytes + memory.fetch_bytes + memory.cache_bytes;
    assert_eq!(sum, memory.total_bytes);
    assert!(memory.request_bytes_per_core() >= crate::limits::FRAME_BYTES_MAX);
    assert!(memory.fetch_bytes_per_core() >= crate::limits::FRAME_BYTES_MAX);
    let error = flags(&[("memory_bytes", "64MiB")])
        .expect_err("too small")
        .to_string();
    let least = error
        .split("at least ")
        .nth(1)
        .and_then(|rest| rest.split(':').next());
    let least = least.expect("the message names the least");
    flags(&[("memory_bytes", least)]).expect("the least is enough");
    let small = HostFacts {
        cpus: vec![0, 1],
        memory_bytes: 100 << 20,
    };
    let error = load(&Sources::default(), &small)
        .expect_err("host too small")
        .to_string();
    assert!(error.contains("lower cores"), "{error}");
}
