import assert from 'node:assert/strict'
import { connect } from 'node:net'
import { PassThrough } from 'node:stream'
import { text } from 'node:stream/consumers'
import { describe, test } from 'node:test'
import { TidemarkError, UsageError } from '../../base/errors.ts'
import type { SignInHints } from '../../cloud/account-service.ts'
import { GMAIL_SCOPES, type GmailSecret } from '../../cloud/gmail/auth.ts'
import { tokenConcerns } from '../../cloud/google/sign-in.ts'
import { Output } from '../output/output.ts'
import { readLines } from '../output/prompt.ts'
import { type SignInSteps, signInByLoopback } from './loopback.ts'
import { signInByPaste } from './paste.ts'

const WAIT_MS = 60_000
const HINTS: SignInHints = { denied: 'allow it', refused: 'check the client', elsewhere: 'go elsewhere' }

type Waiting = { redirectUri: string; ended: Promise<string>; codes: string[] }

/** A sign-in by loopback that has asked, and where it waits. */
async function waiting(
  finish: (code: string) => Promise<string> = async (code) => `made of ${code}`,
  more: Pick<SignInSteps<string>, 'host'> = {},
): Promise<Waiting> {
  const codes: string[] = []
  let ended: Promise<string> = Promise.resolve('')
  const redirectUri = await new Promise<string>((ask) => {
    const steps: SignInSteps<string> = {
      state: 'right',
      hints: HINTS,
      ...more,
      ask,
      finish: (code) => {
        codes.push(code)
        return finish(code)
      },
    }
    ended = signInByLoopback(steps, WAIT_MS)
  })
  return { redirectUri, ended, codes }
}

/** A request as no browser writes it. */
async function statusOf(redirectUri: string, { target, host }: { target: string; host?: string }) {
  const { hostname, port, host: own } = new URL(redirectUri)
  const socket = connect(Number(port), hostname)
  socket.write(`GET ${target} HTTP/1.1\r\nHost: ${host ?? own}\r\nConnection: close\r\n\r\n`)
  return Number((await text(socket)).split(' ')[1])
}

describe('the page that the browser is sent back to', () => {
  test('is on 127.0.0.1, says when it is done, and is gone afterwards', async () => {
    const { redirectUri, ended } = await waiting()
    assert.match(redirectUri, /^http:\/\/127\.0\.0\.1:\d+$/)
    const response = await fetch(`${redirectUri}/?code=c1&state=right`)
    assert.equal(response.status, 200)
    assert.match(await response.text(), /Connected/)
    assert.equal(response.headers.get('cache-control'), 'no-store')
    assert.match(response.headers.get('content-security-policy') ?? '', /default-src 'none'/)
    assert.equal(await ended, 'made of c1')
    await assert.rejects(fetch(redirectUri))
  })

  test('is found by the name localhost where the service knows no other, and then by no other', async () => {
    const { redirectUri, ended } = await waiting(undefined, { host: 'localhost' })
    assert.match(redirectUri, /^http:\/\/localhost:\d+$/)
    const byNumber = redirectUri.replace('localhost', '127.0.0.1')
    assert.equal((await fetch(`${byNumber}/?code=c1&state=right`)).status, 404)
    assert.equal((await fetch(`${redirectUri}/?code=c2&state=right`)).status, 200)
    assert.equal(await ended, 'made of c2')
  })

  test('lets nothing but the right answer end the wait', async () => {
    const { redirectUri, ended, codes } = await waiting()
    const strange = [
      '/',
      '/favicon.ico',
      '/?code=evil&state=wrong',
      '/?error=access_denied',
      '/?state=right',
      '/%00',
    ]
    for (const path of strange) assert.equal((await fetch(`${redirectUri}${path}`)).status, 404, path)
    const posted = await fetch(`${redirectUri}/?code=evil&state=right`, { method: 'POST' })
    assert.equal(posted.status, 404)
    for (const target of ['//', 'http://[', 'http://elsewhere.example/?code=evil&state=right']) {
      assert.equal(await statusOf(redirectUri, { target }), 404, target)
    }
    const host = 'elsewhere.example'
    assert.equal(await statusOf(redirectUri, { target: '/?code=evil&state=right', host }), 404, host)
    assert.deepEqual(codes, [])
    await fetch(`${redirectUri}/?code=c1&state=right`)
    assert.equal(await ended, 'made of c1')
  })

  test('says that it did not work when it did not, without saying why to whoever looks', async () => {
    const { redirectUri, ended } = await waiting(() => Promise.reject(new Error('secret reason')))
    const checked = assert.rejects(ended, /secret reason/)
    const page = await (await fetch(`${redirectUri}/?code=c1&state=right`)).text()
    assert.match(page, /did not work/)
    assert.doesNotMatch(page, /secret reason/)
    await checked
  })

  test('uses a code once, also when the browser asks twice', async () => {
    let release = (): void => {}
    const held = new Promise<void>((resolve) => (release = resolve))
    const { redirectUri, ended, codes } = await waiting(async () => {
      await held
      return 'made'
    })
    const first = fetch(`${redirectUri}/?code=c1&state=right`)
    while (codes.length === 0) await new Promise(setImmediate)
    assert.match(await (await fetch(`${redirectUri}/?code=c1&state=right`)).text(), /already being finished/)
    release()
    await first
    assert.equal(await ended, 'made')
    assert.deepEqual(codes, ['c1'])
  })

  test('ends with what the person refused', async () => {
    const { redirectUri, ended } = await waiting()
    const checked = assert.rejects(
      ended,
      (error: TidemarkError) =>
        error.code === 'access_denied' && error.kind === 'auth' && error.hint === HINTS.denied,
    )
    await fetch(`${redirectUri}/?error=access_denied&state=right`)
    await checked
  })

  test('is taken away when nobody comes in time', async () => {
    const steps: SignInSteps<string> = { state: 's', hints: HINTS, ask: () => {}, finish: async () => '' }
    await assert.rejects(
      signInByLoopback(steps, 5),
      (error: TidemarkError) => error.code === 'sign-in-timeout',
    )
  })
})

/** What a paste of these lines leads to, and what was said. */
async function paste(
  ...lines: string[]
): Promise<{ code: string | undefined; said: string; error?: unknown }> {
  const input = new PassThrough()
  input.end(lines.map((line) => `${line}\n`).join(''))
  let said = ''
  const output = new Output(
    { write: () => assert.fail('stdout is for results') },
    { write: (text) => (said += text) },
  )
  const steps: SignInSteps<string> = {
    state: 'right',
    hints: HINTS,
    ask: () => {},
    finish: async (code) => code,
  }
  const reader = readLines(output, input)
  try {
    return { code: await signInByPaste(steps, reader, output), said }
  } catch (error) {
    return { code: undefined, said, error }
  } finally {
    reader.close()
  }
}

describe('a pasted answer', () => {
  const accepted: [what: string, line: string, code: string][] = [
    ['a whole address', 'http://127.0.0.1:1/?state=right&code=4%2F0Abc-d_e&scope=x', '4/0Abc-d_e'],
    ['an address with spaces around it', '  http://127.0.0.1:1/?state=right&code=abcdefghij  ', 'abcdefghij'],
    ['what follows the question mark', 'state=right&code=abcdefghij', 'abcdefghij'],
    ['the code alone', '4/0AbcDefGhi-_x', '4/0AbcDefGhi-_x'],
    ['the code alone as the address bar shows it', '4%2F0AbcDefGhi', '4/0AbcDefGhi'],
  ]
  for (const [what, line, code] of accepted) {
    test(`may be ${what}`, async () => {
      assert.equal((await paste(line)).code, code)
    })
  }

  test('that belongs to another sign-in is refused, and asked for again', async () => {
    const { code, said } = await paste('http://127.0.0.1:1/?state=wrong&code=abcdefghij', 'abcdefghijk')
    assert.equal(code, 'abcdefghijk')
    assert.match(said, /another sign-in/)
  })

  test('is asked for three times, and not at all when nobody is there', async () => {
    const { code, error, said } = await paste('', 'what?', 'no idea', 'abcdefghij')
    assert.equal(code, undefined)
    assert.ok(error instanceof UsageError)
    assert.equal(said.match(/Paste its address/g)?.length, 3)
    assert.ok((await paste()).error instanceof UsageError)
  })

  test('that is a refusal ends the sign-in', async () => {
    const { error } = await paste('http://127.0.0.1:1/?state=right&error=access_denied')
    assert.ok(error instanceof TidemarkError && error.code === 'access_denied')
  })
})

describe('a sign-in of a project in testing', () => {
  const DAY_MS = 86_400_000
  const secret: GmailSecret = {
    kind: 'oauth',
    clientId: 'c',
    refreshToken: 'r',
    scopes: [GMAIL_SCOPES.readonly],
    obtainedAtMs: 0,
  }
  const texts = (more: object, day: number): string[] =>
    tokenConcerns({ ...secret, ...more } as GmailSecret, day * DAY_MS).map(({ text }) => text)

  test('is warned of from its fifth day to its seventh, when nobody has said', () => {
    assert.deepEqual(
      [0, 4.9, 7, 400].flatMap((day) => texts({}, day)),
      [],
    )
    assert.deepEqual(texts({}, 5), ['The sign-in is 5 d old. If the project is in testing, it ends in 2 d.'])
  })

  test('is warned of from its first day when Google has said when it ends', () => {
    const more = { refreshExpiresAtMs: 7 * DAY_MS }
    assert.deepEqual(texts(more, 0), ['The sign-in ends by itself in 7 d.'])
    assert.deepEqual(texts(more, 8), ['The sign-in has ended by itself.'])
  })

  test('is nothing that a service account has', () => {
    const robot = {
      kind: 'service-account',
      clientEmail: 'r',
      privateKey: 'k',
      subject: 's',
      scopes: ['x'],
    } as const
    assert.deepEqual(tokenConcerns({ ...robot, scopes: ['x'] }, 6 * DAY_MS), [])
  })
})
