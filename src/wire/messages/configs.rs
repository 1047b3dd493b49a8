//! DescribeConfigs (32): the settings of topics and brokers.

use crate::wire::schema::{Array, LAST, Text, message, structure};

structure! {
    /// A resource asked about.
    DescribeConfigsResource {
        /// 2 topic, 4 broker, 8 broker logger, 16 client metrics, 32 group.
        resource_type: i8 [0, LAST] = 0,
        /// Its name.
        resource_name: Text [0, LAST] = Text::default(),
        /// The settings asked for; null for all.
        configuration_keys: Option<Array<Text>> [0, LAST] = Some(Array::default()),
    }
    /// Asks for settings.
    DescribeConfigsRequest {
        /// The resources.
        resources: Array<DescribeConfigsResource> [0, LAST] = Array::default(),
        /// Whether to report where each value comes from.
        include_synonyms: bool [1, LAST] = false,
        /// Whether to explain each setting.
        include_documentation: bool [3, LAST] = false,
    }
    /// Where a value could come from.
    ConfigSynonym {
        /// The setting's name there.
        name: Text [1, LAST] = Text::default(),
        /// The value there.
        value: Option<Text> [1, LAST] = Some(Text::default()),
        /// 1 topic, 2 dynamic broker, 3 dynamic default, 4 static, 5 default.
        source: i8 [1, LAST] = 0,
    }
    /// A setting.
    ConfigEntry {
        /// Its name.
        name: Text [0, LAST] = Text::default(),
        /// Its value.
        value: Option<Text> [0, LAST] = Some(Text::default()),
        /// Whether it cannot be changed.
        read_only: bool [0, LAST] = false,
        /// Where the value comes from: as [`ConfigSynonym::source`], -1 if unknown.
        config_source: i8 [1, LAST] = -1,
        /// Whether the value is withheld.
        is_sensitive: bool [0, LAST] = false,
        /// Where else it could come from.
        synonyms: Array<ConfigSynonym> [1, LAST] = Array::default(),
        /// 1 boolean, 2 string, 3 int, 4 short, 5 long, 6 double, 7 list, 8 class, 9 password.
        config_type: i8 [3, LAST] = 0,
        /// What it does, in words.
        documentation: Option<Text> [3, LAST] = Some(Text::default()),
    }
    /// A resource's answer.
    DescribeConfigsResult {
        /// Kafka's error code.
        error_code: i16 [0, LAST] = 0,
        /// What went wrong, in words.
        error_message: Option<Text> [0, LAST] = None,
        /// As asked.
        resource_type: i8 [0, LAST] = 0,
        /// As asked.
        resource_name: Text [0, LAST] = Text::default(),
        /// The settings.
        configs: Array<ConfigEntry> [0, LAST] = Array::default(),
    }
    /// The settings.
    DescribeConfigsResponse {
        /// How long the client is asked to wait, in milliseconds.
        throttle_time_ms: i32 [0, LAST] = 0,
        /// One answer for each resource.
        results: Array<DescribeConfigsResult> [0, LAST] = Array::default(),
    }
}

message! {
    DescribeConfigsRequest flexible from 4;
    DescribeConfigsResponse flexible from 4;
}
