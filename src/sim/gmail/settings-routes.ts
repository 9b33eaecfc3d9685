/**
 * users.settings: kept and given back, and applied to nothing. Filters do not sort what arrives, and nobody is told that
 * its user is away.
 */
import { invalid, notFound } from '../google/errors.ts'
import type { SimAnswer } from '../server.ts'
import type { Mailbox } from './mailbox.ts'
import { answer, jsonBody, noContent, type RouteContext, type RouteTable } from './route.ts'
import type { ScopeNeed } from './scopes.ts'

type Json = Record<string, unknown>
type Filter = Json & { id: string }
type Settings = { values: Record<string, Json>; sendAs: Json; filters: Filter[]; filtersMade: number }

/** As a new account has them. */
const DEFAULTS: Readonly<Record<string, Json>> = {
  autoForwarding: { enabled: false },
  imap: { enabled: true, autoExpunge: true, expungeBehavior: 'archive', maxFolderSize: 0 },
  language: { displayLanguage: 'en' },
  pop: { accessWindow: 'disabled', disposition: 'leaveInInbox' },
  vacation: { enableAutoReply: false, restrictToContacts: false, restrictToDomain: false },
}
const FILTERS_MAX = 1_000

const kept = new WeakMap<Mailbox, Settings>()

export const settingsRoutes: RouteTable = {
  ...value('autoForwarding', 'AutoForwarding', 'settingsShare'),
  ...value('imap', 'Imap'),
  ...value('language', 'Language'),
  ...value('pop', 'Pop'),
  ...value('vacation', 'Vacation'),
  'GET settings/sendAs': {
    name: 'settings.sendAs.list',
    need: 'settingsRead',
    run: (context) => answer(context, { sendAs: [settingsOf(context).sendAs] }),
  },
  'GET settings/sendAs/*': {
    name: 'settings.sendAs.get',
    need: 'settingsRead',
    run: (context) => answer(context, ownAddress(context)),
  },
  'PATCH settings/sendAs/*': { name: 'settings.sendAs.patch', need: 'settings', run: changeAddress },
  'PUT settings/sendAs/*': { name: 'settings.sendAs.update', need: 'settings', run: changeAddress },
  'GET settings/filters': {
    name: 'settings.filters.list',
    need: 'settingsRead',
    run: (context) => answer(context, unlessEmpty('filter', settingsOf(context).filters)),
  },
  'GET settings/filters/*': {
    name: 'settings.filters.get',
    need: 'settingsRead',
    run: (context) => answer(context, ownFilter(context)),
  },
  'POST settings/filters': { name: 'settings.filters.create', need: 'settings', run: createFilter },
  'DELETE settings/filters/*': { name: 'settings.filters.delete', need: 'settings', run: deleteFilter },
  // Nobody else: an empty list is the truth.
  'GET settings/forwardingAddresses': {
    name: 'settings.forwardingAddresses.list',
    need: 'settingsRead',
    run: (context) => answer(context, {}),
  },
  'GET settings/delegates': {
    name: 'settings.delegates.list',
    need: 'settingsRead',
    run: (context) => answer(context, {}),
  },
}

/** A setting that is one object: read, and written whole. */
function value(path: string, name: string, need: ScopeNeed = 'settings'): RouteTable {
  return {
    [`GET settings/${path}`]: {
      name: `settings.get${name}`,
      need: 'settingsRead',
      run: (context) => answer(context, settingsOf(context).values[path]),
    },
    [`PUT settings/${path}`]: {
      name: `settings.update${name}`,
      need,
      run: (context) => {
        const { values } = settingsOf(context)
        values[path] = { ...DEFAULTS[path], ...jsonBody(context) }
        return answer(context, values[path])
      },
    },
  }
}

function settingsOf({ mailbox }: RouteContext): Settings {
  let settings = kept.get(mailbox)
  if (!settings) {
    const sendAs = {
      sendAsEmail: mailbox.address,
      displayName: '',
      replyToAddress: '',
      signature: '',
      isPrimary: true,
      isDefault: true,
    }
    settings = { values: structuredClone(DEFAULTS), sendAs, filters: [], filtersMade: 0 }
    kept.set(mailbox, settings)
  }
  return settings
}

function ownAddress(context: RouteContext): Json {
  const { sendAs } = settingsOf(context)
  if (context.ids[0]?.toLowerCase() !== String(sendAs.sendAsEmail).toLowerCase()) throw notFound()
  return sendAs
}

/** Which address it is, and that it is the first one, stays. */
function changeAddress(context: RouteContext): SimAnswer {
  const own = ownAddress(context)
  const {
    displayName = own.displayName,
    replyToAddress = own.replyToAddress,
    signature = own.signature,
  } = jsonBody(context)
  return answer(context, Object.assign(own, { displayName, replyToAddress, signature }))
}

function ownFilter(context: RouteContext): Filter {
  const found = settingsOf(context).filters.find(({ id }) => id === context.ids[0])
  if (!found) throw notFound()
  return found
}

function createFilter(context: RouteContext): SimAnswer {
  const settings = settingsOf(context)
  const { criteria, action } = jsonBody(context)
  if (!isFilled(criteria)) throw invalid('Filter criteria is required')
  if (!isFilled(action)) throw invalid('Filter action is required')
  if (settings.filters.length >= FILTERS_MAX) throw invalid('Too many filters')
  settings.filtersMade += 1
  const made = { id: `ANe1Bm${String(settings.filtersMade).padStart(8, '0')}`, criteria, action }
  settings.filters.push(made)
  return answer(context, made)
}

function deleteFilter(context: RouteContext): SimAnswer {
  const { filters } = settingsOf(context)
  filters.splice(filters.indexOf(ownFilter(context)), 1)
  return noContent
}

function isFilled(part: unknown): part is Json {
  return typeof part === 'object' && part !== null && Object.keys(part).length > 0
}

function unlessEmpty(name: string, list: readonly unknown[]): Json {
  return list.length > 0 ? { [name]: list } : {}
}
