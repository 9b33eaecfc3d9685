import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { inspect } from 'node:util'
import { catalog } from '../apps/catalog.ts'
import { UsageError } from '../base/errors.ts'
import { type LoadInput, loadConfig } from './load.ts'

const FILE = '/home/ann/.local/share/tidemark/config.toml'

function load(toml: string | undefined, part: Partial<LoadInput> = {}) {
  const readFile = (): string => {
    if (toml === undefined) throw Object.assign(new Error('no such file'), { code: 'ENOENT' })
    return toml
  }
  return loadConfig({ catalog, env: {}, userHome: '/home/ann', cwd: '/srv', readFile, ...part })
}

/** The lines of the message with which the configuration is refused. */
function refusal(toml: string | undefined, part: Partial<LoadInput> = {}): string[] {
  try {
    load(toml, part)
  } catch (error) {
    assert.ok(error instanceof UsageError, String(error))
    return error.message.split('\n')
  }
  assert.fail('the configuration was accepted')
}

describe('without a file', () => {
  test('the defaults hold, and every value says so', () => {
    const { values, origins, file } = load(undefined)
    assert.equal(file.exists, false)
    assert.deepEqual(values, {
      assist: {
        poll_minutes: 15,
        full_scan_minutes: 60,
        scan_days: 10,
        backlog_max: 50,
        attempts: 3,
        model_wait_minutes: 10,
        follow_up_days: 3,
        follow_up_hour: 7,
        briefing_hour: 6,
        watch_hours: 24,
        push_keys_url: 'https://www.googleapis.com/oauth2/v3/certs',
        patience_minutes: 10,
      },
      models: {
        provider: 'off',
        json: 'schema',
        input_price: 0,
        output_price: 0,
        prices: [],
        day_cost: 1,
        day_tokens: 2_000_000,
        timeout_seconds: 90,
        max_tokens: 2_048,
        keep_prompts: 'no',
        keep_calls_days: 90,
      },
      ledger: { url: 'sqlite', prune_after_days: 7, failed_after_days: 30, audit_after_days: 365 },
      engine: {
        workers: 16,
        window: 10_000,
        lease_seconds: 30,
        bulk_bytes: 10_000_000,
      },
      log: { level: 'info', format: 'pretty' },
      alerts: {
        bad_warn: 0.002,
        bad_critical: 0.01,
        bad_per_hour_critical: 200,
        throttled_minutes: 10,
        heartbeat_minutes: 10,
        stale_minutes: 30,
        desktop: 'auto',
      },
      bandwidth: { upload: null, download: null, combined: null, timetable: [] },
      ingest: {
        workers_max: 8,
        commit_seconds: 60,
        visibility_seconds: 180,
        extension_seconds: 60,
        margin_seconds: 4,
        receive_wait_seconds: 20,
        batch_bytes: 5_000_000,
        batch_records: 1_000,
        record_bytes_max: 1_000_000,
        expansion_max: 1_000,
        bad_records_max: 10_000,
        on_their_way_max: 1_000,
        unparsed_max: 1_000,
        window_days: 14,
        patience_minutes: 10,
      },
      search: {
        embedding: 'builtin',
        dims: 1_536,
        batch: 64,
        threads: 1,
        price: 0,
        budget: 0,
      },
      gmail: {
        units_per_minute: 6_000,
        price_of_get: 20,
        requests_per_second_start: 4,
        requests_per_second_max: 16,
        workers_start: 8,
        workers_max: 32,
        api_url: 'https://gmail.googleapis.com',
        auth_url: 'https://accounts.google.com/o/oauth2/v2/auth',
        token_url: 'https://oauth2.googleapis.com/token',
        revoke_url: 'https://oauth2.googleapis.com/revoke',
      },
      mail: {
        slice: 'auto',
        batch: 300,
        shard_by: 'year',
        shard_max: 4_000_000_000,
        poll_minutes: 5,
        patience_minutes: 10,
        metadata_max: 1_000_000_000,
        index: 'on',
      },
      onedrive: {
        requests_per_second_start: 100,
        requests_per_second_max: 200,
        api_url: 'https://graph.microsoft.com/v1.0',
        auth_url: 'https://login.microsoftonline.com/common/oauth2/v2.0/authorize',
        token_url: 'https://login.microsoftonline.com/common/oauth2/v2.0/token',
        device_url: 'https://login.microsoftonline.com/common/oauth2/v2.0/devicecode',
      },
      files: {
        parallel_downloads: 8,
        parallel_uploads: 8,
        parallel_checkers: 8,
        chunk_size: 10_485_760,
        disk_reserve: 1_000_000_000,
        trash_days: 30,
        poll_seconds: 60,
        scan_minutes: 60,
        debounce_ms: 2_000,
        patience_minutes: 10,
        index: 'on',
        allowed_roots: [],
      },
      google_drive: {
        units_per_minute: 325_000,
        workers_max: 8,
        api_url: 'https://www.googleapis.com',
        auth_url: 'https://accounts.google.com/o/oauth2/v2/auth',
        token_url: 'https://oauth2.googleapis.com/token',
        revoke_url: 'https://oauth2.googleapis.com/revoke',
      },
      drive: {
        poll_minutes: 5,
        folder_check_minutes: 15,
        relist_hours: 24,
        document_max: 100_000_000,
        patience_minutes: 10,
      },
      server: { host: '127.0.0.1', port: 4180, allowed_hosts: [], mcp_write: false },
    })
    assert.equal(origins.size, 139)
    assert.ok([...origins.values()].every(({ kind }) => kind === 'default'))
  })

  test('a file that was asked for by name is missed', () => {
    assert.match(
      refusal(undefined, { flags: { config: 'x.toml' } })[0]!,
      /\/srv\/x\.toml: there is no such file/,
    )
  })
})

describe('a value', () => {
  const toml = '[engine]\nworkers = 2\nwindow = 200\nlease_seconds = 45\n'
  const env = { TIDEMARK_ENGINE_WINDOW: '300', TIDEMARK_ENGINE_WORKERS: '4' }
  const overrides = [{ key: 'engine.workers', value: 8, flag: '--workers' }]

  test('comes from the flag, then the variable, then the file, then the default, and says from which', () => {
    const { values, origins } = load(toml, { env, overrides })
    const { workers, window, lease_seconds, bulk_bytes } = values.engine
    assert.deepEqual([workers, window, lease_seconds, bulk_bytes], [8, 300, 45, 10_000_000])
    assert.deepEqual(origins.get('engine.workers'), { kind: 'flag', name: '--workers' })
    assert.deepEqual(origins.get('engine.window'), { kind: 'env', name: 'TIDEMARK_ENGINE_WINDOW' })
    assert.deepEqual(origins.get('engine.lease_seconds'), { kind: 'file', path: FILE, line: 4 })
    assert.deepEqual(origins.get('engine.bulk_bytes'), { kind: 'default' })
  })

  test('of a size, a rate or a timetable is read from text, in the file and in variables', () => {
    const { values } = load(
      '[engine]\nbulk_bytes = "20MiB"\n[[bandwidth.timetable]]\nfrom = "22:00"\nto = "06:00"\nupload = "unlimited"\ndays = ["sat"]',
      { env: { TIDEMARK_BANDWIDTH_UPLOAD: '10MB/s' } },
    )
    assert.equal(values.engine.bulk_bytes, 20 * 2 ** 20)
    assert.equal(values.bandwidth.upload, 10_000_000)
    assert.deepEqual(values.bandwidth.timetable, [
      { from: '22:00', to: '06:00', upload: null, days: ['sat'] },
    ])
    const fromEnv = load('', {
      env: { TIDEMARK_BANDWIDTH_TIMETABLE: '[{ from = "08:00", to = "18:00", combined = 5000 }]' },
    })
    assert.deepEqual(fromEnv.values.bandwidth.timetable, [{ from: '08:00', to: '18:00', combined: 5000 }])
  })

  test('of a switch is true or false, in the file and in variables', () => {
    assert.equal(load('[server]\nmcp_write = true').values.server.mcp_write, true)
    const { values } = load('[server]\nmcp_write = true', { env: { TIDEMARK_SERVER_MCP_WRITE: 'false' } })
    assert.equal(values.server.mcp_write, false)
    assert.deepEqual(refusal('[server]\nmcp_write = "yes"'), [
      `${FILE}:2: server.mcp_write is "yes", but it must be true or false`,
    ])
  })

  test('that is empty in the environment is not set', () => {
    assert.equal(load(toml, { env: { TIDEMARK_ENGINE_WORKERS: '' } }).values.engine.workers, 2)
  })
})

describe('an unknown name', () => {
  test('in a section is answered with its line and the nearest key', () => {
    assert.deepEqual(refusal('[engine]\n\nworker = 2'), [
      `${FILE}:3: unknown key engine.worker; did you mean engine.workers?`,
    ])
  })

  test('of a section is answered with the nearest section', () => {
    assert.deepEqual(refusal('[engin]\nworkers = 2'), [`${FILE}:1: unknown key engin; did you mean engine?`])
  })

  test('in the wrong section is answered with the right one', () => {
    assert.deepEqual(refusal('[log]\nworkers = 2'), [
      `${FILE}:2: unknown key log.workers; did you mean engine.workers?`,
    ])
    assert.deepEqual(refusal('workers = 2'), [`${FILE}:1: unknown key workers; did you mean engine.workers?`])
  })

  test('that resembles nothing is answered with what there is', () => {
    assert.deepEqual(refusal('[log]\ncolour = 2'), [
      `${FILE}:2: unknown key log.colour; known are level, format`,
    ])
  })

  test('inside a timetable is answered too', () => {
    const [first] = refusal('[[bandwidth.timetable]]\nfrom = "08:00"\nto = "09:00"\nuplod = "1MB/s"')
    assert.equal(
      first,
      `${FILE}:4: unknown key bandwidth.timetable[0].uplod; did you mean bandwidth.timetable[0].upload?`,
    )
  })

  test('of a variable is answered with the nearest variable', () => {
    assert.deepEqual(refusal('', { env: { TIDEMARK_ENGINE_WORKRES: '8', TIDEMARK_FOO: '1' } }), [
      'environment variable TIDEMARK_ENGINE_WORKRES: unknown; did you mean TIDEMARK_ENGINE_WORKERS?',
      'environment variable TIDEMARK_FOO: unknown; no setting has this name',
    ])
  })

  test('of a variable is none of ours when it belongs to the home folder, the tests or others', () => {
    const env = { TIDEMARK_HOME: '/h', TIDEMARK_CONFIG: '/c', TIDEMARK_TEST_PG: 'x', TIDE: 'x', PATH: '/bin' }
    assert.equal(load('', { env }).home.path, '/h')
  })
})

describe('a wrong value', () => {
  const wrong: [what: string, toml: string, message: string][] = [
    [
      'type',
      '[engine]\nworkers = "many"',
      `${FILE}:2: engine.workers is "many", but it must be a whole number from 1 to 1024`,
    ],
    [
      'range',
      '[engine]\nworkers = 0',
      `${FILE}:2: engine.workers is 0, but it must be a whole number from 1 to 1024`,
    ],
    [
      'fraction',
      '[engine]\nlease_seconds = 5.5',
      `${FILE}:2: engine.lease_seconds is 5.5, but it must be a whole number from 5 to 3600`,
    ],
    [
      'infinity',
      '[engine]\nlease_seconds = inf',
      `${FILE}:2: engine.lease_seconds is Infinity, but it must be a whole number from 5 to 3600`,
    ],
    [
      'share',
      '[alerts]\nbad_warn = 2',
      `${FILE}:2: alerts.bad_warn is 2, but it must be a share from 0 to 1, such as 0.01`,
    ],
    [
      'choice',
      '[log]\nlevel = "loud"',
      `${FILE}:2: log.level is "loud", but it must be one of "trace", "debug", "info", "warn", "error"`,
    ],
    [
      'size',
      '[engine]\nbulk_bytes = "big"',
      `${FILE}:2: engine.bulk_bytes is "big", but it must be a size such as "10MB" or "512KiB"`,
    ],
    [
      'rate',
      '[bandwidth]\nupload = true',
      `${FILE}:2: bandwidth.upload is true, but it must be a rate such as "10MB/s" or "100Mbit/s", or "unlimited"`,
    ],
    ['section', 'log = 3', `${FILE}:1: log is 3, but it must be a table of settings: [log]`],
    [
      'time',
      '[[bandwidth.timetable]]\nfrom = "8:00"\nto = "09:00"',
      `${FILE}:2: bandwidth.timetable[0].from is "8:00", but it must be a time of day such as "08:00"`,
    ],
    [
      'missing time',
      '[[bandwidth.timetable]]\nfrom = "08:00"',
      `${FILE}:1: bandwidth.timetable[0].to is missing, but it must be a time of day such as "08:00"`,
    ],
    [
      'pair',
      '[alerts]\nbad_warn = 0.5',
      `${FILE}:2: alerts.bad_warn is 0.5, but it must not be above alerts.bad_critical, 0.01`,
    ],
  ]
  for (const [what, toml, message] of wrong) {
    test(`of the wrong ${what} is answered with place, finding and what is allowed`, () => {
      assert.deepEqual(refusal(toml), [message])
    })
  }

  test('from a variable names the variable', () => {
    assert.deepEqual(refusal('[engine]\nworkers = 2', { env: { TIDEMARK_ENGINE_WORKERS: '8x' } }), [
      'environment variable TIDEMARK_ENGINE_WORKERS: engine.workers is "8x", but it must be a whole number from 1 to 1024',
    ])
  })

  test('is reported together with all others', () => {
    assert.equal(refusal('[engine]\nworkers = 0\nwindw = 1\n[log]\nlevel = 1').length, 3)
  })

  test('addresses of services are reached in the clear on this machine alone', () => {
    for (const key of ['gmail.api_url', 'gmail.token_url', 'onedrive.auth_url', 'onedrive.api_url']) {
      const [section, name] = key.split('.')
      const toml = (url: string): string => `[${section}]\n${name} = "${url}"`
      for (const url of [
        'http://evil.example/',
        'http://127.0.0.1.evil.example/',
        'http://10.0.0.1:80',
        'ftp://x/',
      ]) {
        assert.match(refusal(toml(url)).join(), /an https:\/\/ address; http:\/\/ only of this machine/, url)
      }
      for (const url of [
        'http://127.0.0.1:1',
        'http://localhost:1/x',
        'http://[::1]:1',
        'https://x.example',
      ]) {
        load(toml(url))
      }
    }
  })

  test('never shows a password', () => {
    const [message] = refusal('[ledger]\nurl = "mysql://ann:s3cret@db/tide"')
    assert.match(message!, /ledger\.url is "mysql:\/\/ann:\*\*\*@db\/tide", but it must be "sqlite"/)
    assert.doesNotMatch(refusal('[alerts]\nwebhook_url = "ftp://x/s3cret"')[0]!, /s3cret/)
  })
})

test('a file that is not TOML is refused without its lines, in which secrets may stand', () => {
  const files = ['client_secret = """\nhunter2\n', 'client_secret hunter2', 'x = = 2\nmy_own_name = hunter2']
  for (const text of files) {
    try {
      load(`[gmail]\n${text}`)
      assert.fail('it was taken')
    } catch (thrown) {
      assert.ok(thrown instanceof UsageError)
      assert.doesNotMatch(inspect(thrown, { depth: 10 }), /hunter2/)
    }
  }
})

test('a file that is not TOML is refused with line and column', () => {
  assert.match(refusal('[engine]\nworkers = = 2')[0]!, /config\.toml:2:\d+: not valid TOML: /)
})

test('a file that cannot be read is refused with the reason', () => {
  const readFile = (): string => {
    throw Object.assign(new Error('permission denied'), { code: 'EACCES' })
  }
  assert.match(refusal('', { readFile })[0]!, /cannot read the configuration file .*: permission denied/)
})
