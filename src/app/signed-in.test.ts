import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createEngine } from '../engine/engine.ts'
import { Accounts } from '../ledger/accounts.ts'
import { openLedger } from '../ledger/open.ts'
import { resumeSignedIn } from './signed-in.ts'

const sealed = new Uint8Array([1])

test('of paused streams those go on that wait for a sign-in of an account that is ready again', async () => {
  const ledger = await openLedger(':memory:')
  const engine = await createEngine({ ledger, jobs: [] })
  try {
    const accounts = await Accounts.open(ledger)
    for (const name of ['ann', 'ben', 'cid'])
      await accounts.add({ service: 'cloud', name, settings: {}, sealed })
    await accounts.setState((await accounts.find('cloud', 'ben'))!.id, 'sign-in')
    const sources = ['ann', 'ben', 'cid', 'nobody'].map((account) => ({ stream: `app:${account}`, account }))
    for (const name of ['ann', 'ben', 'nobody', 'elsewhere'])
      await engine.pause('stream', `app:${name}`, 'a text for people', 'sign-in')
    await engine.pause('stream', 'app:cid', 'sign-in needed, says a person')
    await resumeSignedIn({ engine, ledger, accounts }, 'cloud', sources)
    assert.deepEqual(
      (await ledger.pauses()).map(({ target }) => target),
      ['app:ben', 'app:cid', 'app:elsewhere', 'app:nobody'],
    )
  } finally {
    await engine.stop()
    await ledger.close()
  }
})
