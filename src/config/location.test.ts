import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { UsageError } from '../base/errors.ts'
import { type LocationInput, locateFile, locateHome, locateLedger } from './location.ts'

function input(part: Partial<LocationInput>): LocationInput {
  return { env: {}, flags: {}, userHome: '/home/ann', cwd: '/srv', ...part }
}

describe('the home folder', () => {
  test('is the flag, then the variable, then the XDG data folder', () => {
    const env = { TIDEMARK_HOME: '/env', XDG_DATA_HOME: '/xdg' }
    assert.deepEqual(locateHome(input({ env, flags: { home: '/flag' } })), {
      path: '/flag',
      origin: { kind: 'flag', name: '--home' },
    })
    assert.deepEqual(locateHome(input({ env })), {
      path: '/env',
      origin: { kind: 'env', name: 'TIDEMARK_HOME' },
    })
    assert.equal(locateHome(input({ env: { XDG_DATA_HOME: '/xdg' } })).path, '/xdg/tidemark')
    assert.equal(locateHome(input({})).path, '/home/ann/.local/share/tidemark')
  })

  test('ignores a relative XDG folder and empty variables', () => {
    const env = { XDG_DATA_HOME: 'data', TIDEMARK_HOME: '' }
    assert.equal(locateHome(input({ env })).path, '/home/ann/.local/share/tidemark')
  })

  test('is made absolute, also from a tilde', () => {
    assert.equal(locateHome(input({ flags: { home: 'tide' } })).path, '/srv/tide')
    assert.equal(locateHome(input({ env: { TIDEMARK_HOME: '~/tide' } })).path, '/home/ann/tide')
  })

  test('is not an empty flag', () => {
    assert.throws(() => locateHome(input({ flags: { home: '' } })), UsageError)
  })
})

test('the configuration file is the flag, then the variable, then config.toml in the home folder', () => {
  const env = { TIDEMARK_CONFIG: '/env.toml' }
  assert.equal(locateFile(input({ env, flags: { config: '/flag.toml' } }), '/home').path, '/flag.toml')
  assert.equal(locateFile(input({ env }), '/home').path, '/env.toml')
  assert.equal(locateFile(input({}), '/home').path, '/home/config.toml')
})

test('a ledger is a file inside the home folder, a file elsewhere, or a server', () => {
  assert.deepEqual(locateLedger('sqlite', '/h'), { database: 'sqlite', path: '/h/ledger.db' })
  assert.deepEqual(locateLedger('sqlite:a/b.db', '/h'), { database: 'sqlite', path: '/h/a/b.db' })
  assert.deepEqual(locateLedger('sqlite:/x/b.db', '/h'), { database: 'sqlite', path: '/x/b.db' })
  const url = 'postgres://ann@db/tide'
  assert.deepEqual(locateLedger(url, '/h'), { database: 'postgres', url })
  for (const url of ['libsql://a.turso.io', 'http://127.0.0.1:8080', 'https://a.example.com'])
    assert.deepEqual(locateLedger(url, '/h'), { database: 'libsql', url })
})
