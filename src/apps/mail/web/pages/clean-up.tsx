/** Take old mail out of Gmail: look first, then do it, watch it, take it back. */

import { useInfiniteQuery, useQueryClient } from '@tanstack/preact-query'
import { useEffect, useRef, useState } from 'preact/hooks'
import { Button, ButtonLink } from '../../../../../web/src/components/button.tsx'
import { Card } from '../../../../../web/src/components/card.tsx'
import { type ConfirmOptions, useConfirm } from '../../../../../web/src/components/confirm.tsx'
import { EmptyNote, ErrorNote, Loaded, Skeleton } from '../../../../../web/src/components/notes.tsx'
import { PageTitle } from '../../../../../web/src/components/page-title.tsx'
import { showToast } from '../../../../../web/src/components/toast-store.ts'
import { formatBytes, formatPlural } from '../../../../../web/src/format.ts'
import { settingsLink } from '../../../../../web/src/links.ts'
import type { CleanUpPlan, CleanUpProof } from '../../api/schemas.ts'
import { mailApi } from '../api.ts'
import {
  isMoving,
  isSameWish,
  missingAccess,
  type WishForm,
  watchProof,
  wishOf,
} from '../clean-up/clean-up.ts'
import { PlanCard } from '../clean-up/plan-card.tsx'
import { RunCard } from '../clean-up/run-card.tsx'
import { WishFields } from '../clean-up/wish-form.tsx'
import { type MailAccount, mailKeys, useMailAccounts } from '../queries.ts'
import '../styles/clean-up.css'

export function CleanUpPage() {
  const accounts = useMailAccounts()
  return (
    <>
      <PageTitle
        title="Free up Gmail"
        lead="Take old mail out of Gmail. Only what is proven to be in your archive is touched."
      />
      <div class="clean-up">
        <div class="stack">
          <Loaded
            query={accounts}
            waiting={
              <Card title="Plan a clean-up">
                <Skeleton height="18rem" />
              </Card>
            }
          >
            {(items) => (items.length === 0 ? <NoAccount /> : <Planning accounts={items} />)}
          </Loaded>
        </div>
        <Runs />
      </div>
    </>
  )
}

function NoAccount() {
  return (
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
  )
}

function Planning({ accounts }: { accounts: readonly MailAccount[] }) {
  const [form, setForm] = useState<WishForm>({
    account: accounts[0]!.name,
    amount: '2',
    unit: 'y',
    query: '',
    action: 'unlabel',
  })
  const { plan, error, isLooking, proof, starting, look, prove, start } = usePlan()
  const wish = wishOf(form)
  const account = accounts.find(({ name }) => name === form.account)
  return (
    <>
      <Card title="Plan a clean-up">
        <WishFields
          form={form}
          accounts={accounts}
          busy={isLooking}
          onChange={setForm}
          onDryRun={() => void look(wish)}
        />
      </Card>
      {error ? <ErrorNote error={error} /> : null}
      {plan ? (
        <PlanCard
          plan={plan}
          isOld={!isSameWish(plan.wish as typeof wish, wish)}
          missing={missingAccess(account?.access ?? null, form.action)}
          proof={proof}
          isStarting={starting}
          onProve={() => void prove(wish)}
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
  const [plan, setPlan] = useState<CleanUpPlan>()
  const [error, setError] = useState<unknown>()
  const [isLooking, setLooking] = useState(false)
  const { proof, prove: proven } = useProof()
  const [starting, setStarting] = useState(false)
  const look = async (wish: Wish): Promise<void> => {
    if (!wish) return
    setLooking(true)
    setError(undefined)
    try {
      setPlan(await mailApi.planCleanUp(wish))
    } catch (cause) {
      setError(cause)
    } finally {
      setLooking(false)
    }
  }
  const prove = async (wish: Wish): Promise<void> => {
    if (!wish) return
    setError(undefined)
    try {
      const full = await proven(wish)
      if (full) setPlan(full)
    } catch (cause) {
      setError(cause)
    }
  }
  const start = async (planned: CleanUpPlan, wish: Wish): Promise<void> => {
    if (!wish || !(await confirm(questionOf(planned)))) return
    setStarting(true)
    setError(undefined)
    try {
      const run = await mailApi.startCleanUp({
        ...wish,
        ...(planned.confirm ? { confirm: planned.confirm } : {}),
      })
      showToast(`Run ${run.id} has begun.`, { tone: 'accent' })
      setPlan(undefined)
      await client.invalidateQueries({ queryKey: mailKeys.cleanUp })
    } catch (cause) {
      setError(cause)
    } finally {
      setStarting(false)
    }
  }
  return { plan, error, isLooking, proof, starting, look, prove, start }
}

const PROOF_LOOK_MS = 1_000

/** Looks after a proof until it is over or the page is left; the proof itself goes on without it. */
function useProof() {
  const [proof, setProof] = useState<CleanUpProof>()
  const left = useRef(new AbortController())
  useEffect(() => () => left.current.abort(), [])
  const prove = async (wish: NonNullable<Wish>): Promise<CleanUpPlan | undefined> => {
    try {
      const { signal } = left.current
      const now = await watchProof(await mailApi.proveCleanUp(wish), {
        look: (id) => mailApi.cleanUpProof(id, signal),
        show: setProof,
        pause: () => new Promise((resolve) => setTimeout(resolve, PROOF_LOOK_MS)),
        isLeft: () => signal.aborted,
      })
      if (now.state === 'failed') throw new Error(now.trouble ?? 'The proof was not made.')
      return now.plan ?? undefined
    } finally {
      setProof(undefined)
    }
  }
  return { proof, prove }
}

function questionOf(plan: CleanUpPlan): ConfirmOptions {
  const count = formatPlural(plan.messages, 'message')
  const found = plan.understood === '' ? '' : ` that ${plan.understood} finds`
  const where = `of ${plan.wish.account}${found} (${formatBytes(plan.bytes)})`
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
  const query = useInfiniteQuery({
    queryKey: [...mailKeys.cleanUp, 'runs'],
    queryFn: ({ pageParam, signal }) => mailApi.cleanUpRuns({ cursor: pageParam, limit: 10 }, signal),
    initialPageParam: undefined as string | undefined,
    getNextPageParam: (last) => last.next ?? undefined,
    // Events come for jobs; a run that is being planned has few of them.
    refetchInterval: ({ state }) =>
      state.data?.pages.some(({ items }) => items.some(isMoving)) ? 3_000 : false,
  })
  return (
    <section class="stack" aria-label="Runs">
      <h2>Runs</h2>
      <Loaded query={query} waiting={<Skeleton height="9rem" />}>
        {({ pages }) => {
          const runs = pages.flatMap(({ items }) => items)
          return runs.length === 0 ? (
            <EmptyNote title="No run yet">
              Do a dry run first: it shows what would happen, and changes nothing.
            </EmptyNote>
          ) : (
            runs.map((run) => <RunCard key={run.id} run={run} />)
          )
        }}
      </Loaded>
      {query.hasNextPage ? (
        <Button busy={query.isFetchingNextPage} onClick={() => void query.fetchNextPage()}>
          Older runs
        </Button>
      ) : null}
    </section>
  )
}
