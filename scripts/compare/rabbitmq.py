"""RabbitMQ, one node, a durable quorum queue with publisher confirms, from Debian's package.

A quorum queue confirms a message once its write-ahead log is flushed.
"""

from pathlib import Path

from server import Server, Unavailable, debian, free_port, run

# The package's own script, which does not change user as its wrapper does.
PROGRAM = Path("/usr/lib/rabbitmq/bin/rabbitmq-server")


class RabbitMq:
    protocol = "amqp"

    def __init__(self):
        self.name = "rabbitmq"
        self.label = "RabbitMQ, quorum queue"
        self.durability = "flushed before the answer"
        self.durable = True
        self.version = "unknown"

    def install(self, _shelf):
        debian("rabbitmq-server", "rabbitmq-server")
        if not PROGRAM.exists():
            raise Unavailable(f"there is no {PROGRAM}")
        asked = run(["dpkg-query", "-W", "-f", "${Version}", "rabbitmq-server"], 30)
        self.version = asked.split("-")[0]

    def start(self, folder):
        port, distribution, names = free_port(), free_port(), free_port()
        (folder / "plugins").write_text("[].\n")
        environment = {
            "HOME": str(folder),
            "RABBITMQ_NODENAME": "compare@localhost",
            "RABBITMQ_NODE_IP_ADDRESS": "127.0.0.1",
            "RABBITMQ_NODE_PORT": str(port),
            "RABBITMQ_DIST_PORT": str(distribution),
            "RABBITMQ_MNESIA_BASE": str(folder / "data"),
            "RABBITMQ_LOG_BASE": str(folder / "logs"),
            "RABBITMQ_ENABLED_PLUGINS_FILE": str(folder / "plugins"),
            "RABBITMQ_PID_FILE": str(folder / "pid"),
            "RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS":
                "-kernel inet_dist_use_interface {127,0,0,1}",
            "ERL_EPMD_ADDRESS": "127.0.0.1",
            "ERL_EPMD_PORT": str(names),
        }
        # The name server would outlive the node; as a process of ours it does not.
        epmd = Server(["epmd", "-port", names, "-address", "127.0.0.1"], folder)
        server = Server([PROGRAM], folder, environment, name="beam", companions=[epmd])
        server.wait_port(port, self.label)
        server.address = f"127.0.0.1:{port}"
        return server
