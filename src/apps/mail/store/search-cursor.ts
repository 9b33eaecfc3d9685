/**
 * Where a page of a search ended, as text for the next one. It names a message by its place and not by how many came
 * before it, so that mail which arrives between two pages neither repeats nor hides anything.
 */
import { UsageError } from '../../../base/errors.ts'

export type DateCursor = { order: 'date'; pos: number; shard: string }
export type RankCursor = { order: 'rank'; score: number; pos: number; shard: string }

const DATE = /^d_(-?\d{1,16})_([a-z0-9-]{1,40})$/
const RANK = /^r_(-?\d{1,20}(?:\.\d{1,25})?(?:e[+-]?\d{1,3})?)_(-?\d{1,16})_([a-z0-9-]{1,40})$/

export function formatCursor(cursor: DateCursor | RankCursor): string {
  return cursor.order === 'date'
    ? `d_${cursor.pos}_${cursor.shard}`
    : `r_${cursor.score}_${cursor.pos}_${cursor.shard}`
}

export function parseDateCursor(text: string): DateCursor {
  const [, pos, shard] = DATE.exec(text) ?? []
  if (pos === undefined || shard === undefined) throw badCursor(text)
  return { order: 'date', pos: Number(pos), shard }
}

export function parseRankCursor(text: string): RankCursor {
  const [, score, pos, shard] = RANK.exec(text) ?? []
  if (score === undefined || pos === undefined || shard === undefined) throw badCursor(text)
  return { order: 'rank', score: Number(score), pos: Number(pos), shard }
}

function badCursor(text: string): UsageError {
  return new UsageError(`"${text.slice(0, 80)}" is not the cursor of a page of this search.`, {
    code: 'bad-cursor',
    hint: 'Take the one that the page before gave, with the same query and the same order; without one, the search starts anew.',
  })
}
