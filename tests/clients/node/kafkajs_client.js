// KafkaJS: all records out and back, idempotent and not, plain and gzip (the codec it has built
// in). Its consumer knows only groups, which the broker does not serve yet, so reading goes
// through the same cluster object its consumer uses: leaders from metadata, then broker.fetch.
//
// Usage: node kafkajs_client.js BOOTSTRAP RECORDS

const assert = require('assert')
const crypto = require('crypto')
const { Kafka, CompressionTypes, logLevel } = require('kafkajs')

const PARTITIONS = 16
const SEND = 8000
const SPAN = 500
const STALL_MS = 60000

const words = Array.from({ length: 61 }, (_, n) =>
  Array.from({ length: 70 }, (_, m) => String.fromCharCode(97 + ((n * 7 + m * m) % 26))).join(''))

// Record i goes to partition i mod 16 and must come back at offset i div 16.
class Records {
  constructor(count) {
    this.count = count
    this.firstMs = Date.now() - count
  }

  message(i) {
    const odd = i % 1000
    const number = String(i).padStart(9, '0')
    return {
      partition: i % PARTITIONS,
      key: odd === 999 ? null : Buffer.from(`key-${i % 5003}`),
      value: odd === 998 ? null : Buffer.from(odd === 997 ? '' : `${number} ${words[i % 61]}`),
      headers: odd === 996 ? {} : { n: String(i) },
      timestamp: String(this.firstMs + i),
    }
  }

  inPartition(partition) {
    return Math.floor((this.count - partition + PARTITIONS - 1) / PARTITIONS)
  }

  firstAtOrAfter(i, partition) {
    return Math.max(0, Math.floor((i - partition + PARTITIONS - 1) / PARTITIONS))
  }
}

function same(left, right) {
  return left === null || right === null ? left === right : left.equals(right)
}

function check(records, partition, offset, found) {
  const sent = records.message(offset * PARTITIONS + partition)
  const place = `partition ${partition} offset ${offset}`
  assert.strictEqual(Number(found.offset), offset, `${place}: wrong offset`)
  assert.ok(same(found.value, sent.value), `${place}: value ${found.value}, not ${sent.value}`)
  assert.ok(same(found.key, sent.key), `${place}: key ${found.key}, not ${sent.key}`)
  assert.strictEqual(found.timestamp, sent.timestamp, `${place}: timestamp`)
  const names = Object.keys(found.headers)
  assert.deepStrictEqual(names, Object.keys(sent.headers), `${place}: headers`)
  for (const name of names) {
    assert.strictEqual(found.headers[name].toString(), sent.headers[name], `${place}: ${name}`)
  }
}

async function produce(kafka, topic, records, compression, idempotent) {
  const producer = kafka.producer({ idempotent, maxInFlightRequests: idempotent ? 1 : 5 })
  await producer.connect()
  for (let first = 0; first < records.count; first += SEND) {
    const messages = []
    for (let i = first; i < Math.min(first + SEND, records.count); i += 1) {
      messages.push(records.message(i))
    }
    const answers = await producer.send({ topic, messages, acks: -1, compression })
    for (const answer of answers) {
      const expected = records.firstAtOrAfter(first, answer.partition)
      assert.strictEqual(Number(answer.baseOffset), expected, `base of ${answer.partition}`)
    }
  }
  await producer.disconnect()
}

async function clusterOf(kafka, topic) {
  const symbols = Object.getOwnPropertySymbols(kafka)
  const create = symbols.find(symbol => symbol.description === 'private:Kafka:createCluster')
  const cluster = kafka[create]({ allowAutoTopicCreation: false, isolationLevel: 1 })
  await cluster.connect()
  await cluster.addTargetTopic(topic)
  return cluster
}

// Reads every partition from its start to its wanted end, all leaders at once.
async function read(cluster, topic, records, starts, wanted) {
  const leaders = cluster.findLeaderForPartitions(topic, [...starts.keys()])
  let seen = 0
  const readers = Object.entries(leaders).map(async ([nodeId, partitions]) => {
    const broker = await cluster.findBroker({ nodeId })
    const next = new Map(partitions.map(partition => [partition, starts.get(partition)]))
    let deadline = Date.now() + STALL_MS
    while (partitions.some(partition => next.get(partition) < wanted.get(partition))) {
      assert.ok(Date.now() < deadline, `no record for a minute, stands at ${[...next]}`)
      const open = partitions.filter(partition => next.get(partition) < wanted.get(partition))
      const { responses } = await broker.fetch({
        replicaId: -1,
        isolationLevel: 1,
        maxWaitTime: 100,
        minBytes: 1,
        maxBytes: 8 << 20,
        topics: [{
          topic,
          partitions: open.map(partition => ({
            partition, fetchOffset: String(next.get(partition)), maxBytes: 1 << 20,
          })),
        }],
      })
      for (const { partition, errorCode, messages } of responses[0].partitions) {
        assert.strictEqual(errorCode, 0)
        for (const message of messages) {
          const offset = next.get(partition)
          // A fetch inside a batch gives the whole batch.
          if (Number(message.offset) < offset || offset >= wanted.get(partition)) continue
          check(records, partition, offset, message)
          next.set(partition, offset + 1)
          seen += 1
          deadline = Date.now() + STALL_MS
        }
      }
    }
  })
  await Promise.all(readers)
  return seen
}

async function readFrom(cluster, topic, records, starts) {
  const wanted = new Map()
  for (const [partition, start] of starts) {
    wanted.set(partition, Math.min(start + SPAN, records.inPartition(partition)))
  }
  await read(cluster, topic, records, starts, wanted)
}

async function run(bootstrap, records, compression, idempotent) {
  const title = `kafkajs ${compression === CompressionTypes.GZIP ? 'gzip' : 'none'}` +
    (idempotent ? ' idempotent' : '')
  const laps = []
  let last = Date.now()
  const lap = what => {
    laps.push(`${what} ${((Date.now() - last) / 1000).toFixed(1)} s`)
    last = Date.now()
  }
  const kafka = new Kafka({ brokers: bootstrap.split(','), logLevel: logLevel.ERROR, clientId: 'suite' })
  const topic = `kafkajs-${crypto.randomUUID().slice(0, 8)}`
  const admin = kafka.admin()
  await admin.connect()
  const topics = [{ topic, numPartitions: PARTITIONS, replicationFactor: 1 }]
  assert.ok(await admin.createTopics({ topics, waitForLeaders: true }))
  await produce(kafka, topic, records, compression, idempotent)
  lap('produced')

  const all = Array.from({ length: PARTITIONS }, (_, partition) => partition)
  const cluster = await clusterOf(kafka, topic)
  const ends = new Map(all.map(partition => [partition, records.inPartition(partition)]))
  const seen = await read(cluster, topic, records, new Map(all.map(p => [p, 0])), ends)
  assert.strictEqual(seen, records.count)
  lap('read')

  const middle = Math.floor(records.count / 3)
  const starts = new Map(all.map(p => [p, records.firstAtOrAfter(middle, p)]))
  await readFrom(cluster, topic, records, starts)
  lap('by offset')

  const places = [0, middle, records.count - SPAN * PARTITIONS].filter(i => i >= 0)
  for (const i of places) {
    const answers = await admin.fetchTopicOffsetsByTimestamp(topic, records.firstMs + i)
    for (const { partition, offset } of answers) {
      assert.strictEqual(Number(offset), records.firstAtOrAfter(i, partition), `time of ${i}`)
    }
    const found = new Map(answers.map(({ partition, offset }) => [partition, Number(offset)]))
    await readFrom(cluster, topic, records, found)
  }
  for (const { partition, low, high } of await admin.fetchTopicOffsets(topic)) {
    assert.deepStrictEqual([Number(low), Number(high)], [0, records.inPartition(partition)])
  }
  lap('by time')

  await cluster.disconnect()
  await admin.deleteTopics({ topics: [topic] })
  await admin.disconnect()
  console.log(`${title}: ${records.count} records, ${laps.join(', ')}: ok`)
}

async function main() {
  const [bootstrap, count] = [process.argv[2], Number(process.argv[3])]
  await run(bootstrap, new Records(count), CompressionTypes.None, false)
  const few = Math.min(count, 50000)
  await run(bootstrap, new Records(few), CompressionTypes.GZIP, false)
  await run(bootstrap, new Records(few), CompressionTypes.None, true)
}

main().catch(error => {
  console.error(error)
  process.exit(1)
})
