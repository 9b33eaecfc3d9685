/** What stands beside the results: how much can be found, why there is nothing, with whose eyes one sees. */
import { useQuery } from '@tanstack/preact-query'
import { Button, ButtonLink } from '../../../../../web/src/components/button.tsx'
import { EmptyNote, Note } from '../../../../../web/src/components/notes.tsx'
import { formatCount, formatShare } from '../../../../../web/src/format.ts'
import { settingsLink } from '../../../../../web/src/links.ts'
import type { CoverageView } from '../../api/schemas.ts'
import { searchApi } from '../api.ts'
import { sourceName } from './hit-list.tsx'

const LOOK_MS = 15_000

export const useCoverage = (as: string) =>
  useQuery({
    queryKey: ['find-coverage', as],
    queryFn: ({ signal }) => searchApi.coverage(as, signal),
    // With the eyes of others each look is written down: one is enough.
    refetchInterval: as === '' ? LOOK_MS : false,
  })

export function CoverageLine({ coverage }: { coverage: CoverageView }) {
  if (coverage.sources.length === 0) return null
  return (
    <ul class="coverage muted small" aria-label="How much can be found">
      {coverage.sources.map(({ source, documents, byWords, byMeaning, unread }) => {
        const meaning =
          coverage.model === null ? 'not by meaning' : `${share(byMeaning, documents)} by meaning`
        const names = unread.reduce((sum, { count }) => sum + count, 0)
        return (
          <li key={source}>
            <b>{sourceName(source)}</b> {formatCount(documents)}: {share(byWords, documents)} by words,{' '}
            {meaning}
            {names > 0 ? `, ${formatCount(names)} by name only` : ''}
          </li>
        )
      })}
    </ul>
  )
}

const share = (part: number, whole: number): string => (whole === 0 ? '0 %' : formatShare(part / whole))

export function ViewAsBanner({ as, onEnd }: { as: string; onEnd: () => void }) {
  return (
    <Note tone="warn" icon="person" title={`You see with the eyes of ${as}`} role="status">
      <p>What you look for and read here is written down, with your name.</p>
      <Button small onClick={onEnd}>
        See with my own eyes
      </Button>
    </Note>
  )
}

const EXAMPLES = [
  'offsite budget',
  '"exact words"',
  'type:pdf invoice',
  'from:ann contract',
  'source:mail travel',
]

export function Welcome({
  coverage,
  onPick,
}: {
  coverage: CoverageView | undefined
  onPick: (q: string) => void
}) {
  if (coverage && coverage.sources.length === 0) {
    return (
      <EmptyNote
        title="There is nothing to find yet"
        action={
          <ButtonLink href={settingsLink()} kind="primary" icon="person">
            Connect an account
          </ButtonLink>
        }
      >
        Connect an account: what is copied is found here soon after, first by its words, then by its meaning.
      </EmptyNote>
    )
  }
  return (
    <section class="find-examples row" aria-label="Examples">
      {EXAMPLES.map((q) => (
        <Button key={q} small onClick={() => onPick(q)}>
          {q}
        </Button>
      ))}
    </section>
  )
}

export function NothingFound({ hasFilters, onClear }: { hasFilters: boolean; onClear: () => void }) {
  return (
    <EmptyNote
      title="Nothing found"
      action={hasFilters ? <Button onClick={onClear}>Search without filters</Button> : undefined}
    >
      Try fewer or other words, or leave out an operator. What is not copied yet, and what others have not
      shared with you, cannot be found.
    </EmptyNote>
  )
}
