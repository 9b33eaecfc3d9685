/** How far everything is, for models; and, where that is switched on, trying bad items again. */

import { z } from 'zod'
import { noteWithoutEngine } from '../../app/engine-note.ts'
import { nameText } from '../../app/inputs.ts'
import { type AnswerPart, defineTool } from '../../app/module.ts'
import { oneLine } from '../../app/plain-text.ts'
import type { Overview, StreamView } from '../../app/schemas.ts'
import { formatCount, formatDuration } from '../../base/format.ts'
import { isoTime } from '../../base/moment.ts'
import { plural } from '../../base/wording.ts'
import { badPage, retryBody, retryItems } from './bad.ts'
import { readOverview } from './overview.ts'

const STREAMS_MAX = 25
const ALERTS_MAX = 10
const TEXT_CHARS_MAX = 300
const BAD_MAX = 30
const BAD_DEFAULT = 20

const status = defineTool({
  name: 'status',
  title: 'How far everything is',
  access: 'read',
  description:
    'Says how far the copy is and what needs the user: each stream (an account is the stream mail:ADDRESS) with the ' +
    'place it is complete up to (everything before it is accounted for) and the books (listed = stored + gone + skipped + bad), alerts, ' +
    'pauses, and how many items would not work.',
  narrower: 'The rest is on the dashboard.',
  input: z.strictObject({}),
  run: async (_input, services) => statusAnswer(await readOverview(services)),
})

function statusAnswer(overview: Overview): AnswerPart[] {
  const { verdict, streams, alerts, pauses, badItems, workers, live, at } = overview
  const alive = workers.filter((worker) => worker.alive).length
  const engines =
    alive === 0 ? 'No engine is running' : `${alive} ${plural(alive, 'engine is', 'engines are')} running`
  const parts: AnswerPart[] = [
    ...[`${isoTime(at)}: `, verdict.state === 'attention' ? short(verdict.text) : verdict.text],
    `\n${engines}. ${live === '' || live === 'idle' ? 'Nothing is being worked on.' : `Work: ${live}.`}`,
    `\nBad items: ${formatCount(badItems)}${badItems > 0 ? ' (bad_items lists them)' : ''}.`,
  ]
  for (const { severity, text, since, count } of alerts.slice(0, ALERTS_MAX)) {
    parts.push(`\nAlert (${severity}, since ${isoTime(since)}, ${formatCount(count)} times): `, short(text))
  }
  if (alerts.length > ALERTS_MAX) parts.push(`\nand ${formatCount(alerts.length - ALERTS_MAX)} more alerts`)
  for (const { scope, target, reason } of pauses.slice(0, ALERTS_MAX)) {
    parts.push(`\nPaused: ${scope === 'all' ? 'everything' : `${scope} ${target}`}, because `, short(reason))
  }
  for (const stream of streams.slice(0, STREAMS_MAX)) parts.push(...streamParts(stream))
  if (streams.length > STREAMS_MAX)
    parts.push(`\nand ${formatCount(streams.length - STREAMS_MAX)} more streams`)
  return parts
}

function streamParts(stream: StreamView): AnswerPart[] {
  const { name, mark, listed, stored, gone, skipped, bad, onTheirWay, segments, settledSegments } = stream
  const counts = [
    `${formatCount(stored)} stored`,
    `${formatCount(gone)} gone`,
    `${formatCount(skipped)} skipped`,
    `${formatCount(bad)} bad`,
    ...(onTheirWay > 0 ? [`${formatCount(onTheirWay)} on their way`] : []),
  ]
  const pace =
    stream.etaMs === null || stream.etaMs === 0 ? '' : `; about ${formatDuration(stream.etaMs)} left`
  return [
    `\n\nStream ${name} (${stream.health}): `,
    stream.paused ? short(stream.summary) : stream.summary,
    `\n  complete up to ${mark ?? '(nothing yet)'}; ${formatCount(listed)} listed = ${counts.join(' + ')}`,
    `; ${formatCount(settledSegments)} of ${formatCount(segments)} segments settled${pace}`,
  ]
}

const badItems = defineTool({
  name: 'bad_items',
  title: 'Items that would not work',
  access: 'read',
  description:
    'Lists items that would not work (of mail: messages that could not be fetched), each with its reason.',
  narrower: 'Ask for fewer with limit, then go on with the cursor.',
  input: z.strictObject({
    stream: nameText.optional().describe('Only of this stream, such as mail:ann@example.com'),
    limit: z.int().min(1).max(BAD_MAX).default(BAD_DEFAULT),
    cursor: z.string().max(500).optional().describe('For the next page: the one that the page before gave'),
  }),
  run: async (input, services) => {
    const { items, next } = await badPage(services, input)
    const parts: AnswerPart[] = [
      items.length === 0 ? 'There are no bad items.' : `${items.length} bad items.`,
    ]
    if (next !== null) parts.push(` There are more: ask again with the cursor ${next}`)
    for (const { id, stream, kind, item, reason, lastTried, tries } of items) {
      const about = `${stream ?? 'no stream'} | ${kind} | tried ${formatCount(tries)} times, last ${isoTime(lastTried)}`
      parts.push(`\n#${id} | ${about}\n`, short(`${item}: ${reason}`))
    }
    return parts
  },
})

const retryBadItems = defineTool({
  name: 'retry_bad_items',
  title: 'Try bad items again',
  access: 'write',
  description:
    'Tries bad items again: those with these numbers, all of a stream, or all where neither is named. The answer ' +
    'does not wait for them.',
  narrower: 'Name fewer.',
  input: retryBody,
  run: async (input, services) => {
    const { text } = await retryItems(services, input)
    return [text, await noteWithoutEngine(services)]
  },
})

/** It may hold what a service or a mail said. */
function short(text: string): AnswerPart {
  return { quote: oneLine(text, TEXT_CHARS_MAX) }
}

export const engineTools = [status, badItems, retryBadItems]
