import { mkdtempSync, rmSync } from 'node:fs'
import { Processes } from '/work/main/bench/mail/processes.ts'

const p = new Processes('/work/main/bench/files/child.ts')
const dir = mkdtempSync('/tmp/fb-')
const tree = { tops: 5, subs: 20, files: +(process.argv[3] ?? 100), bytesMax: 4096 }
const what = process.argv[2]!
const flags = process.argv.includes('prof') ? ['--cpu-prof', '--cpu-prof-dir=/tmp/prof'] : []
try {
  for (const dirn of what === 'both' ? ['up', 'down'] : [what]) {
    for (const who of (process.argv[4] ?? 'limit,tidemark').split(',')) {
      const { ready: at, running } = await p.serve<any>(
        { do: 'drive', ...(dirn === 'down' ? { tree } : {}) },
        { msMax: 1e6 },
      )
      const home = `${dir}/${dirn}-${who}`
      await p.order({ do: 'set-up', home, at, ...(dirn === 'up' ? { tree } : {}) }, { msMax: 1e6 })
      const r =
        who === 'limit'
          ? await p.order({ do: 'limit', at, root: home + '/root', loop: dirn, tree }, { msMax: 1e6, flags })
          : await p.order(
              { do: 'sync', home, at, steps: [{ kind: 'sync' }, { kind: 'sync' }] },
              { msMax: 1e6, flags },
            )
      console.log(dirn, who, JSON.stringify(r))
      await running.stop()
    }
  }
} finally {
  await p.close()
  rmSync(dir, { recursive: true, force: true })
}
