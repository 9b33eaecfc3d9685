import assert from 'node:assert/strict'
import { lstatSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import type { LoadedConfig } from '../../config/load.ts'
import { serverToken } from './token.ts'

test('a token is made in a file of its own, whatever others have put into an open home', async () => {
  const home = mkdtempSync(join(tmpdir(), 'tidemark-token-'))
  try {
    const theirs = join(home, 'theirs')
    writeFileSync(theirs, '', { mode: 0o666 })
    symlinkSync(theirs, join(home, `server.token.${process.pid}`))
    const loaded = { values: { server: {} }, home: { path: home } } as unknown as LoadedConfig
    const token = await serverToken(loaded)
    const { mode, nlink } = lstatSync(join(home, 'server.token'))
    assert.deepEqual([mode & 0o170777, nlink], [0o100600, 1])
    assert.equal(readFileSync(theirs, 'utf8'), '')
    assert.equal(await serverToken(loaded), token)
  } finally {
    rmSync(home, { recursive: true })
  }
})
