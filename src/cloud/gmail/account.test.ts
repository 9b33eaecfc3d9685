import assert from 'node:assert/strict'
import { createServer, type Server, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { after, before, describe, test } from 'node:test'
import { systemClock } from '../../base/clock.ts'
import { TidemarkError } from '../../base/errors.ts'
import { readProfile } from './account.ts'

let server: Server
let url: string
let answer: (response: ServerResponse) => void

before(async () => {
  server = createServer((_request, response) => answer(response))
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
})

after(() => {
  server.close()
  server.closeAllConnections()
})

function answerWith(emailAddress: string): void {
  answer = (response) => response.end(JSON.stringify({ emailAddress, messagesTotal: 3 }))
}

const isNoProfile = (error: unknown): boolean => error instanceof TidemarkError && error.code === 'not-gmail'

const calls = { fetch: globalThis.fetch, clock: systemClock }

describe('whose account it is', () => {
  test('is an address, in small letters', async () => {
    answerWith("Mary.O'Dell+x@Example.com")
    assert.deepEqual(await readProfile(calls, { apiUrl: url, accessToken: 'token' }), {
      address: "mary.o'dell+x@example.com",
      messages: 3,
    })
  })

  test('is not believed where it is no address', async () => {
    for (const text of [
      '',
      'mary',
      '../../etc',
      'a@b; rm -rf x',
      'a@b\n',
      'a\u001b[2J@b',
      'a\u202e@b',
      'a@b@c',
    ]) {
      answerWith(text)
      await assert.rejects(
        readProfile(calls, { apiUrl: url, accessToken: 'token' }),
        isNoProfile,
        JSON.stringify(text),
      )
    }
  })

  test('is not waited for in an answer without end', async () => {
    let sent = 0
    answer = (response) => {
      const more = (): void => {
        while (!response.destroyed && response.write('x'.repeat(16_384))) sent += 16_384
      }
      response.on('drain', more)
      more()
    }
    await assert.rejects(readProfile(calls, { apiUrl: url, accessToken: 'token' }), isNoProfile)
    assert.ok(sent < 64 * 1_048_576, `${sent} bytes were taken`)
  })
})
