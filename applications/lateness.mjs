// How late BullMQ runs delayed jobs on each server in turn:
// `node lateness.mjs [--jobs N] [--runs N] NAME=COMMAND …`, in a folder that has bullmq installed.
// A job is due when its delay has passed since it was added; its lateness is from then until the
// worker has it.

import { spawn } from 'node:child_process'
import { connect, createServer } from 'node:net'
import { basename } from 'node:path'
import { parseArgs } from 'node:util'
import { Queue, Worker } from 'bullmq'

const SHORTEST_MS = 500
const LONGEST_MS = 5000

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    jobs: { type: 'string', default: '2000' },
    runs: { type: 'string', default: '3' },
  },
})
const JOBS = Number(values.jobs)

const pause = (ms) => new Promise((done) => setTimeout(done, ms))

// The same numbers in each run.
function random(seed) {
  return () => {
    seed = (seed * 1664525 + 1013904223) % 2 ** 32
    return seed / 2 ** 32
  }
}

function freePort() {
  return new Promise((done) => {
    const server = createServer().listen(0, '127.0.0.1', () => {
      const { port } = server.address()
      server.close(() => done(port))
    })
  })
}

async function start(command) {
  const port = await freePort()
  const [program, ...args] = command.split(' ')
  args.push('--port', String(port))
  if (!basename(program).startsWith('tidewheel')) args.push('--save', '')
  const server = spawn(program, args, { stdio: 'ignore' })
  for (let tries = 0; ; tries += 1) {
    const connected = await new Promise((done) => {
      const socket = connect(port, '127.0.0.1', () => done(true)).on('error', () => done(false))
      socket.on('connect', () => socket.destroy())
    })
    if (connected) return { server, port }
    if (tries === 200) throw new Error(`${command} does not start`)
    await pause(20)
  }
}

async function lateness(port) {
  const connection = { host: '127.0.0.1', port, maxRetriesPerRequest: null }
  const queue = new Queue('late', { connection })
  const late = []
  let finish
  const finished = new Promise((done) => (finish = done))
  const note = async (job) => {
    late.push(Date.now() - (job.timestamp + job.opts.delay))
    if (late.length === JOBS) finish()
  }
  const worker = new Worker('late', note, { connection, concurrency: 50 })
  await worker.waitUntilReady()
  const next = random(1)
  const delay = () => SHORTEST_MS + Math.floor(next() * (LONGEST_MS - SHORTEST_MS))
  const jobs = Array.from({ length: JOBS }, (_, at) => ({
    name: 'job',
    data: { at },
    opts: { delay: delay() },
  }))
  await queue.addBulk(jobs)
  await finished
  await worker.close()
  await queue.close()
  return late.sort((a, b) => a - b)
}

console.log('| server | run | early | p50, ms | p99, ms | longest, ms |')
console.log('|---|---:|---:|---:|---:|---:|')
for (let run = 1; run <= Number(values.runs); run += 1) {
  for (const named of positionals) {
    const at = named.indexOf('=')
    const { server, port } = await start(named.slice(at + 1))
    const late = await lateness(port)
    server.kill()
    const quantile = (part) => late[Math.min(late.length - 1, Math.floor(late.length * part))]
    const early = late.filter((ms) => ms < 0).length
    const cells = [named.slice(0, at), run, early, quantile(0.5), quantile(0.99), late.at(-1)]
    console.log(`| ${cells.join(' | ')} |`)
  }
}
