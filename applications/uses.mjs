// One small real use of each Node application: `node uses.mjs NAME PORT`. Without a name it lists
// them. A use that does not hold throws.

import assert from 'node:assert/strict'
import { setTimeout as sleep } from 'node:timers/promises'

const [name, port = '6379'] = process.argv.slice(2)
const connection = { host: '127.0.0.1', port: Number(port) }
const uses = new Map()
const use = (name, what, run) => uses.set(name, [what, run])

async function eventually(holds, seconds = 15) {
  const end = Date.now() + seconds * 1000
  for (;;) {
    const found = await holds()
    if (found) return found
    assert(Date.now() < end, 'it did not come about in time')
    await sleep(20)
  }
}

async function ioredis(options = {}) {
  const { Redis } = await import('ioredis')
  return new Redis({ ...connection, ...options })
}

async function nodeRedis(options = {}) {
  const { createClient } = await import('redis')
  const client = createClient({ url: `redis://127.0.0.1:${port}`, ...options })
  client.on('error', () => {})
  await client.connect()
  return client
}

use('ioredis scripts', 'defineCommand, pipeline, a stream read that waits', async () => {
  const client = await ioredis()
  client.defineCommand('double', {
    numberOfKeys: 1,
    lua: "return redis.call('incrby', KEYS[1], ARGV[1] * 2)",
  })
  assert.equal(await client.double('n', 2), 4)
  const results = await client.pipeline().double('n', 1).get('n').exec()
  assert.deepEqual(results, [[null, 6], [null, '6']])
  const reader = await ioredis()
  const read = reader.xread('BLOCK', 5000, 'STREAMS', 's', '$')
  await sleep(100)
  await client.xadd('s', '*', 'a', '1')
  assert.deepEqual((await read)[0][1][0][1], ['a', '1'])
})

async function bullmq(options, process, run) {
  const { Queue, QueueEvents, Worker } = await import('bullmq')
  const queue = new Queue('q', { connection })
  const events = new QueueEvents('q', { connection })
  await events.waitUntilReady()
  const worker = new Worker('q', process, { connection, ...options })
  worker.on('error', () => {})
  try {
    await run(queue, events, worker)
  } finally {
    await worker.close(true)
    await events.close()
    await queue.close()
  }
}

use('BullMQ', 'jobs, delay, retries with back-off, priorities, events', () => {
  const runs = []
  const process = async (job) => {
    runs.push(job.name)
    if (job.name === 'flaky' && job.attemptsMade < 2) throw new Error('once more')
    return job.data.n * 2
  }
  return bullmq({}, process, async (queue, events) => {
    const job = await queue.add('plain', { n: 2 })
    assert.equal(await job.waitUntilFinished(events, 10_000), 4)
    const began = Date.now()
    const later = await queue.add('later', { n: 3 }, { delay: 500 })
    assert.equal(await later.waitUntilFinished(events, 10_000), 6)
    assert(Date.now() - began >= 500)
    const backoff = { type: 'exponential', delay: 50 }
    const flaky = await queue.add('flaky', { n: 4 }, { attempts: 3, backoff })
    assert.equal(await flaky.waitUntilFinished(events, 10_000), 8)
    assert.equal(runs.filter((name) => name === 'flaky').length, 3)
    const first = await queue.add('first', { n: 1 }, { priority: 1 })
    assert.equal(await first.waitUntilFinished(events, 10_000), 2)
    assert.equal((await queue.getJobCounts('completed')).completed, 4)
  })
})

use('BullMQ rate limit', 'three a second at most', () => {
  const done = []
  const limiter = { max: 3, duration: 1000 }
  return bullmq({ limiter }, async () => done.push(Date.now()), async (queue) => {
    await queue.addBulk(Array.from({ length: 7 }, (_, n) => ({ name: 'job', data: { n } })))
    await eventually(() => done.length === 7)
    assert(done[6] - done[0] >= 1900, `${done[6] - done[0]} ms`)
  })
})

use('BullMQ repeat', 'a job scheduler comes three times', () => {
  let runs = 0
  return bullmq({}, async () => (runs += 1), async (queue) => {
    await queue.upsertJobScheduler('tick', { every: 300 }, { name: 'tick' })
    await eventually(() => runs >= 3)
    assert.equal(await queue.removeJobScheduler('tick'), true)
  })
})

use('BullMQ flows', 'a parent waits for its children', () => {
  const order = []
  const process = async (job) => {
    order.push(job.name)
    return job.name === 'parent' ? Object.values(await job.getChildrenValues()).sort() : job.data
  }
  return bullmq({}, process, async (queue, events) => {
    const { FlowProducer } = await import('bullmq')
    const flow = new FlowProducer({ connection })
    const child = (data) => ({ name: 'child', queueName: 'q', data })
    const tree = await flow.add({ name: 'parent', queueName: 'q', children: [child(1), child(2)] })
    assert.deepEqual(await tree.job.waitUntilFinished(events, 10_000), [1, 2])
    assert.equal(order.at(-1), 'parent')
    await flow.close()
  })
})

use('BullMQ stalled', 'the job of a worker that died runs again', async () => {
  const { Queue, QueueEvents, Worker } = await import('bullmq')
  const queue = new Queue('q', { connection })
  const events = new QueueEvents('q', { connection })
  await events.waitUntilReady()
  const options = { connection, lockDuration: 500, stalledInterval: 300 }
  const stuck = new Worker('q', () => new Promise(() => {}), { ...options, skipLockRenewal: true })
  stuck.on('error', () => {})
  const job = await queue.add('job', {})
  await eventually(async () => (await queue.getActiveCount()) === 1)
  await stuck.close(true)
  const worker = new Worker('q', async () => 'done', options)
  assert.equal(await job.waitUntilFinished(events, 15_000), 'done')
  await worker.close()
  await events.close()
  await queue.close()
})

use('Bull', 'jobs, delay, retries, repeat', async () => {
  const { default: Bull } = await import('bull')
  const queue = new Bull('q', { redis: connection })
  queue.process('*', async (job) => {
    if (job.name === 'flaky' && job.attemptsMade < 2) throw new Error('once more')
    return job.data.n * 2
  })
  const plain = await queue.add('plain', { n: 2 })
  assert.equal(await plain.finished(), 4)
  const later = await queue.add('later', { n: 3 }, { delay: 500 })
  assert.equal(await later.finished(), 6)
  const flaky = await queue.add('flaky', { n: 4 }, { attempts: 3 })
  assert.equal(await flaky.finished(), 8)
  await queue.add('tick', { n: 1 }, { repeat: { every: 300 } })
  await eventually(async () => (await queue.getCompletedCount()) >= 5)
  await queue.close()
})

use('bee-queue', 'jobs, delay, retries, events', async () => {
  const { default: Queue } = await import('bee-queue')
  const queue = new Queue('q', { redis: connection, activateDelayedJobs: true })
  let runs = 0
  queue.process(async (job) => {
    runs += 1
    if (job.data.flaky && job.options.retries === 2) throw new Error('once more')
    return job.data.n * 2
  })
  const finished = (job) => new Promise((resolve) => job.on('succeeded', resolve))
  const plain = queue.createJob({ n: 2 })
  const result = finished(plain)
  await plain.save()
  assert.equal(await result, 4)
  const later = queue.createJob({ n: 3 }).delayUntil(Date.now() + 500)
  const laterResult = finished(later)
  await later.save()
  assert.equal(await laterResult, 6)
  const flaky = queue.createJob({ n: 4, flaky: true }).retries(2)
  const flakyResult = finished(flaky)
  await flaky.save()
  assert.equal(await flakyResult, 8)
  assert.equal(runs, 4)
  await queue.close()
})

use('rsmq', 'send, delay, receive, visibility, delete', async () => {
  const { default: RSMQ } = await import('rsmq')
  const queue = new RSMQ({ host: connection.host, port: connection.port, ns: 'q' })
  await eventually(() => queue.connected)
  await queue.createQueueAsync({ qname: 'q', vt: 1 })
  await queue.sendMessageAsync({ qname: 'q', message: 'a' })
  const got = await queue.receiveMessageAsync({ qname: 'q' })
  assert.equal(got.message, 'a')
  assert.equal((await queue.receiveMessageAsync({ qname: 'q' })).id, undefined)
  await eventually(async () => (await queue.receiveMessageAsync({ qname: 'q' })).id === got.id)
  assert.equal(await queue.deleteMessageAsync({ qname: 'q', id: got.id }), 1)
  queue.quit(() => {})
})

use('rate-limit-redis', 'express: two of three requests', async () => {
  const { default: express } = await import('express')
  const { rateLimit } = await import('express-rate-limit')
  const { RedisStore } = await import('rate-limit-redis')
  const client = await nodeRedis()
  const app = express()
  const store = new RedisStore({ sendCommand: (...args) => client.sendCommand(args) })
  app.use(rateLimit({ windowMs: 60_000, limit: 2, store }))
  app.get('/', (_, response) => response.send('ok'))
  assert.deepEqual(await threeRequests(app.listen(0)), [200, 200, 429])
})

use('@fastify/rate-limit', 'two of three requests', async () => {
  const { default: fastify } = await import('fastify')
  const { default: limit } = await import('@fastify/rate-limit')
  const app = fastify()
  await app.register(limit, { max: 2, timeWindow: '1 minute', redis: await ioredis() })
  app.get('/', async () => 'ok')
  await app.listen({ port: 0 })
  assert.deepEqual(await threeRequests(app.server), [200, 200, 429])
})

async function threeRequests(server) {
  await eventually(() => server.address())
  const statuses = []
  for (let i = 0; i < 3; i++) {
    statuses.push((await fetch(`http://127.0.0.1:${server.address().port}/`)).status)
  }
  return statuses
}

use('rate-limiter-flexible', 'consume, block, reward, burst', async () => {
  const { RateLimiterRedis } = await import('rate-limiter-flexible')
  const limiter = new RateLimiterRedis({
    storeClient: await ioredis({ enableOfflineQueue: true }),
    points: 2,
    duration: 60,
  })
  assert.equal((await limiter.consume('me')).remainingPoints, 1)
  await limiter.consume('me')
  const refused = await limiter.consume('me').catch((e) => e)
  assert(refused.msBeforeNext > 50_000, refused)
  await limiter.reward('me', 2)
  await limiter.consume('me')
  await limiter.block('me', 5)
  assert((await limiter.consume('me').catch((e) => e)).msBeforeNext <= 5000)
})

use('redis-semaphore', 'mutex, semaphore, multi-semaphore', async () => {
  const { Mutex, MultiSemaphore, Semaphore } = await import('redis-semaphore')
  const client = await ioredis()
  const short = { acquireTimeout: 100, lockTimeout: 5000 }
  const mutex = new Mutex(client, 'm', short)
  await mutex.acquire()
  assert.equal(await new Mutex(client, 'm', short).tryAcquire(), false)
  await mutex.release()
  const places = [1, 2, 3].map(() => new Semaphore(client, 's', 2, short))
  const got = []
  for (const place of places) got.push(await place.tryAcquire())
  assert.deepEqual(got, [true, true, false])
  await places[0].release()
  assert.equal(await places[2].tryAcquire(), true)
  await places[1].release()
  await places[2].release()
  const many = new MultiSemaphore(client, 'x', 3, 2, short)
  await many.acquire()
  assert.equal(await new MultiSemaphore(client, 'x', 3, 2, short).tryAcquire(), false)
  await many.release()
})

use('redlock', 'lock, refuse, extend, unlock', async () => {
  const { default: Redlock } = await import('redlock')
  const manager = new Redlock([await ioredis()], { retryCount: 0 })
  const lock = await manager.lock('l', 5000)
  await assert.rejects(manager.lock('l', 5000))
  await (await lock.extend(5000)).unlock()
  await (await manager.lock('l', 5000)).unlock()
})

use('node-resque', 'enqueue, enqueueIn, a lock of jobs', async () => {
  const { Queue, Scheduler, Worker } = await import('node-resque')
  const runs = []
  const jobs = { add: { perform: async (a, b) => (runs.push(a + b), a + b) } }
  const options = { redis: null, connection: { pkg: 'ioredis', ...connection, database: 0 } }
  const queue = new Queue(options, jobs)
  await queue.connect()
  const worker = new Worker({ ...options, queues: ['q'], timeout: 50 }, jobs)
  await worker.connect()
  worker.start()
  const scheduler = new Scheduler({ ...options, timeout: 100 })
  await scheduler.connect()
  scheduler.start()
  await queue.enqueue('q', 'add', [1, 2])
  await eventually(() => runs.includes(3))
  await queue.enqueueIn(1000, 'q', 'add', [5, 5])
  await eventually(() => runs.includes(10))
  await scheduler.end()
  await worker.end()
  await queue.end()
})

use('node-redis client-side cache', 'a value that others change is read anew', async () => {
  const near = await nodeRedis({ RESP: 3, clientSideCache: { ttl: 0, maxEntries: 0 } })
  const other = await nodeRedis()
  await other.set('k', '1')
  assert.equal(await near.get('k'), '1')
  assert.equal(await near.get('k'), '1')
  await other.set('k', '2')
  await eventually(async () => (await near.get('k')) === '2')
})

use('socket.io adapters', 'two servers: plain and sharded', async () => {
  const { Server } = await import('socket.io')
  const { io } = await import('socket.io-client')
  const { createAdapter, createShardedAdapter } = await import('@socket.io/redis-adapter')
  const make = { plain: createAdapter, sharded: createShardedAdapter }
  for (const [kind, create] of Object.entries(make)) {
    const servers = []
    for (let i = 0; i < 2; i++) {
      const adapter = create(await nodeRedis(), await nodeRedis())
      const server = new Server(0, { adapter })
      server.on('connection', (socket) => socket.join('room'))
      servers.push(server)
    }
    const clients = servers.map((server) => io(`http://127.0.0.1:${server.httpServer.address().port}`))
    const got = clients.map((client) => new Promise((resolve) => client.on('hi', resolve)))
    await eventually(async () => (await servers[0].in('room').fetchSockets()).length === 2)
    servers[0].to('room').emit('hi', kind)
    assert.deepEqual(await Promise.all(got), [kind, kind])
    clients.forEach((client) => client.close())
    await Promise.all(servers.map((server) => server.close()))
  }
})

if (!name) {
  for (const [name, [what]] of uses) console.log(`${name}\t${what}`)
} else {
  process.on('unhandledRejection', (error) => {
    console.error(error)
    process.exit(1)
  })
  await uses.get(name)[1]()
  process.exit(0)
}
