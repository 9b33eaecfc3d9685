/** How the simulated Gmail describes itself to programs: by the routes that it has. */
import type { Described, Fields, ServiceDocument } from '../google/discovery.ts'
import type { Route, RouteTable } from './route.ts'
import { scopesFor } from './scopes.ts'

const SENT = 'Message'
const PAGED: Fields = 'maxResults# pageToken q labelIds[] includeSpamTrash?'

/** What cannot be seen from a route: query, request and answer. */
const ABOUT: Readonly<Record<string, { query?: Fields; request?: string; response?: string }>> = {
  getProfile: { response: 'Profile' },
  watch: { request: 'WatchRequest', response: 'WatchResponse' },
  'history.list': {
    query: 'startHistoryId historyTypes[] labelId maxResults# pageToken',
    response: 'ListHistoryResponse',
  },
  'messages.list': { query: PAGED, response: 'ListMessagesResponse' },
  'messages.get': { query: 'format metadataHeaders[]', response: SENT },
  'messages.insert': { query: 'internalDateSource deleted?', request: SENT, response: SENT },
  'messages.import': {
    query: 'internalDateSource deleted? neverMarkSpam? processForCalendar?',
    request: SENT,
    response: SENT,
  },
  'messages.send': { request: SENT, response: SENT },
  'messages.modify': { request: 'ModifyMessageRequest', response: SENT },
  'messages.trash': { response: SENT },
  'messages.untrash': { response: SENT },
  'messages.batchModify': { request: 'BatchModifyMessagesRequest' },
  'messages.batchDelete': { request: 'BatchDeleteMessagesRequest' },
  'attachments.get': { response: 'MessagePartBody' },
  'threads.list': { query: PAGED, response: 'ListThreadsResponse' },
  'threads.get': { query: 'format metadataHeaders[]', response: 'Thread' },
  'threads.modify': { request: 'ModifyThreadRequest', response: 'Thread' },
  'threads.trash': { response: 'Thread' },
  'threads.untrash': { response: 'Thread' },
  'labels.list': { response: 'ListLabelsResponse' },
  'labels.get': { response: 'Label' },
  'labels.create': { request: 'Label', response: 'Label' },
  'labels.update': { request: 'Label', response: 'Label' },
  'labels.patch': { request: 'Label', response: 'Label' },
  'drafts.list': { query: PAGED.replace(' labelIds[]', ''), response: 'ListDraftsResponse' },
  'drafts.get': { query: 'format', response: 'Draft' },
  'drafts.create': { request: 'Draft', response: 'Draft' },
  'drafts.update': { request: 'Draft', response: 'Draft' },
  'drafts.send': { request: 'Draft', response: SENT },
  'settings.sendAs.list': { response: 'ListSendAsResponse' },
  'settings.sendAs.get': { response: 'SendAs' },
  'settings.sendAs.patch': { request: 'SendAs', response: 'SendAs' },
  'settings.sendAs.update': { request: 'SendAs', response: 'SendAs' },
  'settings.filters.list': { response: 'ListFiltersResponse' },
  'settings.filters.get': { response: 'Filter' },
  'settings.filters.create': { request: 'Filter', response: 'Filter' },
  'settings.forwardingAddresses.list': { response: 'ListForwardingAddressesResponse' },
  'settings.delegates.list': { response: 'ListDelegatesResponse' },
}

const SCHEMAS: Readonly<Record<string, Fields>> = {
  Profile: 'emailAddress messagesTotal# threadsTotal# historyId',
  WatchRequest: 'topicName labelIds[] labelFilterAction labelFilterBehavior',
  WatchResponse: 'historyId expiration',
  Message: 'id threadId labelIds[] snippet historyId internalDate payload:MessagePart sizeEstimate# raw',
  MessagePart:
    'partId mimeType filename headers:MessagePartHeader[] body:MessagePartBody parts:MessagePart[]',
  MessagePartHeader: 'name value',
  MessagePartBody: 'attachmentId size# data',
  ListMessagesResponse: 'messages:Message[] nextPageToken resultSizeEstimate#',
  ModifyMessageRequest: 'addLabelIds[] removeLabelIds[]',
  BatchModifyMessagesRequest: 'ids[] addLabelIds[] removeLabelIds[]',
  BatchDeleteMessagesRequest: 'ids[]',
  Thread: 'id snippet historyId messages:Message[]',
  ListThreadsResponse: 'threads:Thread[] nextPageToken resultSizeEstimate#',
  ModifyThreadRequest: 'addLabelIds[] removeLabelIds[]',
  Label:
    'id name type messageListVisibility labelListVisibility color:LabelColor messagesTotal# messagesUnread# threadsTotal# threadsUnread#',
  LabelColor: 'textColor backgroundColor',
  ListLabelsResponse: 'labels:Label[]',
  Draft: 'id message:Message',
  ListDraftsResponse: 'drafts:Draft[] nextPageToken resultSizeEstimate#',
  History:
    'id messages:Message[] messagesAdded:HistoryMessage[] messagesDeleted:HistoryMessage[] labelsAdded:HistoryLabels[] labelsRemoved:HistoryLabels[]',
  HistoryMessage: 'message:Message',
  HistoryLabels: 'message:Message labelIds[]',
  ListHistoryResponse: 'history:History[] nextPageToken historyId',
  AutoForwarding: 'enabled? emailAddress disposition',
  Imap: 'enabled? autoExpunge? expungeBehavior maxFolderSize#',
  Language: 'displayLanguage',
  Pop: 'accessWindow disposition',
  Vacation:
    'enableAutoReply? responseSubject responseBodyPlainText responseBodyHtml restrictToContacts? restrictToDomain? startTime endTime',
  SendAs:
    'sendAsEmail displayName replyToAddress signature isPrimary? isDefault? treatAsAlias? verificationStatus',
  ListSendAsResponse: 'sendAs:SendAs[]',
  Filter: 'id criteria:FilterCriteria action:FilterAction',
  FilterCriteria: 'from to subject query negatedQuery hasAttachment? excludeChats? size# sizeComparison',
  FilterAction: 'addLabelIds[] removeLabelIds[] forward',
  ListFiltersResponse: 'filter:Filter[]',
  ForwardingAddress: 'forwardingEmail verificationStatus',
  ListForwardingAddressesResponse: 'forwardingAddresses:ForwardingAddress[]',
  Delegate: 'delegateEmail verificationStatus',
  ListDelegatesResponse: 'delegates:Delegate[]',
}

export function gmailDocument(routes: RouteTable): ServiceDocument {
  return {
    name: 'gmail',
    version: 'v1',
    title: 'Gmail API, simulated',
    servicePath: '',
    batchPath: 'batch/gmail/v1',
    methods: Object.entries(routes).map(([key, route]) => described(key, route)),
    schemas: SCHEMAS,
  }
}

function described(key: string, route: Route): Described {
  const [verb = '', pattern = ''] = key.split(' ')
  const { name } = route
  const path = `gmail/v1/users/{userId}/${named(pattern)}`
  // `settings.getVacation` is about a `Vacation`.
  const setting = /^settings\.(?:get|(update))(\w+)$/.exec(name)
  const about = setting ? { response: setting[2], request: setting[1] && setting[2] } : (ABOUT[name] ?? {})
  return {
    id: `users.${name.replace(/^attachments\./, 'messages.attachments.')}`,
    verb,
    path,
    query: '',
    ...about,
    scopes: scopesFor(route.need),
    uploadPath: route.takesUpload ? `/upload/${path}` : undefined,
  }
}

/** Google's names for what stands at the stars. */
function named(pattern: string): string {
  if (pattern.startsWith('settings/sendAs/')) return pattern.replace('*', '{sendAsEmail}')
  if (pattern.includes('/attachments/')) return pattern.replace('*', '{messageId}').replace('*', '{id}')
  return pattern.replace('*', '{id}')
}
