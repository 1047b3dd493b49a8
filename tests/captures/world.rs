//! Makes our broker hold what Kafka held when it was asked, and speaks to it.
//!
//! Kafka's answer says what there was: a topic that was found exists, one that was created did not,
//! a fetch that returned records had them. Topic ids, cluster id and node id of the recording are
//! exchanged for ours. None of this is checked here: it only sets the stage.

use std::collections::HashMap;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use bytes::Bytes;
use penstock::base::ids::TopicId;
use penstock::wire::messages::{
    ApiVersion, ApiVersionsRequest, CreatableTopic, CreateTopicsRequest, DeleteTopicState,
    DeleteTopicsRequest, ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic,
    MetadataRequest, MetadataRequestTopic, MetadataResponse,
};
use penstock::wire::{Request, RequestHeader, Response, Text, request, response};

use crate::recording;
use crate::support::batch::{self, Record};
use crate::support::client::{Connection, code};

const TIMEOUT: Duration = Duration::from_secs(20);
/// Partitions of a topic about whose number the recording says nothing.
const PARTITIONS: i32 = 4;

/// The broker under test, with the connection of the client that is played.
pub struct World {
    address: SocketAddr,
    stream: TcpStream,
    names: HashMap<TopicId, Text>,
}

impl World {
    /// Connects and learns the recording's topic ids.
    pub fn new(address: SocketAddr) -> World {
        let mut names = HashMap::new();
        for (_, pairs) in recording::by_client() {
            for answer in pairs
                .iter()
                .filter(|pair| is_named(pair))
                .filter_map(|pair| pair.answer())
            {
                learn(&mut names, &answer);
            }
        }
        assert!(!names.is_empty(), "the recording has topic ids");
        World {
            address,
            stream: connect(address),
            names,
        }
    }

    /// A new connection, as a new client has.
    pub fn reconnect(&mut self) {
        self.stream = connect(self.address);
    }

    /// Sends a frame that has no answer.
    pub fn send(&mut self, frame: &[u8]) {
        self.stream.write_all(frame).expect("the broker reads");
    }

    /// Sends a frame and reads the next one, without its length.
    pub fn exchange(&mut self, frame: &[u8]) -> std::io::Result<Bytes> {
        self.stream.write_all(frame)?;
        let mut length = [0; 4];
        self.stream.read_exact(&mut length)?;
        let mut answer = vec![0; u32::from_be_bytes(length) as usize];
        self.stream.read_exact(&mut answer)?;
        Ok(answer.into())
    }

    /// Sends a recorded request as it is; good if it is answered with error 35, or the connection
    /// is closed.
    pub fn is_refused(&mut self, request: &[u8]) -> Result<(), String> {
        let mut frame = (request.len() as u32).to_be_bytes().to_vec();
        frame.extend_from_slice(request);
        match self.exchange(&frame) {
            Ok(answer) => {
                let same_id = answer.get(..4) == request.get(4..8);
                let refused = answer
                    .get(4..)
                    .is_some_and(|rest| rest.windows(2).any(|code| code == [0, 35]));
                if same_id && refused {
                    Ok(())
                } else {
                    Err(format!("answered {answer:?}"))
                }
            }
            Err(error) if error.kind() == std::io::ErrorKind::UnexpectedEof => Ok(()),
            Err(error) if error.kind() == std::io::ErrorKind::ConnectionReset => Ok(()),
            Err(error) => Err(format!("silence: {error}")),
        }
    }

    /// Asks with a request of our own, on a connection of its own.
    fn ask(&self, api_key: i16, api_version: i16, request: impl Into<Request>) -> Response {
        let client_id = Some("stage-hand".into());
        let header = RequestHeader {
            api_key,
            api_version,
            correlation_id: 7,
            client_id,
        };
        let frame = request::encode(&header, &request.into()).expect("a request of ours");
        let mut other = World {
            address: self.address,
            stream: connect(self.address),
            names: HashMap::new(),
        };
        let answer = other.exchange(&frame).expect("an answer");
        response::decode(api_key, api_version, &answer)
            .expect("it decodes")
            .1
    }

    /// What the broker advertises.
    pub fn api_versions(&mut self) -> Vec<ApiVersion> {
        let Response::ApiVersions(answer) = self.ask(18, 0, ApiVersionsRequest::default()) else {
            unreachable!("decoded as ApiVersions");
        };
        answer.api_keys.to_vec()
    }

    /// The error code of an ApiVersions 5 that means this cluster and node.
    pub fn api_versions_of(&mut self, cluster: Option<&str>, node_id: i32) -> i16 {
        let asked = ApiVersionsRequest {
            client_software_name: "test".into(),
            client_software_version: "1".into(),
            cluster_id: cluster.map(Text::from),
            node_id,
        };
        let Response::ApiVersions(answer) = self.ask(18, 5, asked) else {
            unreachable!("decoded as ApiVersions");
        };
        answer.error_code
    }

    /// Our cluster id, and the node id of the endpoint that is connected to.
    pub fn identity(&self) -> (String, i32) {
        let metadata = self.metadata(&[]);
        let port = i32::from(self.address.port());
        let node = metadata.brokers.iter().find(|broker| broker.port == port);
        let cluster = metadata.cluster_id.expect("a cluster has an id");
        (
            cluster.to_string(),
            node.expect("the endpoint is in the list").node_id,
        )
    }

    fn metadata(&self, names: &[Text]) -> MetadataResponse {
        let topics = names.iter().map(|name| MetadataRequestTopic {
            topic_id: TopicId::default(),
            name: Some(name.clone()),
        });
        let asked = MetadataRequest {
            topics: Some(topics.collect()),
            allow_auto_topic_creation: false,
            ..MetadataRequest::default()
        };
        let Response::Metadata(answer) = self.ask(3, 12, asked) else {
            unreachable!("decoded as Metadata");
        };
        answer
    }

    /// Id and partitions of a topic of ours.
    fn topic(&self, name: &Text) -> Option<(TopicId, i32)> {
        let found = self.metadata(std::slice::from_ref(name)).topics.first()?;
        let partitions = i32::try_from(found.partitions.len()).expect("few partitions");
        (found.error_code == 0).then_some((found.topic_id, partitions))
    }

    fn delete(&self, name: &Text) {
        if self.topic(name).is_some() {
            let asked = DeleteTopicsRequest {
                topic_names: vec![name.clone()].into(),
                timeout_ms: 20_000,
                ..DeleteTopicsRequest::default()
            };
            self.ask(20, 4, asked);
        }
        self.wait(|| self.topic(name).is_none(), &format!("{name} stays"));
    }

    /// The topic with at least `partitions`, or exactly so many.
    fn create(&self, name: &Text, partitions: i32, exactly: bool) {
        let fits = |found: i32| found == partitions || (!exactly && found > partitions);
        if self.topic(name).is_some_and(|(_, found)| fits(found)) {
            return;
        }
        self.delete(name);
        let topic = CreatableTopic {
            name: name.clone(),
            num_partitions: partitions,
            replication_factor: 1,
            ..CreatableTopic::default()
        };
        let asked = CreateTopicsRequest {
            topics: vec![topic].into(),
            timeout_ms: 20_000,
            validate_only: false,
        };
        self.ask(19, 7, asked);
        self.wait(
            || self.topic(name).is_some(),
            &format!("{name} was not made"),
        );
    }

    /// The stage is set when the change shows, which may take a broker a moment.
    fn wait(&self, mut is_done: impl FnMut() -> bool, what: &str) {
        let deadline = std::time::Instant::now() + TIMEOUT;
        while !is_done() {
            assert!(std::time::Instant::now() < deadline, "{what}");
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    /// At least `end` records in a partition.
    fn fill(&self, name: &Text, partition: i32, end: i64) {
        let at = ListOffsetsPartition {
            partition_index: partition,
            ..Default::default()
        };
        let latest = ListOffsetsPartition {
            timestamp: -1,
            current_leader_epoch: -1,
            ..at
        };
        let partitions = vec![latest].into();
        let topic = ListOffsetsTopic {
            name: name.clone(),
            partitions,
        };
        let asked = ListOffsetsRequest {
            topics: vec![topic].into(),
            ..Default::default()
        };
        let Response::ListOffsets(answer) = self.ask(2, 4, asked) else {
            unreachable!("decoded as ListOffsets");
        };
        let topic = answer.topics.first().expect("as asked");
        let found = topic.partitions.first().expect("as asked").offset;
        if found >= end {
            return;
        }
        let record = Record {
            timestamp_ms: 1_796_000_000_000,
            ..Record::default()
        };
        let records = vec![record; usize::try_from(end - found).expect("few records")];
        let batch = batch::build(batch::NOBODY, &records);
        let mut connection = Connection::open(self.address, TIMEOUT).expect("a connection");
        let done = connection
            .produce(name, partition, -1, &batch)
            .expect("an answer");
        assert_eq!(
            done.error,
            code::NONE,
            "{name}/{partition} cannot be filled"
        );
    }

    /// Sets the stage for a recorded request, given what Kafka answered.
    pub fn arrange(&self, asked: &Request, theirs: Option<&Response>) {
        match (asked, theirs) {
            (Request::Produce(produce), _) => {
                for topic in produce.topics.iter() {
                    let name = self.name_of(&topic.name, topic.topic_id);
                    let last = topic
                        .partitions
                        .iter()
                        .map(|partition| partition.index)
                        .max();
                    self.create(&name, (last.unwrap_or(0) + 1).max(PARTITIONS.min(2)), false);
                }
            }
            (Request::Fetch(fetch), Some(Response::Fetch(theirs))) => {
                for topic in fetch.topics.iter() {
                    let name = self.name_of(&topic.name, topic.topic_id);
                    let last = topic
                        .partitions
                        .iter()
                        .map(|partition| partition.partition)
                        .max();
                    self.create(&name, last.unwrap_or(0) + 1, false);
                    // One record past what is asked for: nobody waits for an empty answer.
                    for partition in topic.partitions.iter() {
                        self.fill(&name, partition.partition, partition.fetch_offset + 1);
                    }
                }
                assert_eq!(theirs.error_code, 0);
            }
            (Request::ListOffsets(offsets), Some(Response::ListOffsets(theirs))) => {
                for (topic, found) in offsets.topics.iter().zip(theirs.topics.iter()) {
                    let last = topic.partitions.iter().map(|one| one.partition_index).max();
                    self.create(&topic.name, last.unwrap_or(0) + 1, false);
                    for partition in found.partitions.iter().filter(|one| one.offset > 0) {
                        self.fill(&topic.name, partition.partition_index, partition.offset);
                    }
                }
            }
            (_, Some(theirs)) => self.arrange_topics(asked, theirs),
            (_, None) => {}
        }
    }

    /// The same for requests about topics themselves.
    fn arrange_topics(&self, asked: &Request, theirs: &Response) {
        match (asked, theirs) {
            (_, Response::Metadata(theirs)) => {
                for topic in theirs.topics.iter().filter(|topic| !topic.is_internal) {
                    let Some(name) = &topic.name else { continue };
                    let partitions = i32::try_from(topic.partitions.len()).expect("few");
                    match topic.error_code {
                        0 => self.create(name, partitions, true),
                        _ => self.delete(name),
                    }
                }
            }
            (Request::CreateTopics(_), Response::CreateTopics(theirs)) => {
                for topic in theirs.topics.iter() {
                    match topic.error_code {
                        code::TOPIC_ALREADY_EXISTS => self.create(&topic.name, 1, false),
                        _ => self.delete(&topic.name),
                    }
                }
            }
            (Request::DeleteTopics(_), Response::DeleteTopics(theirs)) => {
                for topic in theirs.responses.iter() {
                    let Some(name) = &topic.name else { continue };
                    match topic.error_code {
                        0 => self.create(name, 1, false),
                        _ => self.delete(name),
                    }
                }
            }
            (Request::CreatePartitions(asked), Response::CreatePartitions(_)) => {
                for topic in asked.topics.iter() {
                    self.create(&topic.name, topic.count - 1, true);
                }
            }
            (Request::DescribeConfigs(asked), _) => {
                for resource in asked.resources.iter().filter(|one| one.resource_type == 2) {
                    self.create(&resource.resource_name, 1, false);
                }
            }
            _ => {}
        }
    }

    /// A recorded topic's name: as given, or as its recorded id is known.
    fn name_of(&self, name: &Text, id: TopicId) -> Text {
        if !name.is_empty() {
            return name.clone();
        }
        self.names
            .get(&id)
            .cloned()
            .unwrap_or_else(|| format!("unnamed-{id}").into())
    }

    /// Our id for a recorded one.
    fn id_of(&self, recorded: TopicId) -> TopicId {
        if recorded == TopicId::default() {
            return recorded;
        }
        let name = self.name_of(&Text::default(), recorded);
        self.topic(&name).map_or(recorded, |(id, _)| id)
    }

    /// The request with the recording's ids exchanged for ours.
    pub fn translate(&self, recorded: &Request) -> Request {
        let mut request = recorded.clone();
        match &mut request {
            Request::Produce(produce) => {
                let topics = produce.topics.iter().map(|mut topic| {
                    topic.topic_id = self.id_of(topic.topic_id);
                    topic
                });
                produce.topics = topics.collect();
            }
            Request::Fetch(fetch) => {
                let topics = fetch.topics.iter().map(|mut topic| {
                    topic.topic_id = self.id_of(topic.topic_id);
                    topic
                });
                fetch.topics = topics.collect();
            }
            Request::DeleteTopics(delete) => {
                let topics = delete.topics.iter().map(|topic: DeleteTopicState| {
                    let topic_id = self.id_of(topic.topic_id);
                    DeleteTopicState { topic_id, ..topic }
                });
                delete.topics = topics.collect();
            }
            Request::Metadata(metadata) => {
                let exchange = |mut topic: MetadataRequestTopic| {
                    topic.topic_id = self.id_of(topic.topic_id);
                    topic
                };
                let topics = metadata.topics.take();
                metadata.topics = topics.map(|topics| topics.iter().map(exchange).collect());
            }
            Request::ApiVersions(versions) if versions.cluster_id.is_some() => {
                let (cluster, node) = self.identity();
                versions.cluster_id = Some(cluster.into());
                versions.node_id = if versions.node_id < 0 { -1 } else { node };
            }
            Request::DescribeConfigs(configs) => {
                let (_, node) = self.identity();
                let resources = configs.resources.iter().map(|mut resource| {
                    if resource.resource_type == 4 && !resource.resource_name.is_empty() {
                        resource.resource_name = node.to_string().into();
                    }
                    resource
                });
                configs.resources = resources.collect();
            }
            _ => {}
        }
        request
    }
}

fn connect(address: SocketAddr) -> TcpStream {
    let stream = TcpStream::connect_timeout(&address, TIMEOUT).expect("a connection");
    stream
        .set_read_timeout(Some(TIMEOUT))
        .expect("a timeout can be set");
    stream.set_nodelay(true).expect("an option can be set");
    stream
}

/// Whether an answer of this kind may tell topic ids.
fn is_named(pair: &recording::Pair) -> bool {
    matches!(pair.api_key, 3 | 19 | 20)
}

fn learn(names: &mut HashMap<TopicId, Text>, answer: &Response) {
    match answer {
        Response::Metadata(metadata) => {
            for topic in metadata.topics.iter() {
                if let Some(name) = topic.name {
                    names.insert(topic.topic_id, name);
                }
            }
        }
        Response::CreateTopics(create) => {
            for topic in create.topics.iter() {
                names.insert(topic.topic_id, topic.name);
            }
        }
        Response::DeleteTopics(delete) => {
            for topic in delete.responses.iter() {
                if let Some(name) = topic.name {
                    names.insert(topic.topic_id, name);
                }
            }
        }
        _ => {}
    }
    names.remove(&TopicId::default());
}
