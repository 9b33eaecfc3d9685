import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { importsOf, lineAt, scanSource } from './source-scan.ts'

function stringsOf(text: string): string[] {
  return scanSource(text).strings.map((string) => string.text)
}

describe('scanned source', () => {
  test('keeps its length and its lines', () => {
    const text = `const a = "x" // y\n/* z\n */ const b = \`q\${a}\n\` / 2\n`
    const { code } = scanSource(text)
    assert.equal(code.length, text.length)
    assert.equal(code.split('\n').length, text.split('\n').length)
  })

  test('has no comments, strings and regular expressions in its code', () => {
    const { code } = scanSource(`a() // no1\n/* no2 */ b('no3', "no4", \`no5\`, /no6[/"]no7/g)\nc()`)
    assert.doesNotMatch(code, /no\d/)
    assert.match(code, /a\(\)[\s\S]*b\([\s\S]*\)\nc\(\)/)
  })

  test('keeps the code inside templates, at any depth', () => {
    const { code } = scanSource(`\`no \${first({ a: \`no \${second}\` })} no\``)
    assert.match(code, /first\(\{ a: /)
    assert.match(code, /second/)
    assert.doesNotMatch(code, /no/)
  })

  test('knows a division from a regular expression', () => {
    assert.deepEqual(stringsOf(`const a = b / c; const d = "x" / 2`), ['x'])
    assert.deepEqual(stringsOf(`return /"/.test(a) ? 'x' : (b) / 'y'`), ['x', 'y'])
  })

  test('gives strings with their escapes as they stand', () => {
    assert.deepEqual(stringsOf(`'it\\'s' + "a" + \`b\\\`c\``), [`it\\'s`, 'a', 'b\\`c'])
  })
})

test('every form of import is found', () => {
  const text = [
    `import a from './a.ts'`,
    `import {\n  b,\n} from "./b.ts"`,
    `import './c.ts'`,
    `export * from './d.ts'`,
    `type E = import('./e.ts').E`,
    `await import('./f.ts', { with: {} })`,
    `require('./g.ts')`,
    `new Worker(new URL('./h.ts', import.meta.url))`,
    `import.meta.resolve('./i.ts')`,
    `await import(name)`,
    `new URL('./k', base)`,
  ].join('\n')
  assert.deepEqual(
    importsOf(scanSource(text)).map(({ specifier }) => specifier),
    ['./a.ts', './b.ts', './c.ts', './d.ts', './e.ts', './f.ts', './g.ts', './h.ts', './i.ts', undefined],
  )
})

test('lines are counted from one', () => {
  assert.deepEqual(
    [0, 1, 2, 5].map((position) => lineAt('a\nb\nc\n', position)),
    [1, 1, 2, 3],
  )
})
