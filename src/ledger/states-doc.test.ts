import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, test } from 'node:test'
import {
  JOB_EVENTS,
  JOB_STATES,
  JOB_TRANSITIONS,
  SEGMENT_EVENTS,
  SEGMENT_STATES,
  SEGMENT_TRANSITIONS,
  SETTLED,
} from './states.ts'

type Table = { header: string[]; rows: string[][] }
type Transitions = Record<string, Record<string, string>>

const PAGE = readFileSync(join(import.meta.dirname, '..', '..', 'docs', 'states.md'), 'utf8')

/** The text below a heading of the second level. */
function chapter(title: string): string {
  const found = PAGE.split(/^## /m).find((part) => part.startsWith(`${title}\n`))
  assert.ok(found, `docs/states.md has a chapter called ${title}`)
  return found
}

function tablesOf(text: string): Table[] {
  const blocks = text.match(/(?:^\|.*\|\n)+/gm) ?? []
  return blocks.map((block) => {
    const [header, , ...rows] = block.trimEnd().split('\n').map(cellsOf)
    return { header: header!, rows }
  })
}

function cellsOf(line: string): string[] {
  return line
    .slice(1, -1)
    .split('|')
    .map((cell) => cell.trim().replaceAll('`', ''))
}

/** The table whose columns are the events. */
function matrixOf(text: string, event: string): Transitions {
  const table = tablesOf(text).find(({ header }) => header.includes(event))
  assert.ok(table, `a table with a column for ${event}`)
  return Object.fromEntries(
    table.rows.map(([state, ...cells]) => [
      state!,
      Object.fromEntries(cells.map((cell, at) => [table.header[at + 1], cell === '–' ? 'refused' : cell])),
    ]),
  )
}

/** `from --event--> to`, sorted; the way in and the way out are not transitions. */
function arrowsOf(text: string): string[] {
  const diagram = /```mermaid\n([\s\S]*?)```/.exec(text)?.[1] ?? ''
  const arrows = [...diagram.matchAll(/^\s*(\w+) --> (\w+) : (.+)$/gm)]
  return arrows
    .flatMap(([, from, to, events]) => events!.split(', ').map((event) => `${from} --${event}--> ${to}`))
    .sort()
}

function arrowsIn(transitions: Transitions): string[] {
  return Object.entries(transitions)
    .flatMap(([from, events]) =>
      Object.entries(events).flatMap(([event, to]) =>
        to === 'refused' ? [] : [`${from} --${event}--> ${to}`],
      ),
    )
    .sort()
}

const firstColumn = (text: string, title: string): string[] =>
  tablesOf(text)
    .find(({ header }) => header[0] === title && !header.includes('cancel') && !header.includes('seal'))!
    .rows.map(([cell]) => cell!)

describe('docs/states.md', () => {
  test('has every cell of the job table as the code has it', () => {
    assert.deepEqual(matrixOf(chapter('Jobs'), 'unblock'), JOB_TRANSITIONS)
  })

  test('has every cell of the segment table as the code has it', () => {
    assert.deepEqual(matrixOf(chapter('Segments'), 'seal'), SEGMENT_TRANSITIONS)
  })

  test('draws every transition of jobs and no other', () => {
    assert.deepEqual(arrowsOf(chapter('Jobs')), arrowsIn(JOB_TRANSITIONS))
  })

  test('draws every transition of segments and no other', () => {
    assert.deepEqual(arrowsOf(chapter('Segments')), arrowsIn(SEGMENT_TRANSITIONS))
  })

  test('explains every state and every event', () => {
    assert.deepEqual(firstColumn(chapter('Jobs'), 'state').sort(), [...JOB_STATES].sort())
    assert.deepEqual(firstColumn(chapter('Jobs'), 'event'), [...JOB_EVENTS])
    assert.deepEqual(firstColumn(chapter('Segments'), 'state'), [...SEGMENT_STATES])
    assert.deepEqual(firstColumn(chapter('Segments'), 'event'), [...SEGMENT_EVENTS])
  })

  test('says of every job state whether it is settled', () => {
    const states = tablesOf(chapter('Jobs')).find(({ header }) => header.includes('settled'))!
    const column = states.header.indexOf('settled')
    for (const row of states.rows) {
      const state = JOB_STATES.find((name) => name === row[0])!
      assert.equal(row[column]!.includes('yes'), SETTLED.has(state), state)
    }
  })
})
