//! Which APIs and versions are served; what ApiVersions advertises.
//!
//! An API that is not fully served is not here. Two ranges are less obvious: Produce is advertised
//! from 0 although 0–2 are refused, because librdkafka before 2.11.1 otherwise stops compressing
//! in silence; FindCoordinator is served before there are groups, because librdkafka enables LZ4
//! only where it exists.

/// Produce.
pub const PRODUCE: i16 = 0;
/// Fetch.
pub const FETCH: i16 = 1;
/// ListOffsets.
pub const LIST_OFFSETS: i16 = 2;
/// Metadata.
pub const METADATA: i16 = 3;
/// FindCoordinator.
pub const FIND_COORDINATOR: i16 = 10;
/// ApiVersions.
pub const API_VERSIONS: i16 = 18;
/// CreateTopics.
pub const CREATE_TOPICS: i16 = 19;
/// DeleteTopics.
pub const DELETE_TOPICS: i16 = 20;
/// InitProducerId.
pub const INIT_PRODUCER_ID: i16 = 22;
/// DescribeConfigs.
pub const DESCRIBE_CONFIGS: i16 = 32;
/// CreatePartitions.
pub const CREATE_PARTITIONS: i16 = 37;
/// DescribeCluster.
pub const DESCRIBE_CLUSTER: i16 = 60;

/// First version of Produce that is more than advertised.
pub const PRODUCE_VERSION_MIN: i16 = 3;

/// An API and the range of versions that is advertised.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct ApiRange {
    /// The API key.
    pub key: i16,
    /// Kafka's name for it.
    pub name: &'static str,
    /// Lowest version advertised.
    pub min: i16,
    /// Highest version advertised and served.
    pub max: i16,
    /// First flexible version.
    pub flexible_from: i16,
}

const fn api(key: i16, name: &'static str, min: i16, max: i16, flexible_from: i16) -> ApiRange {
    ApiRange {
        key,
        name,
        min,
        max,
        flexible_from,
    }
}

/// Everything that is advertised, by key.
pub const SERVED: [ApiRange; 12] = [
    api(PRODUCE, "Produce", 0, 13, 9),
    api(FETCH, "Fetch", 4, 18, 12),
    api(LIST_OFFSETS, "ListOffsets", 1, 11, 6),
    api(METADATA, "Metadata", 0, 13, 9),
    api(FIND_COORDINATOR, "FindCoordinator", 0, 6, 3),
    api(API_VERSIONS, "ApiVersions", 0, 5, 3),
    api(CREATE_TOPICS, "CreateTopics", 2, 7, 5),
    api(DELETE_TOPICS, "DeleteTopics", 1, 6, 4),
    api(INIT_PRODUCER_ID, "InitProducerId", 0, 5, 2),
    api(DESCRIBE_CONFIGS, "DescribeConfigs", 1, 4, 4),
    api(CREATE_PARTITIONS, "CreatePartitions", 0, 3, 2),
    api(DESCRIBE_CLUSTER, "DescribeCluster", 0, 2, 0),
];

/// What the broker can do with an API version.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Support {
    /// Decode it and answer it.
    Served,
    /// The API is served, that version is not.
    VersionNotServed,
    /// Kafka has this API, this broker does not serve it.
    ApiNotServed,
    /// Nobody knows this API.
    Unknown,
}

impl Support {
    /// Whether the request is decoded and answered.
    #[must_use]
    pub const fn is_served(self) -> bool {
        matches!(self, Self::Served)
    }
}

/// The served range of an API, if it is served at all.
#[must_use]
pub fn served(api_key: i16) -> Option<&'static ApiRange> {
    SERVED.iter().find(|range| range.key == api_key)
}

/// What the broker can do with `version` of `api_key`.
#[must_use]
pub fn support(api_key: i16, version: i16) -> Support {
    let Some(range) = served(api_key) else {
        return match descriptor(api_key) {
            Some(_) => Support::ApiNotServed,
            None => Support::Unknown,
        };
    };
    let min = match api_key {
        PRODUCE => PRODUCE_VERSION_MIN,
        _ => range.min,
    };
    if (min..=range.max).contains(&version) {
        Support::Served
    } else {
        Support::VersionNotServed
    }
}

/// Kafka's name for an API, for logs and metrics; "Unknown" if it has none.
#[must_use]
pub fn name(api_key: i16) -> &'static str {
    if let Some(range) = served(api_key) {
        return range.name;
    }
    descriptor(api_key).map_or("Unknown", |descriptor| {
        let name = descriptor.request.name;
        name.strip_suffix("Request").unwrap_or(name)
    })
}

/// Whether requests and responses of that version have compact lengths and tagged fields.
#[must_use]
pub fn is_flexible(api_key: i16, version: i16) -> bool {
    if let Some(range) = served(api_key) {
        return version >= range.flexible_from;
    }
    let flexible = descriptor(api_key).and_then(|descriptor| descriptor.flexible_versions);
    flexible.is_some_and(|range| version >= range.min().value())
}

/// What the generated tables know of an API that is not served.
pub(super) fn descriptor(api_key: i16) -> Option<&'static kafka_wire::ApiDescriptor> {
    kafka_wire::API_DESCRIPTORS
        .iter()
        .find(|descriptor| descriptor.api_key.value() == api_key)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: our table does not promise what the protocol does not have. Method: compare with the
    /// generated tables: ranges within theirs (but for Produce 0–2), same first flexible version.
    #[test]
    fn the_served_table_agrees_with_the_protocol() {
        for range in SERVED {
            let known = descriptor(range.key).expect("a Kafka API");
            assert_eq!(format!("{}Request", range.name), known.request.name);
            let min = known.supported_versions.min().value();
            assert!(range.min >= min || range.key == PRODUCE, "{}", range.name);
            assert!(range.max <= known.supported_versions.max().value());
            let flexible = known.flexible_versions.expect("all have flexible versions");
            assert_eq!(
                flexible.min().value(),
                range.flexible_from,
                "{}",
                range.name
            );
            assert_eq!(range.min.min(0), 0);
        }
        assert!(SERVED.is_sorted_by_key(|range| range.key));
    }

    /// Goal: the four kinds of support are told apart. Method: one example or two of each.
    #[test]
    fn support_is_told_apart() {
        assert_eq!(support(PRODUCE, 2), Support::VersionNotServed);
        assert_eq!(support(PRODUCE, 3), Support::Served);
        assert_eq!(support(PRODUCE, 14), Support::VersionNotServed);
        assert_eq!(support(API_VERSIONS, -1), Support::VersionNotServed);
        assert_eq!(support(11, 5), Support::ApiNotServed);
        assert_eq!(support(4, 0), Support::Unknown);
        assert_eq!(support(-1, 0), Support::Unknown);
        assert_eq!(name(11), "JoinGroup");
        assert_eq!(name(PRODUCE), "Produce");
        assert_eq!(name(4), "Unknown");
    }
}
