//! The settings a topic may carry: one table of Kafka's names, what each accepts today, and its
//! default. A value that the broker could not honour is refused when the topic is made, so that
//! nobody relies on it.

/// Largest batch the topic takes, in bytes.
pub const MAX_MESSAGE_BYTES: &str = "max.message.bytes";

/// One setting of a topic.
pub struct TopicSetting {
    /// Kafka's name.
    pub name: &'static str,
    /// The value of a topic that does not set it.
    pub default: &'static str,
    /// For a person.
    pub meaning: &'static str,
    accepts: Accepts,
}

enum Accepts {
    /// Exactly these values.
    OneOf(&'static [&'static str]),
    /// A whole number in these bounds.
    Number(i64, i64),
}

/// Every setting that is known, by name.
pub const SETTINGS: &[TopicSetting] = &[
    TopicSetting {
        name: "cleanup.policy",
        default: "delete",
        meaning: "how old records go; compaction is not served yet",
        accepts: Accepts::OneOf(&["delete"]),
    },
    TopicSetting {
        name: "compression.type",
        default: "producer",
        meaning: "batches are stored and served as they came",
        accepts: Accepts::OneOf(&["producer"]),
    },
    TopicSetting {
        name: MAX_MESSAGE_BYTES,
        default: "1048588",
        meaning: "largest record batch, in bytes",
        accepts: Accepts::Number(1, crate::limits::MESSAGE_BYTES_HARD_MAX as i64),
    },
    TopicSetting {
        name: "message.timestamp.type",
        default: "CreateTime",
        meaning: "whose clock stamps a record",
        accepts: Accepts::OneOf(&["CreateTime"]),
    },
    TopicSetting {
        name: "min.insync.replicas",
        default: "1",
        meaning: "replicas that must have a record before it is acknowledged",
        accepts: Accepts::Number(1, 1),
    },
    TopicSetting {
        name: "retention.bytes",
        default: "-1",
        meaning: "bytes kept per partition; recorded, not enforced yet: nothing is deleted by size",
        accepts: Accepts::Number(-1, i64::MAX),
    },
    TopicSetting {
        name: "retention.ms",
        default: "604800000",
        meaning: "age kept; recorded, not enforced yet: nothing is deleted by age",
        accepts: Accepts::Number(-1, i64::MAX),
    },
];

/// Checks one setting.
///
/// # Errors
/// A text for the client: the key is unknown, or the value is outside what is served.
pub fn check(key: &str, value: &str) -> Result<(), String> {
    let Some(setting) = SETTINGS.iter().find(|setting| setting.name == key) else {
        let known: Vec<&str> = SETTINGS.iter().map(|setting| setting.name).collect();
        return Err(format!(
            "unknown topic setting {key}; known are {}",
            known.join(", ")
        ));
    };
    match setting.accepts {
        Accepts::OneOf(values) if values.contains(&value) => Ok(()),
        Accepts::OneOf(values) => Err(format!(
            "{key}={value} is not served; it may be {}",
            values.join(" or ")
        )),
        Accepts::Number(least, most) => match value.parse::<i64>() {
            Ok(number) if (least..=most).contains(&number) => Ok(()),
            _ => Err(format!(
                "{key}={value}: it takes a whole number from {least} to {most}"
            )),
        },
    }
}
