import { after } from 'node:test'
import { libsqlHome, onLibsql } from '../ledger/home.suite.ts'
import { openLedger } from '../ledger/open.ts'
import { engineContract } from './engine.suite.ts'
import { troubleContract } from './trouble.suite.ts'

onLibsql(() => {
  const home = libsqlHome()
  const open = async () => {
    const { url } = await home.fresh()
    const ledger = await openLedger(url)
    return { ledger, close: () => ledger.close() }
  }
  engineContract('libSQL', open)
  troubleContract('libSQL', open)
  after(() => home.remove())
})
