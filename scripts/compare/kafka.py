"""Apache Kafka, one node that is broker and controller, from its published jars.

The JVM's flags are those of the project's own start script.
"""

import base64
import uuid

from server import Server, free_port, run

VERSION = "4.4.0"
JVM = ("-Xmx1G -Xms1G -server -XX:+UseG1GC -XX:MaxGCPauseMillis=20 "
       "-XX:InitiatingHeapOccupancyPercent=35 -XX:+ExplicitGCInvokesConcurrent "
       "-XX:MaxInlineLevel=15 -Djava.awt.headless=true").split()
POM = f"""<project xmlns="http://maven.apache.org/POM/4.0.0">
<modelVersion>4.0.0</modelVersion>
<groupId>peers</groupId><artifactId>kafka</artifactId><version>1</version>
<dependencies><dependency>
<groupId>org.apache.kafka</groupId><artifactId>kafka_2.13</artifactId><version>{VERSION}</version>
</dependency></dependencies></project>
"""


class Kafka:
    """`flush` makes it flush every message to the disk before it answers."""

    protocol = "kafka"

    def __init__(self, flush):
        self.name = "kafka-flush" if flush else "kafka"
        self.label = "Kafka, flush.messages=1" if flush else "Kafka, default"
        self.durability = "flushed before the answer" if flush else "page cache only"
        self.durable = flush
        self.settings = {"log.flush.interval.messages": "1"} if flush else {}
        self.version = VERSION

    def install(self, shelf):
        self.jars = shelf / f"kafka-{VERSION}"
        if not (self.jars / "done").exists():
            self.jars.mkdir(parents=True, exist_ok=True)
            (self.jars / "pom.xml").write_text(POM)
            run(["mvn", "-q", "-B", "dependency:copy-dependencies", "-DincludeScope=runtime",
                 f"-DoutputDirectory={self.jars}"], 600, cwd=self.jars)
            (self.jars / "done").touch()
        run(["java", "-version"], 30)

    def configuration(self, folder, port, control):
        return {
            "process.roles": "broker,controller",
            "node.id": "1",
            "controller.quorum.voters": f"1@127.0.0.1:{control}",
            "listeners": f"PLAINTEXT://127.0.0.1:{port},CONTROLLER://127.0.0.1:{control}",
            "advertised.listeners": f"PLAINTEXT://127.0.0.1:{port}",
            "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT",
            "controller.listener.names": "CONTROLLER",
            "log.dirs": str(folder / "data"),
            "offsets.topic.replication.factor": "1",
            "transaction.state.log.replication.factor": "1",
            "transaction.state.log.min.isr": "1",
            "share.coordinator.state.topic.replication.factor": "1",
            "share.coordinator.state.topic.min.isr": "1",
            **self.settings,
        }

    def start(self, folder):
        port, control = free_port(), free_port()
        properties = folder / "server.properties"
        settings = self.configuration(folder, port, control)
        properties.write_text("".join(f"{key}={value}\n" for key, value in settings.items()))
        java = ["java", *JVM, "-cp", f"{self.jars}/*"]
        identity = base64.urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("=")
        run([*java, "kafka.tools.StorageTool", "format", "-t", identity, "-c", properties], 60)
        server = Server([*java, "kafka.Kafka", properties], folder)
        server.wait_port(port, self.label)
        server.address = f"127.0.0.1:{port}"
        return server
