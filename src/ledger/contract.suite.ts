/**
 * The ledger's contract: one suite, run on every database. Its tests are derived from the invariants at
 * the top of contract.ts and from how people get hurt by job queues; each title states the fact.
 */
import { after, describe } from 'node:test'
import { batchContract } from './batches.suite.ts'
import { claimContract, leaseContract } from './claim.suite.ts'
import { concurrencyContract } from './concurrency.suite.ts'
import { controlContract } from './control.suite.ts'
import { dependencyContract } from './dependencies.suite.ts'
import { appTransactionContract, enqueueContract } from './enqueue.suite.ts'
import { frontierContract } from './frontier.suite.ts'
import type { Home } from './home.suite.ts'
import { housekeepingContract } from './housekeeping.suite.ts'
import { keyContract } from './keys.suite.ts'
import { withLedger } from './ledger-fixture.suite.ts'
import { lookContract } from './looks.suite.ts'
import { overviewContract } from './overview-queries.suite.ts'
import { badItemContract, settleContract } from './settle.suite.ts'

export function ledgerContract(home: Home): void {
  describe(`a ledger on ${home.name}`, () => {
    after(() => home.remove())
    const test = withLedger(home)
    describe('enqueueing', () => enqueueContract(test))
    describe('keys', () => keyContract(test))
    describe('batches', () => batchContract(test))
    describe('an app’s own transaction', () => appTransactionContract(test, home))
    describe('dependencies', () => dependencyContract(test))
    describe('claiming', () => claimContract(test))
    describe('leases', () => leaseContract(test))
    describe('outcomes', () => settleContract(test))
    describe('looks', () => lookContract(test))
    describe('bad items', () => badItemContract(test))
    describe('segments and marks', () => frontierContract(test, home))
    describe('overviews', () => overviewContract(test))
    describe('control', () => controlContract(test))
    describe('house-keeping', () => housekeepingContract(test, home))
    if (home.shared) describe('two processes at once', () => concurrencyContract(test))
  })
}
