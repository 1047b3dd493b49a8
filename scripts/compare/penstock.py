"""Penstock itself, the release build: defaults, or one core with one shard."""

import json

from server import Server, run


class Penstock:
    protocol = "kafka"

    def __init__(self, binary, one_shard):
        self.binary = binary
        self.name = "penstock-1" if one_shard else "penstock"
        self.label = "Penstock, one core, one shard" if one_shard else "Penstock, default"
        self.durability = "flushed before the answer"
        self.durable = True
        self.flags = ["--cores", "1", "--shards", "1"] if one_shard else []
        self.version = "unknown"

    def install(self, _shelf):
        self.version = run([self.binary, "--version"], 30).split()[-1]

    def start(self, folder):
        ready = folder / "ready.json"
        server = Server(
            [self.binary, "serve", "--data", folder / "data", "--kafka", "127.0.0.1:0",
             "--http", "127.0.0.1:0", "--ready-file", ready, *self.flags], folder)
        server.wait_for(ready.exists, self.label)
        told = json.loads(ready.read_text())
        server.address, server.http = told["kafka"][0], told["http"]
        return server
