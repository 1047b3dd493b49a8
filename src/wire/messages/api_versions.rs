//! ApiVersions (18): what a client asks first, and the ranges it gets.

use crate::wire::schema::{Array, LAST, Text, message, structure};

structure! {
    /// Asks what the broker speaks.
    ApiVersionsRequest {
        /// The client library's name.
        client_software_name: Text [3, LAST] = Text::default(),
        /// The client library's version.
        client_software_version: Text [3, LAST] = Text::default(),
        /// The cluster the client means to reach (KIP-1242).
        cluster_id: Option<Text> [5, LAST] = None,
        /// The node the client means to reach, -1 for any (KIP-1242).
        node_id: i32 [5, LAST] = -1,
    }
    /// One API's range.
    ApiVersion {
        /// The API key.
        api_key: i16 [0, LAST] = 0,
        /// Lowest version.
        min_version: i16 [0, LAST] = 0,
        /// Highest version.
        max_version: i16 [0, LAST] = 0,
    }
    /// A feature the broker supports.
    SupportedFeature {
        /// Its name.
        name: Text [3, LAST] = Text::default(),
        /// Lowest level.
        min_version: i16 [3, LAST] = 0,
        /// Highest level.
        max_version: i16 [3, LAST] = 0,
    }
    /// A feature the cluster has settled on.
    FinalizedFeature {
        /// Its name.
        name: Text [3, LAST] = Text::default(),
        /// Highest level.
        max_version_level: i16 [3, LAST] = 0,
        /// Lowest level.
        min_version_level: i16 [3, LAST] = 0,
    }
    /// The ranges. Its response header is never flexible.
    ApiVersionsResponse {
        /// Kafka's error code.
        error_code: i16 [0, LAST] = 0,
        /// The served APIs.
        api_keys: Array<ApiVersion> [0, LAST] = Array::default(),
        /// How long the client is asked to wait, in milliseconds.
        throttle_time_ms: i32 [1, LAST] = 0,
        @tagged {
            /// Features the broker supports.
            supported_features: Array<SupportedFeature> [0, 3] = Array::default(),
            /// Epoch of the finalized features, -1 if unknown.
            finalized_features_epoch: i64 [1, 3] = -1,
            /// Features in force.
            finalized_features: Array<FinalizedFeature> [2, 3] = Array::default(),
            /// Whether a ZooKeeper migration may start; never here.
            zk_migration_ready: bool [3, 3] = false,
        }
    }
}

message! {
    ApiVersionsRequest flexible from 3;
    ApiVersionsResponse flexible from 3;
}
