"""NATS JetStream, one server, a stream on file, from its Go module."""

import os

from server import Server, free_port, run

MODULE = "github.com/nats-io/nats-server/v2"
VERSION = "v2.15.3"


class Nats:
    """`always` makes it flush before it acknowledges; its own default is every two minutes."""

    protocol = "nats"

    def __init__(self):
        self.name = "nats"
        self.label = "NATS JetStream, sync_interval: always"
        self.durability = "flushed before the answer"
        self.durable = True
        self.version = VERSION.lstrip("v")

    def install(self, shelf):
        self.binary = shelf / f"nats-{VERSION}" / "nats-server"
        if not self.binary.exists():
            run(["go", "install", f"{MODULE}@{VERSION}"], 600,
                env={**os.environ, "GOBIN": str(self.binary.parent)})

    def start(self, folder):
        port = free_port()
        configuration = folder / "nats.conf"
        configuration.write_text(
            f"listen: 127.0.0.1:{port}\n"
            f"jetstream {{ store_dir: \"{folder}/data\", sync_interval: always }}\n")
        server = Server([self.binary, "-c", configuration], folder)
        server.wait_port(port, self.label)
        server.address = f"127.0.0.1:{port}"
        return server
