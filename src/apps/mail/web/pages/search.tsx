/** Find any mail: as it is typed, over all accounts, also what Gmail no longer has. */
import { useEffect, useRef } from 'preact/hooks'
import { named, Segmented, Select } from '../../../../../web/src/components/form.tsx'
import { Icon } from '../../../../../web/src/components/icon.tsx'
import { ErrorNote } from '../../../../../web/src/components/notes.tsx'
import { PageTitle } from '../../../../../web/src/components/page-title.tsx'
import { formatCount, formatPlural } from '../../../../../web/src/format.ts'
import { useKeys } from '../../../../../web/src/keyboard.ts'
import { ApiError } from '../../../../../web/src/problem.ts'
import { useNow } from '../../../../../web/src/queries.ts'
import { setSearchParams, useSearchParam } from '../../../../../web/src/search-params.ts'
import { DownloadButton } from '../../../../../web/src/ticket.tsx'
import type { SearchHitView } from '../../api/schemas.ts'
import { exportPath } from '../api.ts'
import { useMailAccounts } from '../queries.ts'
import { Facets } from '../search/facets.tsx'
import { lastOpened, rememberOpened, resultKey } from '../search/last-search.ts'
import { QueryField, type QueryProblem } from '../search/query-field.tsx'
import { ListEnd, ResultList, ResultSkeletons } from '../search/result-list.tsx'
import { Examples, NoAccounts, NothingFound, Unsearched } from '../search/search-notes.tsx'
import { type Order, useFacets, useQueryText, useSearchResults } from '../search/use-search.ts'
import '../styles/search.css'

const ORDERS = [
  { value: 'date', text: 'Newest' },
  { value: 'rank', text: 'Best match' },
] as const

export function SearchPage() {
  const query = useQueryText()
  const account = useSearchParam('account')
  const order: Order = useSearchParam('order') === 'rank' ? 'rank' : 'date'
  const accounts = useMailAccounts()
  const field = useRef<HTMLInputElement>(null)
  const results = useSearchResults({ q: query.q, account, order })
  useSearchKeys(field)
  const names = accounts.data?.map(({ name }) => name) ?? []
  const refusal = queryProblem(results.error)
  return (
    <>
      <PageTitle title="Search" />
      <div class="search-tools">
        <QueryField
          field={field}
          text={query.text}
          problem={refusal}
          onType={query.type}
          onSubmit={query.submit}
          onLeave={focusFirstResult}
        />
        <div class="row">
          {names.length > 1 || account !== '' ? (
            <Select
              class="input input-small"
              aria-label="Account"
              value={account}
              options={[{ value: '', text: 'All accounts' }, ...named(names)]}
              onChange={(next) => setSearchParams({ account: next })}
            />
          ) : null}
          <Segmented
            label="Order"
            options={ORDERS}
            value={order}
            onChange={(next) => setSearchParams({ order: next === 'date' ? undefined : next })}
          />
        </div>
      </div>
      {query.text.trim() === '' ? <Examples onPick={query.submit} /> : null}
      {accounts.data && names.length === 0 ? (
        <NoAccounts />
      ) : (
        <Results
          results={results}
          isRefused={refusal !== undefined}
          q={query.q}
          showsAccount={names.length > 1 && account === ''}
          onAllAccounts={account === '' ? undefined : () => setSearchParams({ account: undefined })}
          account={account}
          onPick={query.submit}
        />
      )}
    </>
  )
}

type ResultsProps = {
  results: ReturnType<typeof useSearchResults>
  isRefused: boolean
  q: string
  showsAccount: boolean
  onAllAccounts: (() => void) | undefined
  account: string
  onPick: (q: string) => void
}

function Results(props: ResultsProps) {
  const { results, isRefused, q, showsAccount, onAllAccounts, account, onPick } = props
  const now = useNow(60_000)
  const { error, hasNextPage, isFetching, isFetchingNextPage, isPlaceholderData, fetchNextPage } = results
  const kept = useRef(results.data)
  if (results.data) kept.current = results.data
  // A query that is half typed may be none; what was found before stays.
  const data = results.data ?? (isRefused ? kept.current : undefined)
  const hits = uniqueHits(data?.pages.flatMap(({ items }) => items) ?? [])
  useReturn(hits.length > 0)
  const unsearched = data?.pages[0]?.unsearched ?? []
  const isStale = isPlaceholderData || isRefused
  const { data: facets, isPlaceholderData: areOthers } = useFacets({
    q,
    account,
    isWanted: hits.length > 0 && !isStale,
  })
  return (
    <div class="stack search-results">
      <div class="search-status ends muted small num">
        <span role="status">
          {isRefused || (error && !data)
            ? ''
            : statusText({
                hits: hits.length,
                hasMore: hasNextPage,
                inAll: areOthers ? undefined : facets?.messages,
                tookMs: data?.pages[0]?.tookMs,
                isStale,
                q,
              })}
        </span>
        {hits.length > 0 && q.trim() !== '' ? (
          <DownloadButton
            class="button button-quiet button-small"
            path={exportPath({ q: q.trim(), account })}
            title="All that was found, as an mbox file"
          >
            <Icon name="download" />
            Export
          </DownloadButton>
        ) : null}
      </div>
      {error && !isRefused ? (
        <ErrorNote error={error} what="The search did not work" retry={results.refetch} />
      ) : null}
      <Unsearched shards={unsearched} />
      {hits.length > 0 ? (
        <div class="search-columns">
          <ResultList hits={hits} showsAccount={showsAccount} isStale={isStale} now={now} />
          <div class="mail-facet-place">
            {facets ? <Facets facets={facets} q={q} onPick={onPick} /> : null}
          </div>
        </div>
      ) : null}
      {hits.length === 0 && data && !isFetching && !error ? (
        <NothingFound q={q} onClear={onAllAccounts} />
      ) : null}
      {(isFetching && hits.length === 0) || isFetchingNextPage ? (
        <ResultSkeletons rows={hits.length === 0 ? 8 : 2} />
      ) : null}
      {hasNextPage && !isFetching && !error ? (
        <ListEnd onNear={() => void fetchNextPage()} pages={data?.pages.length ?? 0} />
      ) : null}
    </div>
  )
}

function statusText(known: {
  hits: number
  hasMore: boolean
  /** Undefined until they are counted. */
  inAll: number | undefined
  tookMs: number | undefined
  isStale: boolean
  q: string
}): string {
  const { hits, hasMore, inAll, tookMs, isStale, q } = known
  if (tookMs === undefined || isStale) return 'Searching …'
  const what = q.trim() === '' ? 'newest messages' : 'messages'
  if (!hasMore) return `${formatPlural(hits, 'message')} · ${tookText(tookMs)}`
  const count =
    inAll === undefined || inAll < hits
      ? `${formatCount(hits)} ${what}, and more`
      : `${formatCount(hits)} of ${formatPlural(inAll, 'message')}`
  return `${count} · ${tookText(tookMs)}`
}

const tookText = (ms: number): string => `${formatCount(Math.max(1, Math.round(ms)))} ms`

/** New mail between two pages may push a message onto the second as well. */
function uniqueHits(hits: readonly SearchHitView[]): SearchHitView[] {
  return [...new Map(hits.map((hit) => [resultKey(hit), hit])).values()]
}

/** What is typed can be no query; that is said at the field, and what was found before stays. */
function queryProblem(error: unknown): QueryProblem | undefined {
  if (!(error instanceof ApiError) || (error.status !== 400 && error.status !== 422)) return undefined
  return { text: error.message, hint: error.hint }
}

/** Back from the reader: on the message that was read. */
function useReturn(isReady: boolean): void {
  const isDone = useRef(false)
  useEffect(() => {
    if (!isReady || isDone.current) return
    isDone.current = true
    const key = lastOpened()
    if (key !== undefined) focusResult(key)
    rememberOpened(undefined)
  }, [isReady])
}

function useSearchKeys(field: { current: HTMLInputElement | null }): void {
  const chosen = useRef<string>()
  // Asked before the list takes it up.
  const isReturn = useRef(lastOpened() !== undefined)
  const toField = (event: KeyboardEvent): void => {
    event.preventDefault()
    field.current?.focus()
    field.current?.select()
  }
  const move = (step: 1 | -1) => (event: KeyboardEvent) => {
    event.preventDefault()
    if (step === -1 && isOnFirstResult()) field.current?.focus()
    else chosen.current = moveResult(step, chosen.current)
  }
  // Arrows scroll the page as usual, until a result was chosen.
  const arrow = (step: 1 | -1) => (event: KeyboardEvent) => {
    if (event.target instanceof Element && event.target.matches('[data-result]')) move(step)(event)
  }
  useKeys({
    '/': toField,
    Escape: toField,
    j: move(1),
    k: move(-1),
    ArrowDown: arrow(1),
    ArrowUp: arrow(-1),
  })
  useEffect(() => {
    // Not where that would bring up a keyboard on the screen, and not when somebody comes back to a list.
    if (matchMedia('(pointer: fine)').matches && !isReturn.current) field.current?.focus()
  }, [field])
}

/** The chosen result is the one that has the focus. */
const links = (): HTMLElement[] => [...document.querySelectorAll<HTMLElement>('[data-result]')]

/** To the next result or the one before; with none chosen, to the one that was, or the first. */
export function moveResult(step: 1 | -1, before: string | undefined): string | undefined {
  const all = links()
  const at = all.indexOf(document.activeElement as HTMLElement)
  const known = at >= 0 ? at + step : all.findIndex(({ dataset }) => dataset.result === before)
  return focusOn(all[Math.min(all.length - 1, Math.max(0, known))])
}

export function focusResult(key: string): string | undefined {
  return focusOn(links().find(({ dataset }) => dataset.result === key))
}

export const focusFirstResult = (): string | undefined => focusOn(links()[0])

export const isOnFirstResult = (): boolean => {
  const first = links()[0]
  return first !== undefined && document.activeElement === first
}

function focusOn(link: HTMLElement | undefined): string | undefined {
  if (!link) return undefined
  link.focus({ preventScroll: true })
  link.scrollIntoView({ block: 'nearest' })
  return link.dataset.result
}
