import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { fileHome, postgresHome } from '../../../ledger/home.suite.ts'
import { driveSchema } from './schema.ts'
import { DriveTables } from './tables.ts'

for (const home of [fileHome(), postgresHome()]) {
  after(() => home.remove())

  test(`files that the first version kept are there after it was brought up to date, on ${home.name}`, async () => {
    const { ledger, leave } = await home.fresh()
    try {
      const [first] = driveSchema(ledger.dialect)
      await ledger.migrateApp('drive', [first!])
      await ledger.driver.transaction(async (tx) => {
        await tx.run(
          `INSERT INTO drive_files(id, name, mime_type, md5, serial, version, owner, editor, url, is_folder, state)
           VALUES ('a', 'Plan.txt', 'text/plain', 'm', 1, '1', 'ann', 'ann', 'https://example.com', 0, 'indexed')`,
        )
        await tx.run(
          `INSERT INTO drive_files(id, name, mime_type, serial, version, owner, editor, url, is_folder, state, published)
           VALUES ('b', 'b', 'text/plain', 7, '1', 'ann', 'ann', '', 0, 'failed', 1),
             ('c', 'c', 'text/plain', 7, '1', 'ann', 'ann', '', 0, 'waiting', 1),
             ('d', 'd', 'text/plain', 7, '1', 'ann', 'ann', '', 0, 'indexed', 1),
             ('e', 'e', 'text/plain', 7, '1', 'ann', 'ann', '', 0, 'waiting', 0)`,
        )
        await tx.run(
          `INSERT INTO drive_access(account, drive, file, generation, kind, via, can_download, is_folder)
           VALUES ('ann@example.com', '', 'a', 1, 'owner', '', 1, 0)`,
        )
      })
      for (let opened = 0; opened < 2; opened++) {
        const tables = await DriveTables.open(ledger)
        const file = await tables.file('a')
        assert.deepEqual(
          [file?.name, file?.md5, file?.sha256, file?.state],
          ['Plan.txt', 'm', null, 'indexed'],
        )
        // What is published of those that were not read as they are may be an older version.
        const stale = [...(await tables.files(['b', 'c', 'd', 'e'])).values()]
          .filter(({ stale_serial }) => stale_serial !== null)
          .map(({ id, stale_serial }) => [id, Number(stale_serial)])
        assert.deepEqual(stale.sort(), [
          ['b', 7],
          ['c', 7],
        ])
        assert.deepEqual([...(await tables.access('ann@example.com', '', ['a'])).keys()], ['a'])
      }
      await ledger.driver.transaction((tx) => tx.run(`UPDATE drive_files SET sha256 = 's' WHERE id = 'a'`))
      assert.equal((await (await DriveTables.open(ledger)).file('a'))?.sha256, 's')
    } finally {
      await leave()
    }
  })
}
