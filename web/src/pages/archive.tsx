/** Take old mail out of Gmail: look first, then do it, watch it, take it back. */
import { useInfiniteQuery, useQueryClient } from '@tanstack/preact-query'
import { useState } from 'preact/hooks'
import type { ArchivePlan, MailAccountView } from '../../../src/server/mail-api/schemas.ts'
import { api } from '../api.ts'
import { PlanCard } from '../archive/plan-card.tsx'
import { RunCard } from '../archive/run-card.tsx'
import { isMoving } from '../archive/run-state.ts'
import { isSameWish, missingAccess, type WishForm, wishOf } from '../archive/wish.ts'
import { WishFields } from '../archive/wish-form.tsx'
import { Button, ButtonLink } from '../components/button.tsx'
import { Card } from '../components/card.tsx'
import { type ConfirmOptions, useConfirm } from '../components/confirm.tsx'
import { EmptyNote, ErrorNote, Skeleton } from '../components/notes.tsx'
import { PageTitle } from '../components/page-title.tsx'
import { showToast } from '../components/toast-store.ts'
import { formatBytes, formatPlural } from '../format.ts'
import { settingsLink } from '../links.ts'
import { keys, useAccounts } from '../queries.ts'
import '../styles/archive.css'

export function ArchivePage() {
  const accounts = useAccounts()
  const items = accounts.data?.items
  return (
    <>
      <PageTitle
        title="Archive"
        lead="Take old mail out of Gmail. Only what is proven to be in the archive is touched."
      />
      {accounts.error && !items ? <ErrorNote error={accounts.error} retry={accounts.refetch} /> : null}
      <div class="archive">
        <div class="stack">
          {items === undefined && !accounts.error ? (
            <Card title="Plan a clean-up">
              <Skeleton height="18rem" />
            </Card>
          ) : null}
          {items?.length === 0 ? (
            <EmptyNote
              title="There is no account to clean up"
              action={
                <ButtonLink href={settingsLink()} kind="primary" icon="person">
                  Connect an account
                </ButtonLink>
              }
            >
              Connect a Gmail account first; when its mail is copied, old mail can leave Gmail.
            </EmptyNote>
          ) : null}
          {items && items.length > 0 ? <Planning accounts={items} /> : null}
        </div>
        <Runs />
      </div>
    </>
  )
}

function Planning({ accounts }: { accounts: readonly MailAccountView[] }) {
  const [form, setForm] = useState<WishForm>({
    ...{ account: accounts[0]!.name, amount: '2', unit: 'y', query: '', action: 'unlabel' },
  })
  const { plan, error, looking, starting, look, start } = usePlan()
  const wish = wishOf(form)
  const account = accounts.find(({ name }) => name === form.account)
  return (
    <>
      <Card title="Plan a clean-up">
        <WishFields
          form={form}
          accounts={accounts}
          busy={looking === 'quick'}
          onChange={setForm}
          onDryRun={() => void look(wish, 'quick')}
        />
      </Card>
      {error ? <ErrorNote error={error} /> : null}
      {plan ? (
        <PlanCard
          plan={plan}
          isOld={!isSameWish(plan.wish as typeof wish, wish)}
          missing={missingAccess(account?.access ?? null, form.action)}
          isProving={looking === 'full'}
          isStarting={starting}
          onProve={() => void look(wish, 'full')}
          onStart={() => void start(plan, wish)}
        />
      ) : null}
    </>
  )
}

type Wish = ReturnType<typeof wishOf>

function usePlan() {
  const client = useQueryClient()
  const confirm = useConfirm()
  const [plan, setPlan] = useState<ArchivePlan>()
  const [error, setError] = useState<unknown>()
  const [looking, setLooking] = useState<'quick' | 'full'>()
  const [starting, setStarting] = useState(false)
  const look = async (wish: Wish, depth: 'quick' | 'full'): Promise<void> => {
    if (!wish) return
    setLooking(depth)
    setError(undefined)
    try {
      setPlan(await api.planArchive({ ...wish, quick: depth === 'quick' }))
    } catch (cause) {
      setError(cause)
    } finally {
      setLooking(undefined)
    }
  }
  const start = async (planned: ArchivePlan, wish: Wish): Promise<void> => {
    if (!wish || !(await confirm(questionOf(planned)))) return
    setStarting(true)
    setError(undefined)
    try {
      const run = await api.startArchive({
        ...wish,
        ...(planned.confirm ? { confirm: planned.confirm } : {}),
      })
      showToast(`Run ${run.id} has begun.`, { tone: 'accent' })
      setPlan(undefined)
      await client.invalidateQueries({ queryKey: keys.archive })
    } catch (cause) {
      setError(cause)
    } finally {
      setStarting(false)
    }
  }
  return { plan, error, looking, starting, look, start }
}

function questionOf(plan: ArchivePlan): ConfirmOptions {
  const count = formatPlural(plan.messages, 'message')
  const where = `of ${plan.wish.account} (${formatBytes(plan.bytes)})`
  if (plan.wish.action === 'delete') {
    return {
      title: `Delete ${count} for good?`,
      text: `${count} ${where} leave Gmail and its trash. The copies in the archive stay, and are then the only ones.`,
      action: `Delete ${count}`,
      danger: true,
      ...(plan.confirm ? { typed: plan.confirm } : {}),
    }
  }
  return plan.wish.action === 'trash'
    ? {
        title: `Move ${count} to the trash?`,
        text: `${count} ${where}. Gmail deletes them after 30 days; until then this can be undone here.`,
        action: 'Move to the trash',
      }
    : {
        title: `Take ${count} out of the inbox?`,
        text: `${count} ${where}. They stay in Gmail under All Mail, and this can be undone here.`,
        action: 'Take out',
      }
}

function Runs() {
  const { data, error, refetch, hasNextPage, fetchNextPage, isFetchingNextPage } = useInfiniteQuery({
    queryKey: [...keys.archive, 'runs'],
    queryFn: ({ pageParam, signal }) => api.archiveRuns({ cursor: pageParam, limit: 10 }, signal),
    initialPageParam: undefined as string | undefined,
    getNextPageParam: (last) => last.next ?? undefined,
    // Events come for jobs; a run that is being planned has few of them.
    refetchInterval: ({ state }) =>
      state.data?.pages.some(({ items }) => items.some(isMoving)) ? 3_000 : false,
  })
  const runs = data?.pages.flatMap(({ items }) => items)
  return (
    <section class="stack" aria-label="Runs">
      <h2>Runs</h2>
      {error && !runs ? <ErrorNote error={error} retry={refetch} /> : null}
      {!runs && !error ? <Skeleton height="9rem" /> : null}
      {runs?.length === 0 ? (
        <EmptyNote title="No run yet">
          Do a dry run first: it shows what would happen, and changes nothing.
        </EmptyNote>
      ) : null}
      {runs?.map((run) => (
        <RunCard key={run.id} run={run} />
      ))}
      {hasNextPage ? (
        <Button busy={isFetchingNextPage} onClick={() => void fetchNextPage()}>
          Older runs
        </Button>
      ) : null}
    </section>
  )
}
