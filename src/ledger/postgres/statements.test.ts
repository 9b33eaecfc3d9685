import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { StatementBook, translate } from './statements.ts'

describe('placeholders', () => {
  const cases: [name: string, sql: string, text: string][] = [
    ['are numbered from left to right', 'SELECT ? + ?', 'SELECT $1 + $2'],
    ['are left alone in strings', `SELECT 'really?' || ?`, `SELECT 'really?' || $1`],
    ['are left alone after a doubled quote', `SELECT 'it''s ?', ?`, `SELECT 'it''s ?', $1`],
    ['are left alone in strings with escapes', `SELECT E'\\'?', ?`, `SELECT E'\\'?', $1`],
    ['are left alone in quoted names', `SELECT "a?b" FROM t WHERE x = ?`, `SELECT "a?b" FROM t WHERE x = $1`],
    ['are left alone in line comments', 'SELECT ? -- why?\n, ?', 'SELECT $1 -- why?\n, $2'],
    ['are left alone in block comments', 'SELECT /* ? */ ?', 'SELECT /* ? */ $1'],
    ['are left alone in dollar quotes', 'SELECT $f$ ? $f$, $$?$$, ?', 'SELECT $f$ ? $f$, $$?$$, $1'],
  ]
  for (const [name, sql, text] of cases) {
    test(name, () => assert.equal(translate(sql).text, text))
  }
})

describe('the book of statements', () => {
  const use = (book: StatementBook, sql: string, times: number): string | undefined => {
    let name: string | undefined
    for (let n = 0; n < times; n++) name = book.find(sql).name
    return name
  }

  test('names a text that comes back, always with the same name', () => {
    const book = new StatementBook()
    assert.equal(use(book, 'SELECT ?', 2), undefined)
    const name = use(book, 'SELECT ?', 10)
    assert.ok(name)
    assert.equal(use(book, 'SELECT ?', 1), name)
    assert.notEqual(use(book, 'SELECT ?, ?', 10), name)
  })

  test('never names long lists, whose length varies, nor several statements in one', () => {
    const book = new StatementBook()
    assert.equal(use(book, `SELECT 1 WHERE 1 IN (${Array(100).fill('?').join(',')})`, 50), undefined)
    assert.equal(use(book, 'SELECT 1; SELECT 2', 50), undefined)
  })

  test('never names what takes a list as JSON, whose plan depends on how large a table has become', () => {
    const book = new StatementBook()
    const lists = ['json_to_recordset(?::json) AS t(a text)', 'jsonb_array_elements_text(?::jsonb) AS t(a)']
    for (const list of lists) assert.equal(use(book, `SELECT a FROM ${list}`, 50), undefined)
  })

  test('gives out a bounded number of names, each for one text only', () => {
    const book = new StatementBook()
    const textOf = new Map<string, string>()
    for (let n = 0; n < 5_000; n++) {
      const sql = `SELECT ${n}`
      const name = use(book, sql, 10)
      if (name === undefined) continue
      assert.equal(textOf.get(name) ?? sql, sql)
      textOf.set(name, sql)
    }
    assert.ok(textOf.size > 100 && textOf.size <= 256, `${textOf.size} names`)
  })
})
