/** users.labels. */

import { invalid, notFound } from '../google/errors.ts'
import type { SimAnswer } from '../server.ts'
import type { LabelFields } from './mailbox-contract.ts'
import { answer, jsonBody, noContent, type RouteContext, type RouteTable, stringOf } from './route.ts'

export const labelRoutes: RouteTable = {
  'GET labels': {
    name: 'labels.list',
    need: 'labelsRead',
    run: (context) => answer(context, { labels: context.mailbox.labels() }),
  },
  'GET labels/*': { name: 'labels.get', need: 'labelsRead', run: get },
  'POST labels': { name: 'labels.create', need: 'labels', run: create },
  'PUT labels/*': { name: 'labels.update', need: 'labels', run: update },
  'PATCH labels/*': { name: 'labels.patch', need: 'labels', run: update },
  'DELETE labels/*': {
    name: 'labels.delete',
    need: 'labels',
    run({ mailbox, ids }) {
      mailbox.deleteLabel(ids[0]!)
      return noContent
    },
  },
}

const LIST_VISIBILITIES: readonly unknown[] = ['labelShow', 'labelShowIfUnread', 'labelHide']

function get(context: RouteContext): SimAnswer {
  const label = context.mailbox.label(context.ids[0]!)
  if (!label) throw notFound()
  return answer(context, label)
}

function create(context: RouteContext): SimAnswer {
  const fields = labelFields(context)
  if (!fields.name) throw invalid('Invalid label name')
  return answer(context, context.mailbox.createLabel({ ...fields, name: fields.name }))
}

function update(context: RouteContext): SimAnswer {
  return answer(context, context.mailbox.updateLabel(context.ids[0]!, labelFields(context)))
}

function labelFields(context: RouteContext): Partial<LabelFields> {
  const body = jsonBody(context)
  const fields: Partial<LabelFields> = {}
  const name = stringOf(body, 'name')
  if (name !== undefined) fields.name = name
  const inMessages = body.messageListVisibility
  if (inMessages === 'show' || inMessages === 'hide') fields.messageListVisibility = inMessages
  else if (inMessages !== undefined) throw invalid("Invalid value at 'label.message_list_visibility'")
  const inList = body.labelListVisibility
  if (LIST_VISIBILITIES.includes(inList)) {
    fields.labelListVisibility = inList as NonNullable<LabelFields['labelListVisibility']>
  } else if (inList !== undefined) throw invalid("Invalid value at 'label.label_list_visibility'")
  if (typeof body.color === 'object' && body.color !== null) {
    fields.color = body.color as NonNullable<LabelFields['color']>
  }
  return fields
}
