// Runs the tests of a WebAssembly program (wasm32-wasip1) under Node, each in an instance of its own: nothing unwinds
// there, so a test that panics takes its instance along. Cargo's runner: `node .ci/wasi.mjs PROGRAM [--skip NAME]...`.
// A test that wants a thread or the system's clock is counted as left out.
import { closeSync, mkdtempSync, openSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { WASI } from 'node:wasi'

const [path, ...filters] = process.argv.slice(2)
const program = await WebAssembly.compile(readFileSync(path))
const folder = mkdtempSync(join(tmpdir(), 'wasi-'))
const output = join(folder, 'output')

// Node 20 crashes now and then where compiled code calls the functions of WASI directly, so it calls these.
function imports(wasi) {
    const wrapped = ([name, call]) => [name, (...args) => call(...args)]
    return { wasi_snapshot_preview1: Object.fromEntries(Object.entries(wasi.wasiImport).map(wrapped)) }
}

async function run(...args) {
    const out = openSync(output, 'w')
    const wasi = new WASI({ version: 'preview1', args: [path, ...args], returnOnExit: true, stdout: out, stderr: out })
    let status = 1
    try {
        status = wasi.start(await WebAssembly.instantiate(program, imports(wasi)))
    } catch (trap) {
        if (!(trap instanceof WebAssembly.RuntimeError)) throw trap
    } finally {
        closeSync(out)
    }
    return [status, readFileSync(output, 'utf8')]
}

const count = { passed: 0, failed: 0, 'left out': 0 }
const [, list] = await run('--list', '--format=terse', ...filters)
for (const line of list.split('\n').filter((line) => line.endsWith(': test'))) {
    const name = line.slice(0, -': test'.length)
    const [status, text] = await run(name, '--exact', '--nocapture')
    const ignored = / [1-9]\d* ignored;|kind: Unsupported|NoThreads|NoClock/.test(text)
    const outcome = ignored ? 'left out' : status === 0 ? 'passed' : 'failed'
    count[outcome]++
    if (outcome === 'failed') console.log(`${name} failed:\n${text}`)
}
rmSync(folder, { recursive: true })
console.log(`${path.split('/').pop()}: ${Object.entries(count).map(([what, n]) => `${n} ${what}`).join(', ')}`)
process.exit(count.failed || !count.passed ? 1 : 0)
