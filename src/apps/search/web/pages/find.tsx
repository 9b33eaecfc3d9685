/** Everything that is kept, in one search: by words and by meaning, with why, and the document beside it. */
import { useQueryClient } from '@tanstack/preact-query'
import { useEffect, useRef, useState } from 'preact/hooks'
import { Button } from '../../../../../web/src/components/button.tsx'
import { Segmented } from '../../../../../web/src/components/form.tsx'
import { ErrorNote, Note, Skeleton } from '../../../../../web/src/components/notes.tsx'
import { PageTitle } from '../../../../../web/src/components/page-title.tsx'
import { showToast } from '../../../../../web/src/components/toast-store.ts'
import { formatPlural } from '../../../../../web/src/format.ts'
import { ApiError } from '../../../../../web/src/problem.ts'
import { useNow } from '../../../../../web/src/queries.ts'
import { useSearchParam } from '../../../../../web/src/search-params.ts'
import type { HitView, SearchAnswerView } from '../../api/schemas.ts'
import { searchApi } from '../api.ts'
import { Facets } from '../find/facets.tsx'
import { FindField } from '../find/field.tsx'
import { HitList, ListEnd } from '../find/hit-list.tsx'
import { CoverageLine, NothingFound, useCoverage, ViewAsBanner, Welcome } from '../find/notes.tsx'
import { Preview } from '../find/preview.tsx'
import {
  isAsked,
  OWN_KEY,
  setWish,
  toggled,
  useAnswer,
  useRemembered,
  useTyped,
  useWish,
} from '../find/wish.ts'
import '../styles/find.css'

const ORDERS = [
  { value: 'relevance', text: 'Best' },
  { value: 'newest', text: 'Newest' },
  { value: 'oldest', text: 'Oldest' },
] as const

export function FindPage() {
  const wish = useWish()
  const typed = useTyped(wish.q)
  const answer = useAnswer(wish)
  const coverage = useCoverage(wish.as)
  const field = useRef<HTMLInputElement>(null)
  const open = useOpen()
  const asked = isAsked(wish)
  const pages = asked ? (answer.data?.pages ?? []) : []
  const [first] = pages
  const hits = pages.flatMap((page) => page.hits)
  const openHit = hits.find(({ id }) => id === open.id)
  useRemembered(wish, hits.length > 0)
  useFindKeys(field)
  return (
    <>
      <PageTitle title="Find anything" />
      {wish.as === '' ? null : (
        <ViewAsBanner as={wish.as} onEnd={() => setWish({ as: '' }, { push: true })} />
      )}
      <div class="find-tools">
        <FindField
          field={field}
          text={typed.text}
          as={wish.as}
          problem={refusalOf(answer.error)}
          onType={typed.type}
          onSubmit={typed.submit}
          onLeave={() => focusHit(0)}
        />
        <div class="row">
          <Segmented
            label="Order"
            options={ORDERS}
            value={wish.sort}
            onChange={(sort) => setWish({ sort })}
          />
          {wish.q.trim() === '' || wish.as !== '' ? null : <KeepButton q={wish.q} />}
        </div>
      </div>
      {coverage.data ? <CoverageLine coverage={coverage.data} /> : <Skeleton width="20rem" />}
      {asked ? null : <Welcome coverage={coverage.data} onPick={typed.submit} />}
      {asked ? (
        <div class={`find-columns${open.id === undefined ? '' : ' has-preview'}`}>
          {first ? (
            <Facets
              facets={first.facets}
              filters={wish.filters}
              onToggle={(facet, value) => setWish({ filters: toggled(wish.filters, facet, value) })}
            />
          ) : (
            <span />
          )}
          <div class="find-results stack">
            <Status answer={first} isStale={answer.isPlaceholderData} onPick={typed.submit} />
            {answer.error && refusalOf(answer.error) === undefined ? (
              <ErrorNote error={answer.error} what="The search did not work" retry={answer.refetch} />
            ) : null}
            <Results {...{ answer, hits, open }} />
            {first && hits.length === 0 && !answer.isFetching ? (
              <NothingFound
                hasFilters={Object.values(wish.filters).some((values) => (values?.length ?? 0) > 0)}
                onClear={() => setWish({ filters: {} })}
              />
            ) : null}
          </div>
          {open.id === undefined ? null : (
            <Preview
              key={open.id}
              id={open.id}
              chunk={openHit?.citation?.chunk}
              as={wish.as}
              onClose={() => open.set(undefined)}
            />
          )}
        </div>
      ) : null}
    </>
  )
}

type ResultsProps = {
  answer: ReturnType<typeof useAnswer>
  hits: readonly HitView[]
  open: ReturnType<typeof useOpen>
}

function Results({ answer, hits, open }: ResultsProps) {
  const now = useNow(60_000)
  const { hasNextPage, isFetching, isPlaceholderData, fetchNextPage, data, error } = answer
  return (
    <>
      {hits.length > 0 ? (
        <HitList
          hits={hits}
          openId={open.id}
          isStale={isPlaceholderData}
          now={now}
          onOpen={(hit) => open.set(hit.id)}
        />
      ) : null}
      {isFetching && hits.length === 0 ? <Skeleton lines={6} /> : null}
      {hasNextPage && !isFetching && !error ? (
        <ListEnd onNear={() => void fetchNextPage()} pages={data?.pages.length ?? 0} />
      ) : null}
    </>
  )
}

type StatusProps = { answer: SearchAnswerView | undefined; isStale: boolean; onPick: (q: string) => void }

function Status({ answer, isStale, onPick }: StatusProps) {
  const how = answer?.by.length ? ` by ${answer.by.join(' and ')}` : ''
  const text = answer && !isStale ? `${formatPlural(answer.total, 'document')} found${how}` : 'Searching …'
  return (
    <>
      <p class="find-status muted small num" role="status">
        {text}
      </p>
      {answer && !isStale && answer.total > 0 && !answer.answered ? (
        <p>Nothing clearly matches: these are only the nearest by meaning.</p>
      ) : null}
      {answer?.fellBack ? (
        <Note tone="warn" title="Not by meaning">
          <p>{answer.fellBack.text}</p>
        </Note>
      ) : null}
      {answer && answer.didYouMean !== null ? (
        <p>
          Did you mean{' '}
          <button type="button" class="link" onClick={() => onPick(answer.didYouMean ?? '')}>
            {answer.didYouMean}
          </button>
          ?
        </p>
      ) : null}
    </>
  )
}

function KeepButton({ q }: { q: string }) {
  const client = useQueryClient()
  const [busy, setBusy] = useState(false)
  const keep = async (): Promise<void> => {
    setBusy(true)
    try {
      await searchApi.save(q.trim().slice(0, 100), q.trim())
      showToast('The search is kept: it stands below the field before you type.', { tone: 'accent' })
      void client.invalidateQueries({ queryKey: OWN_KEY })
    } catch (thrown) {
      showToast(thrown instanceof Error ? thrown.message : 'That did not work.', { tone: 'danger' })
    } finally {
      setBusy(false)
    }
  }
  return (
    <Button small busy={busy} onClick={() => void keep()}>
      Keep this search
    </Button>
  )
}

/** Which document is read stands in the address, too: going back closes it. */
function useOpen() {
  const text = useSearchParam('open')
  const id = /^\d{1,15}$/.test(text) ? Number(text) : undefined
  return {
    id,
    set(next: number | undefined): void {
      const search = new URLSearchParams(location.search)
      if (next === undefined) search.delete('open')
      else search.set('open', String(next))
      const url = `${location.pathname}?${search}`
      if (id === undefined) history.pushState(null, '', url)
      else history.replaceState(null, '', url)
    },
  }
}

function refusalOf(error: unknown): string | undefined {
  return error instanceof ApiError && error.status === 400 ? error.message : undefined
}

const hitButtons = (): HTMLElement[] => [...document.querySelectorAll<HTMLElement>('[data-hit]')]

function focusHit(at: number): void {
  const all = hitButtons()
  const hit = all[Math.min(all.length - 1, Math.max(0, at))]
  hit?.focus({ preventScroll: true })
  hit?.scrollIntoView({ block: 'nearest' })
}

/** `/` goes to the field, j and k through the results; Enter opens what has the focus, as everywhere. */
function useFindKeys(field: { current: HTMLInputElement | null }): void {
  useEffect(() => {
    const onKey = (event: KeyboardEvent): void => {
      if (event.ctrlKey || event.metaKey || event.altKey || isTyping(event.target)) return
      if (document.querySelector('dialog[open]')) return
      const at = hitButtons().indexOf(document.activeElement as HTMLElement)
      if (event.key === '/') {
        field.current?.focus()
        field.current?.select()
      } else if (event.key === 'j') focusHit(at + 1)
      else if (event.key === 'k' && at === 0) field.current?.focus()
      else if (event.key === 'k') focusHit(at - 1)
      else return
      event.preventDefault()
    }
    // Before the keys of the shell: on this page they are its own.
    addEventListener('keydown', onKey, true)
    return () => removeEventListener('keydown', onKey, true)
  }, [field])
  useEffect(() => {
    // Not where that would bring up a keyboard on the screen.
    if (matchMedia('(pointer: fine)').matches) field.current?.focus()
  }, [field])
}

function isTyping(target: EventTarget | null): boolean {
  return (
    target instanceof HTMLElement &&
    (target.isContentEditable || target.matches('input:not([type=radio], [type=checkbox]), select, textarea'))
  )
}
