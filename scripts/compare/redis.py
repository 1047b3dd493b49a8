"""Redis Streams with the append-only file flushed before the answer, from Debian's package."""

from server import Server, debian, free_port, run


class Redis:
    protocol = "redis"

    def __init__(self):
        self.name = "redis"
        self.label = "Redis Streams, appendfsync always"
        self.durability = "flushed before the answer"
        self.durable = True
        self.version = "unknown"

    def install(self, _shelf):
        self.binary = debian("redis-server", "redis-server")
        self.version = run([self.binary, "--version"], 30).split("v=")[1].split()[0]

    def start(self, folder):
        port = free_port()
        server = Server(
            [self.binary, "--port", port, "--bind", "127.0.0.1", "--dir", folder, "--save", "",
             "--appendonly", "yes", "--appendfsync", "always"], folder)
        server.wait_port(port, self.label)
        server.address = f"127.0.0.1:{port}"
        return server
